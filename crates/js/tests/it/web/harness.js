// `test` runs a function and records its error. The last line of a test file returns all errors by `failures`.
const failed = [];
let testCount = 0;
const pending = [];
const show = (value) => (typeof value === 'string' ? JSON.stringify(value) : typeof value === 'object' && value !== null ? JSON.stringify(value) ?? String(value) : String(value));
const same = (a, b) => {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const names = Object.keys(a);
  return Array.isArray(a) === Array.isArray(b) && names.length === Object.keys(b).length && names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name]));
};
const eq = (actual, expected, what = '') => { if (!same(actual, expected)) throw new Error(`${what} ${show(actual)} instead of ${show(expected)}`); };
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
  testCount++;
  const fail = (error) => failed.push(`${title}: ${error?.message ?? error}`);
  try {
    const done = work();
    if (done instanceof Promise) pending.push(done.catch(fail));
  } catch (error) { fail(error); }
};
const failures = async () => {
  await Promise.all(pending);
  if (testCount === 0) failed.push('no test was run');
  return failed;
};
0;
