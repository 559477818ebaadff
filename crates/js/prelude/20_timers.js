// Timers over the host's one kind of timer, a call that is answered later; and `queueMicrotask`.
// Invariant: a cleared timer never runs its function, and owes the host nothing.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;
  const Weak = WeakRef, deref = own.uncurry(WeakRef.prototype.deref);
  // A run that ends drops the timers it leaves. Only the promise of a timer holds it, and is not held by it: a ring would stay
  // behind, with all that the timer was given, until the collector comes.
  const live = new own.Map();
  const found = (id) => {
    const timer = own.mapGet(live, id);
    return timer === undefined ? undefined : deref(timer);
  };
  let last = 0, sweepAt = 64;
  const sweep = () => {
    own.mapForEach(live, (timer, id) => {
      if (deref(timer) === undefined) own.mapDelete(live, id);
    });
    sweepAt = 64 + 2 * own.mapSize(live);
  };

  const delay = (ms) => {
    const number = own.Number(ms);
    return number >= 1 && number <= 0x7fffffff ? number : 1;
  };
  const arm = (id, timer) => {
    const promise = host.call('timer', `{"ms":${delay(timer.ms) | 0}}`);
    timer.promise = new Weak(promise);
    own.then(promise, () => fire(id, timer), () => own.mapDelete(live, id));
  };
  const fire = (id, timer) => {
    if (found(id) !== timer) return;
    if (timer.again) arm(id, timer);
    else own.mapDelete(live, id);
    own.apply(timer.work, undefined, timer.rest);
  };
  const start = (name, work, ms, rest, again) => {
    if (typeof work !== 'function') throw new own.TypeError(`${name} takes a function`);
    const id = ++last;
    const timer = { __proto__: null, work, ms, rest, again, promise: undefined };
    own.mapSet(live, id, new Weak(timer));
    if (own.mapSize(live) > sweepAt) sweep();
    arm(id, timer);
    return id;
  };
  const clear = (id) => {
    const number = typeof id === 'number' ? id : typeof id === 'string' ? own.Number(id) : undefined;
    const timer = found(number);
    if (timer === undefined) return;
    own.mapDelete(live, number);
    if (host.cancel) host.cancel(deref(timer.promise));
  };

  own.global('setTimeout', function setTimeout(work, ms, ...rest) { return start('setTimeout', work, ms, rest, false); });
  own.global('setInterval', function setInterval(work, ms, ...rest) { return start('setInterval', work, ms, rest, true); });
  own.global('setImmediate', function setImmediate(work, ...rest) { return start('setImmediate', work, 0, rest, false); });
  own.global('clearTimeout', function clearTimeout(id) { clear(id); });
  own.global('clearInterval', function clearInterval(id) { clear(id); });
  own.global('clearImmediate', function clearImmediate(id) { clear(id); });

  const done = own.Promise.resolve();
  own.global('queueMicrotask', function queueMicrotask(work) {
    if (typeof work !== 'function') throw new own.TypeError('queueMicrotask takes a function');
    own.then(done, () => { work(); });
  });
})();
