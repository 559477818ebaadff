// `test` runs a function and keeps what it threw; the last line of a file asks `failures` for all of it.
const failed = [];
let ran = 0;
const waiting = [];
const show = (value) => (typeof value === 'string' ? JSON.stringify(value) : typeof value === 'object' && value !== null ? JSON.stringify(value) ?? String(value) : String(value));
const same = (a, b) => {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const names = Object.keys(a);
  return Array.isArray(a) === Array.isArray(b) && names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name]));
};
const eq = (found, wanted, what = '') => { if (!same(found, wanted)) throw new Error(`${what} ${show(found)} instead of ${show(wanted)}`); };
const throws = (name, work) => {
  let thrown;
  try { work(); } catch (error) { thrown = error; }
  if (thrown === undefined) throw new Error(`no ${name}`);
  eq(thrown.name, name, thrown.message);
  return thrown;
};
const rejects = async (name, promise) => {
  let thrown;
  try { await promise; } catch (error) { thrown = error; }
  if (thrown === undefined) throw new Error(`no ${name}`);
  eq(thrown.name, name, thrown.message);
};
const test = (title, work) => {
  ran++;
  const fail = (error) => failed.push(`${title}: ${error?.message ?? error}`);
  try {
    const done = work();
    if (done instanceof Promise) waiting.push(done.catch(fail));
  } catch (error) { fail(error); }
};
const failures = async () => {
  await Promise.all(waiting);
  if (ran === 0) failed.push('nothing was tested');
  return failed;
};
0;
