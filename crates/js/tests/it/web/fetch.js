// `Headers`, `Request` and `Response`: the supported part of the Fetch Standard.
test('headers: names ignore case, values are joined, lists are sorted', () => {
  const headers = new Headers([['B', '2'], ['a', '1'], ['A', ' 3 ']]);
  eq([headers.get('a'), headers.get('b'), headers.get('c'), headers.has('A')], ['1, 3', '2', null, true]);
  eq([...headers], [['a', '1, 3'], ['b', '2']]);
  headers.set('b', 'x');
  headers.delete('A');
  eq([...headers.entries()], [['b', 'x']]);
  eq([...new Headers({x: 1, 'Content-Type': 'y'}).keys()], ['content-type', 'x']);
  eq([...new Headers(new Headers({q: 'r'}))], [['q', 'r']]);
});
test('headers: invalid names and values', () => {
  for (const name of ['', ' ', 'a b', 'ä', 'a:']) throws('TypeError', () => new Headers([[name, 'x']]));
  for (const value of ['a\nb', 'a\0b', '€', '\u0100']) throws('TypeError', () => new Headers({x: value}));
  for (const init of [1, 'x', null, [['a']], [['a', 'b', 'c']]]) throws('TypeError', () => new Headers(init));
  eq(new Headers({x: '\t a b \r\n'}).get('x'), 'a b');
});
test('headers: cookies are not joined', () => {
  const headers = new Headers([['set-cookie', 'a=1'], ['set-cookie', 'b=2'], ['x', 'y']]);
  eq(headers.getSetCookie(), ['a=1', 'b=2']);
  eq([...headers], [['set-cookie', 'a=1'], ['set-cookie', 'b=2'], ['x', 'y']]);
  let seen = [];
  headers.forEach(function (value, name, all) { seen.push(name, value, all === headers, this.me) }, {me: 1});
  eq(seen.slice(0, 4), ['set-cookie', 'a=1', true, 1]);
});
test('a request', async () => {
  const request = new Request('https://example.org/a b?q', {method: 'post', headers: {X: '1'}, body: 'hé'});
  eq([request.method, request.url, request.headers.get('x'), request.headers.get('content-type')], ['POST', 'https://example.org/a%20b?q', '1', 'text/plain;charset=UTF-8']);
  const copy = request.clone();
  eq([request.bodyUsed, await request.text(), request.bodyUsed], [false, 'hé', true]);
  await rejects('TypeError', request.text());
  eq(await copy.text(), 'hé');
  eq(new Request('https://example.org').method, 'GET');
  eq(new Request('https://example.org', {method: 'patch'}).method, 'patch', 'only six names are known without case;');
  throws('TypeError', () => new Request('/relative'));
  throws('TypeError', () => new Request('https://example.org', {body: 'x'}));
  for (const method of ['TRACE', 'connect', 'a b']) throws('TypeError', () => new Request('https://example.org', {method}));
  throws('TypeError', () => new Request('https://user:word@example.org/'));
  const form = new Request('https://example.org', {method: 'PUT', body: new URLSearchParams({a: 'b c'})});
  eq([form.headers.get('content-type'), await form.text()], ['application/x-www-form-urlencoded;charset=UTF-8', 'a=b+c']);
});
test('a response', async () => {
  const response = new Response('{"a":1}', {status: 201, statusText: 'Made', headers: {a: 'b'}});
  eq([response.status, response.ok, response.statusText, response.headers.get('a'), response.type, response.url, response.redirected], [201, true, 'Made', 'b', 'default', '', false]);
  eq(await response.clone().json(), {a: 1});
  eq([...new Uint8Array(await response.arrayBuffer())].length, 7);
  await rejects('TypeError', response.json());
  eq([new Response().status, new Response().body, await new Response().text()], [200, null, '']);
  for (const status of [0, 100, 199, 600, 1000]) throws('RangeError', () => new Response('', {status}));
  for (const status of [204, 205, 304]) throws('TypeError', () => new Response('x', {status}));
  eq(new Response(null, {status: 204}).status, 204);
  eq([...await new Response(new Uint8Array([1, 2, 3]).subarray(1)).bytes()], [2, 3]);
  eq(await new Response(new Uint8Array([0xef, 0xbb, 0xbf, 0x61])).text(), 'a');
  await rejects('SyntaxError', new Response('{').json());
});
test('Response.error, Response.redirect and Response.json', async () => {
  const made = Response.json({x: [1]}, {status: 418});
  eq([made.headers.get('content-type'), made.status, await made.text()], ['application/json', 418, '{"x":[1]}']);
  throws('TypeError', () => Response.json(undefined));
  eq([Response.error().type, Response.error().status], ['error', 0]);
  const moved = Response.redirect('https://example.org/x', 301);
  eq([moved.status, moved.headers.get('location')], [301, 'https://example.org/x']);
  throws('RangeError', () => Response.redirect('https://example.org', 200));
});
test('a body is copied when a response is made', async () => {
  const bytes = new Uint8Array([97]);
  const response = new Response(bytes);
  bytes[0] = 98;
  eq(await response.text(), 'a');
});
failures();
