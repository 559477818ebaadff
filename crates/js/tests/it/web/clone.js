// `structuredClone`, as in section 2.7 of the HTML Standard.
test('primitives stay the same', () => { for (const value of [undefined, null, true, false, 0, -0, NaN, Infinity, 'x', '\ud800', 2n ** 70n]) eq(structuredClone(value), value); });
test('boxed primitives stay boxed', () => {
  for (const value of [new Number(-0), new String('x'), new Boolean(false), Object(5n)]) {
    const copy = structuredClone(value);
    eq([typeof copy, Object.getPrototypeOf(copy) === Object.getPrototypeOf(value), Object.is(copy.valueOf(), value.valueOf())], ['object', true, true]);
  }
});
test('dates and regular expressions', () => {
  eq(structuredClone(new Date(86400000)).getTime(), 86400000);
  eq(structuredClone(new Date(NaN)).getTime(), NaN);
  const expression = /a(?<x>.)/giu;
  expression.lastIndex = 5;
  const copy = structuredClone(expression);
  eq([copy.source, copy.flags, copy.lastIndex, copy !== expression], ['a(?<x>.)', 'giu', 0, true]);
});
test('arrays keep holes, length and named properties', () => {
  const array = [1, , 3];
  array.name = 'x';
  array.length = 5;
  const copy = structuredClone(array);
  eq([copy.length, 1 in copy, copy.name, Array.isArray(copy)], [5, false, 'x', true]);
});
test('objects: own enumerable string keys are copied, and getters are called', () => {
  const from = Object.create({inherited: 1}, {hidden: {value: 1}, shown: {get: () => 7, enumerable: true}});
  from[Symbol('s')] = 1;
  eq(structuredClone(from), {shown: 7});
  class Point { constructor() { this.x = 1 } get y() { return 2 } }
  const copy = structuredClone(new Point());
  eq([Object.getPrototypeOf(copy) === Object.prototype, copy], [true, {x: 1}]);
  eq(Object.getOwnPropertyNames(structuredClone({['__proto__']: 5})), ['__proto__']);
});
test('cycles and shared references', () => {
  const ring = {list: []};
  ring.ring = ring;
  ring.list.push(ring, ring.list);
  ring.map = new Map([[ring, new Set([ring])]]);
  const copy = structuredClone(ring);
  eq([copy !== ring, copy.ring === copy, copy.list[0] === copy, copy.list[1] === copy.list, copy.map.get(copy).has(copy)], [true, true, true, true, true]);
});
test('maps and sets', () => {
  const map = new Map([[{a: 1}, 'x'], [NaN, new Map()]]);
  const copy = structuredClone(map);
  eq([copy.size, [...copy.keys()][0], copy.get(NaN) instanceof Map], [2, {a: 1}, true]);
  eq([...structuredClone(new Set([1, 'a', -0]))], [1, 'a', 0]);
});
test('views of one buffer still share it', () => {
  const buffer = new ArrayBuffer(16);
  const [bytes, words, view] = structuredClone([new Uint8Array(buffer, 2, 4), new Uint32Array(buffer, 4, 2), new DataView(buffer, 1)]);
  eq([bytes.buffer === words.buffer, view.buffer === bytes.buffer, bytes.buffer !== buffer], [true, true, true]);
  eq([bytes.byteOffset, bytes.length, words.length, view.byteOffset, view.byteLength], [2, 4, 2, 1, 15]);
  for (const type of [Int8Array, Uint8ClampedArray, Int16Array, Float32Array, Float64Array, BigInt64Array]) eq(structuredClone(new type(3)).constructor === type, true);
});
test('resizable buffers', () => {
  const copy = structuredClone(new ArrayBuffer(8, {maxByteLength: 16}));
  eq([copy.byteLength, copy.resizable, copy.maxByteLength], [8, true, 16]);
});
test('errors', () => {
  for (const type of [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError]) {
    const copy = structuredClone(new type('why', {cause: {a: 1}}));
    eq([Object.getPrototypeOf(copy) === type.prototype, copy.message, copy.cause, Object.hasOwn(copy, 'message'), typeof copy.stack], [true, 'why', {a: 1}, true, 'string']);
    eq(Object.prototype.toString.call(copy), '[object Error]');
  }
  const odd = new Error('x');
  odd.name = 'Odd';
  eq(Object.getPrototypeOf(structuredClone(odd)) === Error.prototype, true);
  odd.name = 'TypeError';
  eq(Object.getPrototypeOf(structuredClone(odd)) === TypeError.prototype, true);
  eq(Object.hasOwn(structuredClone(new Error()), 'message'), false);
  const told = structuredClone(new DOMException('m', 'AbortError'));
  eq([told instanceof DOMException, told.name, told.message, told.code], [true, 'AbortError', 'm', 20]);
});
test('values that cannot be cloned', () => {
  for (const value of [() => 1, Symbol('s'), Object(Symbol('s')), new WeakMap(), new WeakSet(), new WeakRef({}), Promise.resolve(), (function* () {})(), class {}, [() => 1], {a: {b: Symbol()}}, new Map([[1, () => 1]]), new Proxy(() => 1, {}), new FinalizationRegistry(() => 1)]) {
    const error = throws('DataCloneError', () => structuredClone(value));
    eq([error instanceof DOMException, error.code], [true, 25]);
  }
});
test('an error in a getter is the caller\'s', () => eq(throws('RangeError', () => structuredClone({get x() { throw new RangeError('mine') }})).message, 'mine'));
test('only buffers can be transferred', () => {
  throws('TypeError', () => structuredClone());
  const buffer = new Uint8Array([1, 2, 3]).buffer, views = [new Uint8Array(buffer), new Uint8Array(buffer, 1)];
  const copy = structuredClone(views, {transfer: [buffer]});
  eq([buffer.detached, copy[0].buffer === copy[1].buffer, [...copy[1]]], [true, true, [2, 3]]);
  throws('DataCloneError', () => structuredClone(1, {transfer: [buffer]}));
  const kept = new ArrayBuffer(2);
  throws('DataCloneError', () => structuredClone(() => 1, {transfer: [kept]}));
  throws('DataCloneError', () => structuredClone(1, {transfer: [kept, kept]}));
  throws('DataCloneError', () => structuredClone(1, {transfer: [{}]}));
  eq([kept.detached, structuredClone(1, {transfer: []}), structuredClone(1, {})], [false, 1, 1]);
});
failures();
