// Timers, microtasks, crypto, performance, and the parts of URLs that the shared test data does not cover.
test('microtasks come before timers, in order', async () => {
  const seen = [];
  const over = new Promise((done) => setTimeout(() => { seen.push('timer'); done() }, 0));
  queueMicrotask(() => seen.push('micro 1'));
  Promise.resolve().then(() => { seen.push('promise'); queueMicrotask(() => seen.push('micro 2')) });
  seen.push('now');
  await over;
  eq(seen, ['now', 'micro 1', 'promise', 'micro 2', 'timer']);
});
test('a callback that is no function is refused', () => {
  for (const odd of [undefined, null, 'x', {}, 1]) throws('TypeError', () => queueMicrotask(odd));
});
test('timers pass arguments, have different ids, and can be cleared', async () => {
  const seen = [];
  const one = setTimeout((...rest) => seen.push(rest), 1, 'a', 2);
  const two = setTimeout(() => seen.push('never'), 1);
  eq([typeof one, one > 0, one !== two], ['number', true, true]);
  clearTimeout(two);
  clearTimeout(two);
  clearTimeout(undefined);
  clearTimeout(999999);
  await new Promise((done) => setTimeout(done, 5));
  eq(seen, [['a', 2]]);
});
test('an interval repeats until it is cleared, also by its own callback', async () => {
  let count = 0;
  await new Promise((done) => { const id = setInterval(() => { if (++count === 3) { clearInterval(id); done() } }, 1) });
  await new Promise((done) => setTimeout(done, 5));
  eq(count, 3);
});
test('timers fire in the order of their delays', async () => {
  const seen = [];
  await Promise.all([[3, 'c'], [1, 'a'], [2, 'b'], [1, 'a2']].map(([ms, name]) => new Promise((done) => setTimeout(() => { seen.push(name); done() }, ms * 10))));
  eq(seen, ['a', 'a2', 'b', 'c']);
});
test('random values', () => {
  for (const type of [Int8Array, Uint8Array, Uint8ClampedArray, Int16Array, Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array]) {
    const array = new type(32);
    eq(crypto.getRandomValues(array) === array, true);
    eq([...array].every((value) => value == 0), false, type.name);
  }
  for (const odd of [new Float32Array(1), new Float64Array(1), new DataView(new ArrayBuffer(1))]) throws('TypeMismatchError', () => crypto.getRandomValues(odd));
  eq(crypto.getRandomValues(new Uint8Array(65536)).length, 65536);
  throws('QuotaExceededError', () => crypto.getRandomValues(new Uint8Array(65537)));
  eq(crypto.getRandomValues(new Uint8Array(0)).length, 0);
  const part = new Uint8Array(64);
  crypto.getRandomValues(part.subarray(32));
  eq([...part.subarray(0, 32)].every((value) => value === 0), true);
});
test('randomUUID', () => {
  const names = new Set(Array.from({length: 1000}, () => crypto.randomUUID()));
  eq(names.size, 1000);
  eq([...names].every((name) => /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(name)), true);
});
test('invalid digests are refused', async () => {
  await rejects('NotSupportedError', crypto.subtle.digest('MD5', new Uint8Array(1)));
  await rejects('TypeError', crypto.subtle.digest('SHA-1', 'text'));
  await rejects('NotSupportedError', crypto.subtle.digest({}, new Uint8Array(1)));
  eq((await crypto.subtle.digest({name: 'sha-512'}, new ArrayBuffer(0))).byteLength, 64);
  const view = new DataView(new Uint8Array([9, 97, 98, 99, 9]).buffer, 1, 3);
  eq([...new Uint8Array(await crypto.subtle.digest('SHA-1', view))].slice(0, 4), [0xa9, 0x99, 0x3e, 0x36]);
});
test('performance and dates agree', () => {
  const before = Date.now(), now = performance.timeOrigin + performance.now(), after = Date.now();
  eq(now >= before - 1 && now <= after + 1, true);
});
test('URL: invalid URLs, and URL.canParse', () => {
  for (const given of [['x'], [''], ['http://'], ['//a'], ['/p', 'x'], ['http://a b/'], ['http://[::1'], ['http://1.2.3.256'], ['http://a:65536'], ['https://exa%23mple.org']]) { throws('TypeError', () => new URL(...given)); eq([URL.canParse(...given), URL.parse(...given)], [false, null]); }
  eq([URL.canParse('/p', 'http://h'), URL.parse('/p', 'http://h').href], [true, 'http://h/p']);
  throws('TypeError', () => URL('http://h'));
  const url = new URL('http://h/?a=1');
  eq([String(url), JSON.stringify(url), url.origin, Object.prototype.toString.call(url)], ['http://h/?a=1', '"http://h/?a=1"', 'http://h', '[object URL]']);
  eq([new URL('blob:https://h:1/x').origin, new URL('data:x').origin, new URL('file:///x').origin], ['https://h:1', 'null', 'null']);
});
test('URL: changes of the URL and of its searchParams are visible in both', () => {
  const url = new URL('http://h/?a=1&b=2#f'), params = url.searchParams;
  eq(url.searchParams === params, true);
  params.append('c', 'ä +&');
  eq(url.href, 'http://h/?a=1&b=2&c=%C3%A4+%2B%26#f');
  url.search = '?x=y';
  eq([params.get('x'), params.size, params.get('a')], ['y', 1, null]);
  params.delete('x');
  eq(url.href, 'http://h/#f');
  url.search = '';
  eq(url.href, 'http://h/#f');
});
test('URLSearchParams: the forms of its constructor argument', () => {
  for (const [init, text] of [['', ''], ['?a=b', 'a=b'], ['??a', '%3Fa='], ['a=b=c', 'a=b%3Dc'], ['&&a&', 'a='], ['a+b=%20', 'a+b=+'], ['%zz=%', '%25zz=%25'], ['=', '='], [[['a', 'b'], ['a', 'c']], 'a=b&a=c'], [{x: 1, y: null}, 'x=1&y=null'], [new URLSearchParams('q=1'), 'q=1'], [new Map([['m', '2']]), 'm=2'], ['a=\ud800', 'a=%EF%BF%BD'], [undefined, ''], [null, 'null=']]) eq(String(new URLSearchParams(init)), text, String(init));
  for (const init of [[['a']], [['a', 'b', 'c']], [1]]) throws('TypeError', () => new URLSearchParams(init));
  throws('TypeError', () => new URLSearchParams({[Symbol('s')]: 1}));
});
test('URLSearchParams: reading and changing', () => {
  const params = new URLSearchParams('a=1&b=2&a=3&c=');
  eq([params.get('a'), params.getAll('a'), params.get('x'), params.getAll('x'), params.has('c'), params.has('a', '3'), params.has('a', '4'), params.size], ['1', ['1', '3'], null, [], true, true, false, 4]);
  params.set('a', '9');
  eq(String(params), 'a=9&b=2&c=');
  params.delete('b', 'x');
  params.delete('c', '');
  eq(String(params), 'a=9&b=2');
  eq([[...params.keys()], [...params.values()], [...params]], [['a', 'b'], ['9', '2'], [['a', '9'], ['b', '2']]]);
  const sorted = new URLSearchParams('z=1&\ufffd=2&😀=3&a=4&z=0');
  sorted.sort();
  eq([...sorted.keys()], ['a', 'z', 'z', '😀', '\ufffd'], 'by code units, and stable;');
  eq(sorted.getAll('z'), ['1', '0']);
  const seen = [];
  params.forEach((value, name, all) => seen.push(name + value + (all === params)));
  eq(seen, ['a9true', 'b2true']);
  for (const method of ['append', 'set']) throws('TypeError', () => params[method]('a'));
  for (const method of ['get', 'getAll', 'has', 'delete']) throws('TypeError', () => params[method]());
  const live = new URLSearchParams('a=1&b=2&c=3'), met = [];
  for (const [name] of live) { met.push(name); live.delete(name); }
  eq(met, ['a', 'c'], 'an iterator sees what is there when it moves;');
});
test('interfaces look like the web\'s', () => {
  for (const [holder, name] of [[URL.prototype, 'href'], [URL.prototype, 'toJSON'], [URLSearchParams.prototype, 'append'], [TextDecoder.prototype, 'decode'], [Headers.prototype, 'get'], [EventTarget.prototype, 'dispatchEvent'], [AbortSignal.prototype, 'aborted'], [Event.prototype, 'type'], [Response.prototype, 'text'], [Response.prototype, 'status']]) {
    const found = Object.getOwnPropertyDescriptor(holder, name) ?? Object.getOwnPropertyDescriptor(Object.getPrototypeOf(holder), name);
    eq([name, found?.enumerable, found?.configurable], [name, true, true]);
  }
  for (const name of ['URL', 'TextEncoder', 'crypto', 'fetch', 'console', 'structuredClone', 'setTimeout', 'atob', 'performance']) {
    const found = Object.getOwnPropertyDescriptor(globalThis, name);
    eq([name, found.enumerable, found.configurable], [name, false, true]);
  }
});
failures();
