// What a run sees of its session: `plasm`, `plasm.plan`, `mcp.headers`.
// Invariant: read from the host each time; nothing of it is kept in the heap.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;
  const program = (kind) => function plasm(text) {
    if (typeof text !== 'string') throw new own.TypeError('plasm takes a program as text');
    return host.call(kind, own.stringify({ __proto__: null, program: text }));
  };
  const plasm = program('plasm');
  own.defineProperty(plasm, 'plan', { __proto__: null, value: program('plan'), enumerable: true });
  own.freeze(plasm);
  own.defineProperty(globalThis, 'plasm', {
    __proto__: null, configurable: true, enumerable: false,
    get: () => (own.surroundings().programs ? plasm : undefined),
    set: (value) => own.global('plasm', value),
  });

  const mcp = own.create(null, {
    headers: {
      enumerable: true,
      get: () => {
        const given = own.surroundings().headers ?? {};
        const names = own.keys(given), headers = own.create(null);
        for (let at = 0; at < names.length; at++) headers[names[at]] = given[names[at]];
        return own.freeze(headers);
      },
    },
  });
  own.global('mcp', own.freeze(mcp));
})();
