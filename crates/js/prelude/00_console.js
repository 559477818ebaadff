'use strict';
(() => {
  const host = globalThis.__host;
  delete globalThis.__host;
  host.inspect = (value) => String(value);
  const print = (level) => (...values) => host.print(level, values.map((value) => typeof value === 'string' ? value : host.inspect(value)).join(' '));
  globalThis.console = { log: print(1), error: print(3) };
  globalThis.setTimeout = (f, ms) => { host.call('timer', JSON.stringify({ ms: Number(ms) || 0 })).then(() => f()); };
  globalThis.plasm = (program) => host.call('plasm', JSON.stringify({ program }));
})();
