// `structuredClone`: the HTML Standard's structured clone of everything the language has.
// Invariant: shared and cyclic references are kept; what cannot be cloned is a DataCloneError and nothing was changed.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;
  const Viewed = DataView, Dated = own.Date, Expression = RegExp, Boxed = Object;
  const Buffer = ArrayBuffer;
  const resizable = own.getter(ArrayBuffer.prototype, 'resizable'), most = own.getter(ArrayBuffer.prototype, 'maxByteLength');
  const detached = own.getter(ArrayBuffer.prototype, 'detached'), detach = own.uncurry(ArrayBuffer.prototype.transfer);
  const ERRORS = { __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
  const TYPED = { __proto__: null };
  for (const type of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, Float32Array, Float64Array, BigInt64Array, BigUint64Array])
    TYPED[type.name] = type;
  if (typeof Float16Array === 'function') TYPED.Float16Array = Float16Array;

  const refuse = (value, why) => {
    throw new own.DOMException(`${own.slice(own.inspect(value, 0), 0, 100)} could not be cloned${why ? `: ${why}` : ''}`, 'DataCloneError');
  };
  const attempt = (work) => {
    try { return work(); } catch { return undefined; }
  };
  const is = (brand, value) => {
    try { brand(value); return true; } catch { return false; }
  };
  const define = (target, name, value) =>
    own.defineProperty(target, name, { __proto__: null, value, writable: true, configurable: true, enumerable: true });

  const properties = (seen, from, to) => {
    const names = own.keys(from);
    for (let at = 0; at < names.length; at++)
      if (own.hasOwn(from, names[at])) define(to, names[at], clone(seen, from[names[at]]));
    return to;
  };
  const remember = (seen, value, copy) => {
    own.mapSet(seen, value, copy);
    return copy;
  };

  const error = (seen, value) => {
    let name = attempt(() => own.String(value.name)) ?? 'Error';
    if (!(name in ERRORS)) name = 'Error';
    const copy = own.create(ERRORS[name].prototype);
    // An own `stack` and the engine's mark of an error come only from a constructor.
    const made = remember(seen, value, new ERRORS[name]());
    own.setPrototypeOf(made, own.getPrototypeOf(copy));
    const hidden = (key, content) => own.defineProperty(made, key, { __proto__: null, value: content, writable: true, configurable: true });
    const message = own.getOwnPropertyDescriptor(value, 'message');
    if (message && 'value' in message) hidden('message', own.String(message.value));
    else delete made.message;
    const stack = attempt(() => value.stack);
    if (typeof stack === 'string') hidden('stack', stack);
    const cause = own.getOwnPropertyDescriptor(value, 'cause');
    if (cause && 'value' in cause) hidden('cause', clone(seen, cause.value));
    return made;
  };

  /** One that can grow is copied as one that can. */
  const buffer = (value) => {
    if (!resizable(value)) return own.bufferSlice(value, 0);
    const length = own.bufferLength(value), copy = new Buffer(length, { maxByteLength: most(value) });
    own.typedSet(new own.Uint8Array(copy), new own.Uint8Array(value, 0, length));
    return copy;
  };

  const clone = (seen, value) => {
    if (typeof value === 'symbol' || typeof value === 'function') refuse(value);
    if (typeof value !== 'object' || value === null) return value;
    if (own.mapHas(seen, value)) return own.mapGet(seen, value);
    if (own.isArray(value)) {
      const copy = remember(seen, value, []);
      copy.length = value.length;
      return properties(seen, value, copy);
    }
    if (own.isView(value)) {
      const type = own.typedTag(value);
      const buffer = clone(seen, type === undefined ? own.viewBuffer(value) : own.typedBuffer(value));
      const copy = type === undefined
        ? new Viewed(buffer, own.viewOffset(value), own.viewBytes(value))
        : new TYPED[type](buffer, own.typedOffset(value), own.typedLength(value));
      return remember(seen, value, copy);
    }
    const kind = own.slice(own.objectToString(value), 8, -1);
    // Most values are plain, and asking for each brand costs an exception each: only what could be something else is asked.
    const prototype = own.getPrototypeOf(value);
    if (kind === 'Object' && (prototype === null || prototype === Boxed.prototype)) return properties(seen, value, remember(seen, value, {}));
    if (is(own.mapSize, value)) {
      const copy = remember(seen, value, new own.Map()), pairs = [];
      own.mapForEach(value, (item, key) => own.push(pairs, key, item));
      for (let at = 0; at < pairs.length; at += 2) own.mapSet(copy, clone(seen, pairs[at]), clone(seen, pairs[at + 1]));
      return copy;
    }
    if (is(own.setSize, value)) {
      const copy = remember(seen, value, new own.Set()), items = [];
      own.setForEach(value, (item) => own.push(items, item));
      for (let at = 0; at < items.length; at++) own.setAdd(copy, clone(seen, items[at]));
      return copy;
    }
    if (is(own.dateTime, value)) return remember(seen, value, new Dated(own.dateTime(value)));
    if (is(own.regexpSource, value) && value !== Expression.prototype) return remember(seen, value, new Expression(own.regexpSource(value), own.regexpFlags(value)));
    if (is(own.bufferLength, value)) return remember(seen, value, buffer(value));
    if (kind === 'Error' || value instanceof own.Error) {
      return value instanceof own.DOMException
        ? remember(seen, value, new own.DOMException(value.message, value.name))
        : error(seen, value);
    }
    if (is(own.numberValue, value)) return remember(seen, value, Boxed(own.numberValue(value)));
    if (is(own.stringValue, value)) return remember(seen, value, Boxed(own.stringValue(value)));
    if (is(own.booleanValue, value)) return remember(seen, value, Boxed(own.booleanValue(value)));
    if (is(own.bigintValue, value)) return remember(seen, value, Boxed(own.bigintValue(value)));
    if (is(own.symbolValue, value)) refuse(value);
    if (kind !== 'Object' && UNCLONEABLE.includes(kind)) refuse(value);
    return properties(seen, value, remember(seen, value, {}));
  };
  const UNCLONEABLE = own.freeze(['Promise', 'WeakMap', 'WeakSet', 'WeakRef', 'Generator', 'AsyncGenerator', 'FinalizationRegistry', 'Event', 'EventTarget', 'AbortSignal', 'AbortController', 'Response', 'Request', 'Headers', 'URL', 'URLSearchParams']);

  own.global('structuredClone', function structuredClone(value, options = undefined) {
    if (arguments.length === 0) throw new own.TypeError('structuredClone takes a value');
    const list = options?.transfer, given = list === undefined ? [] : [...list], seen = new own.Map();
    for (let at = 0; at < given.length; at++) {
      if (!is(own.bufferLength, given[at]) || detached(given[at])) refuse(given[at], 'only an ArrayBuffer that is still there can be transferred');
      if (own.mapHas(seen, given[at])) refuse(given[at], 'it is to be transferred twice');
      own.mapSet(seen, given[at], buffer(given[at]));
    }
    const copy = clone(seen, value);
    // Only now: what could not be cloned has lost nothing.
    for (let at = 0; at < given.length; at++) detach(given[at]);
    return copy;
  });
})();
