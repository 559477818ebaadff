// What the other files stand on: the language's own functions, taken before any program could change them.
// Invariant: the files after this one reach the host and the language through `__host.own`, so that a program which replaces
// `Array.prototype.push` or `Object.prototype.then` changes nothing for the globals.
'use strict';
(() => {
  const host = globalThis.__host;
  const { apply, ownKeys, getPrototypeOf, getOwnPropertyDescriptor } = Reflect;
  const { create, defineProperty, freeze, setPrototypeOf, keys } = Object;
  const uncurry = (method) => (self, ...rest) => apply(method, self, rest);
  const getter = (prototype, name) => uncurry(getOwnPropertyDescriptor(prototype, name).get);
  const thenOf = uncurry(Promise.prototype.then);

  /** Globals are writable and not enumerable, as on the web. */
  const global = (name, value) =>
    defineProperty(globalThis, name, { __proto__: null, value, writable: true, configurable: true, enumerable: false });

  /** A method or accessor of a web interface is enumerable; a class makes it hidden. */
  const enumerable = (prototype, ...names) => {
    for (let at = 0; at < names.length; at++)
      defineProperty(prototype, names[at], { __proto__: null, enumerable: true });
  };
  const tag = (prototype, name) =>
    defineProperty(prototype, Symbol.toStringTag, { __proto__: null, value: name, configurable: true });
  const constants = (target, values) => {
    const names = keys(values);
    for (let at = 0; at < names.length; at++)
      defineProperty(target, names[at], { __proto__: null, value: values[names[at]], enumerable: true });
  };

  const Typed = getPrototypeOf(Uint8Array.prototype);
  host.own = {
    __proto__: null,
    apply, ownKeys, getPrototypeOf, getOwnPropertyDescriptor, create, defineProperty, freeze, setPrototypeOf, keys,
    uncurry, getter, global, enumerable, tag, constants,
    isArray: Array.isArray,
    stringify: JSON.stringify,
    parse: JSON.parse,
    String, Number, Symbol, Map, Set, WeakMap, Promise, TypeError, RangeError, Error, Uint8Array, Date,
    fromCharCode: String.fromCharCode,
    fromCodePoint: String.fromCodePoint,
    charCodeAt: uncurry(String.prototype.charCodeAt),
    codePointAt: uncurry(String.prototype.codePointAt),
    slice: uncurry(String.prototype.slice),
    indexOf: uncurry(String.prototype.indexOf),
    split: uncurry(String.prototype.split),
    toLowerCase: uncurry(String.prototype.toLowerCase),
    toUpperCase: uncurry(String.prototype.toUpperCase),
    repeat: uncurry(String.prototype.repeat),
    padStart: uncurry(String.prototype.padStart),
    padEnd: uncurry(String.prototype.padEnd),
    replace: uncurry(String.prototype.replace),
    trim: uncurry(String.prototype.trim),
    normalize: uncurry(String.prototype.normalize),
    toWellFormed: uncurry(String.prototype.toWellFormed),
    join: uncurry(Array.prototype.join),
    push: uncurry(Array.prototype.push),
    sort: uncurry(Array.prototype.sort),
    splice: uncurry(Array.prototype.splice),
    test: uncurry(RegExp.prototype.test),
    exec: uncurry(RegExp.prototype.exec),
    hasOwn: Object.hasOwn,
    objectToString: uncurry(Object.prototype.toString),
    functionToString: uncurry(Function.prototype.toString),
    numberToString: uncurry(Number.prototype.toString),
    toFixed: uncurry(Number.prototype.toFixed),
    toPrecision: uncurry(Number.prototype.toPrecision),
    symbolToString: uncurry(Symbol.prototype.toString),
    bigintToString: uncurry(BigInt.prototype.toString),
    booleanValue: uncurry(Boolean.prototype.valueOf),
    numberValue: uncurry(Number.prototype.valueOf),
    stringValue: uncurry(String.prototype.valueOf),
    bigintValue: uncurry(BigInt.prototype.valueOf),
    symbolValue: uncurry(Symbol.prototype.valueOf),
    dateTime: uncurry(Date.prototype.getTime),
    dateIso: uncurry(Date.prototype.toISOString),
    regexpSource: getter(RegExp.prototype, 'source'),
    regexpFlags: getter(RegExp.prototype, 'flags'),
    mapSize: getter(Map.prototype, 'size'),
    mapForEach: uncurry(Map.prototype.forEach),
    mapGet: uncurry(Map.prototype.get),
    mapSet: uncurry(Map.prototype.set),
    mapHas: uncurry(Map.prototype.has),
    mapDelete: uncurry(Map.prototype.delete),
    setSize: getter(Set.prototype, 'size'),
    setForEach: uncurry(Set.prototype.forEach),
    setAdd: uncurry(Set.prototype.add),
    setHas: uncurry(Set.prototype.has),
    bufferLength: getter(ArrayBuffer.prototype, 'byteLength'),
    bufferSlice: uncurry(ArrayBuffer.prototype.slice),
    isView: ArrayBuffer.isView,
    typedTag: getter(Typed, Symbol.toStringTag),
    typedBuffer: getter(Typed, 'buffer'),
    typedOffset: getter(Typed, 'byteOffset'),
    typedBytes: getter(Typed, 'byteLength'),
    typedLength: getter(Typed, 'length'),
    typedSet: uncurry(Typed.set),
    typedSubarray: uncurry(Typed.subarray),
    typedSlice: uncurry(Typed.slice),
    viewBuffer: getter(DataView.prototype, 'buffer'),
    viewOffset: getter(DataView.prototype, 'byteOffset'),
    viewBytes: getter(DataView.prototype, 'byteLength'),
    // For promises that no program sees. What `then` makes is of the promise's own `constructor`, which a program may have replaced
    // for all of them; one that has none is the language's.
    then: (promise, done, failed) => {
      defineProperty(promise, 'constructor', { __proto__: null, value: undefined, configurable: true });
      return thenOf(promise, done, failed);
    },
  };

  // The language looks `exec` and its like up on each expression, where a program may have put its own.
  const exec = RegExp.prototype.exec, replacer = RegExp.prototype[Symbol.replace], hasOwn = Object.hasOwn;
  const hardened = (expression) => {
    if (!hasOwn(expression, 'exec')) {
      defineProperty(expression, 'exec', { __proto__: null, value: exec });
      defineProperty(expression, Symbol.replace, { __proto__: null, value: replacer });
    }
    return expression;
  };
  const { test, replace } = host.own;
  const execute = host.own.exec;
  host.own.test = (expression, text) => test(hardened(expression), text);
  host.own.exec = (expression, text) => execute(hardened(expression), text);
  host.own.replace = (text, what, by) => replace(text, typeof what === 'string' ? what : hardened(what), by);

  /** What the host says of the run, at this moment. */
  host.own.surroundings = () => {
    const given = host.surroundings();
    return typeof given === 'string' ? host.own.parse(given) : given;
  };
  /** Text of any value, as web interfaces take it: no lone surrogates. */
  host.own.usv = (value) => host.own.toWellFormed(typeof value === 'symbol' ? `${value}` : String(value));
  /** The bytes of an ArrayBuffer or a view, without copying; undefined for anything else. */
  host.own.bytesOf = (value) => {
    const own = host.own;
    if (own.isView(value)) {
      const typed = own.typedTag(value) !== undefined;
      return typed
        ? new own.Uint8Array(own.typedBuffer(value), own.typedOffset(value), own.typedBytes(value))
        : new own.Uint8Array(own.viewBuffer(value), own.viewOffset(value), own.viewBytes(value));
    }
    try {
      own.bufferLength(value);
      return new own.Uint8Array(value);
    } catch {
      return undefined;
    }
  };
})();
