// `TextEncoder` and `TextDecoder` (the Encoding Standard), `atob` and `btoa` (forgiving base64 of the Infra Standard).
const bytes = (...list) => new Uint8Array(list);
const decode = (list, label, options) => new TextDecoder(label, options).decode(bytes(...list));

test('TextEncoder supports only utf-8', () => {
  eq(new TextEncoder().encoding, 'utf-8');
  eq(new TextEncoder('utf-16').encoding, 'utf-8');
  eq([...new TextEncoder().encode()], []);
  eq([...new TextEncoder().encode(undefined)], []);
  eq([...new TextEncoder().encode('aä€😀')], [97, 195, 164, 226, 130, 172, 240, 159, 152, 128]);
  eq(Object.prototype.toString.call(new TextEncoder()), '[object TextEncoder]');
});
test('lone surrogates are encoded as U+FFFD', () => {
  for (const text of ['\ud800', '\udc00', 'a\ud800b', '\udc00\ud800', '\ud800\ud800\udc00'])
    eq(new TextDecoder().decode(new TextEncoder().encode(text)), text.toWellFormed());
});
test('encodeInto writes whole characters and returns their number', () => {
  for (const [source, room, read, written] of [['Hi', 3, 2, 2], ['Hi', 1, 1, 1], ['😀', 4, 2, 4], ['😀', 3, 0, 0], ['a€b', 4, 2, 4], ['\ud800x', 3, 1, 3], ['', 5, 0, 0], ['é', 1, 0, 0]]) {
    const into = new Uint8Array(room);
    eq(new TextEncoder().encodeInto(source, into), {read, written}, source);
  }
  throws('TypeError', () => new TextEncoder().encodeInto('x', new Uint16Array(2)));
  throws('TypeError', () => new TextEncoder().encodeInto('x', [1]));
  const shared = new Uint8Array(10).fill(7);
  new TextEncoder().encodeInto('ab', shared.subarray(4, 6));
  eq([...shared], [7, 7, 7, 7, 97, 98, 7, 7, 7, 7]);
});
test('labels', () => {
  for (const [label, name] of [['utf8', 'utf-8'], [' UTF-8\n', 'utf-8'], ['unicode-1-1-utf-8', 'utf-8'], ['x-unicode20utf8', 'utf-8'], ['latin1', 'windows-1252'], ['ascii', 'windows-1252'], ['iso-8859-1', 'windows-1252'], ['cp1252', 'windows-1252'], ['utf-16', 'utf-16le'], ['ucs-2', 'utf-16le'], ['unicodefffe', 'utf-16be'], ['UTF-16BE', 'utf-16be']])
    eq(new TextDecoder(label).encoding, name, label);
  for (const label of ['', 'utf-32', 'utf\u00a08', 'x'.repeat(1000), '\u000butf-8']) throws('RangeError', () => new TextDecoder(label));
});
test('fields', () => {
  const decoder = new TextDecoder('utf-8', {fatal: 1, ignoreBOM: 'x'});
  eq([decoder.fatal, decoder.ignoreBOM, new TextDecoder().fatal, new TextDecoder().ignoreBOM], [true, true, false, false]);
});
test('invalid utf-8', () => {
  for (const [list, text] of [[[0xff], '\ufffd'], [[0xc0], '\ufffd'], [[0xc0, 0x00], '\ufffd\0'], [[0xc0, 0x80], '\ufffd\ufffd'], [[0xe2, 0x82], '\ufffd'], [[0xe2, 0x82, 0x41], '\ufffdA'], [[0xf0, 0x9f, 0x98], '\ufffd'], [[0xed, 0xa0, 0x80], '\ufffd\ufffd\ufffd'], [[0xf4, 0x90, 0x80, 0x80], '\ufffd\ufffd\ufffd\ufffd'], [[0xf0, 0x80, 0x80, 0x80], '\ufffd\ufffd\ufffd\ufffd'], [[0xe0, 0x80, 0x80], '\ufffd\ufffd\ufffd'], [[0xfe, 0xfe], '\ufffd\ufffd']]) {
    eq(decode(list), text, list.join());
    throws('TypeError', () => decode(list, 'utf-8', {fatal: true}));
  }
});
test('the byte order mark', () => {
  eq(decode([0xef, 0xbb, 0xbf, 0x61]), 'a');
  eq(decode([0xef, 0xbb, 0xbf, 0x61], 'utf-8', {ignoreBOM: true}), '\ufeffa');
  eq(decode([0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf]), '\ufeff');
  eq(decode([0xff, 0xfe, 0x61, 0], 'utf-16le'), 'a');
  eq(decode([0xfe, 0xff, 0, 0x61], 'utf-16be'), 'a');
  eq(decode([0xff, 0xfe, 0x61, 0], 'utf-16be'), '\ufffe\u6100');
  const decoder = new TextDecoder();
  eq(decoder.decode(bytes(0xef), {stream: true}) + decoder.decode(bytes(0xbb, 0xbf, 0x61)), 'a');
  eq(decoder.decode(bytes(0xef, 0xbb, 0xbf, 0x62)), 'b');
});
test('utf-16', () => {
  eq(decode([0x3d, 0xd8, 0x00, 0xde], 'utf-16le'), '😀');
  eq(decode([0xd8, 0x3d, 0xde, 0x00], 'utf-16be'), '😀');
  for (const list of [[0, 0xd8], [0, 0xdc], [0], [0, 0xd8, 0, 0], [0, 0xd8, 0]]) throws('TypeError', () => decode(list, 'utf-16le', {fatal: true}));
  eq(decode([0, 0xd8, 0, 0], 'utf-16le'), '\ufffd\0');
  eq(decode([0, 0xd8, 0], 'utf-16le'), '\ufffd');
});
test('windows-1252', () => {
  const high = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ';
  eq(decode(Array.from({length: 32}, (_, i) => 0x80 + i), 'windows-1252'), high);
  eq(decode(Array.from({length: 96}, (_, i) => 0xa0 + i), 'latin1'), String.fromCharCode(...Array.from({length: 96}, (_, i) => 0xa0 + i)));
});
test('a stream may be split at any byte', () => {
  const whole = new TextEncoder().encode('aä€😀\ufeffz');
  for (const [label, all] of [['utf-8', whole], ['utf-16le', bytes(0x61, 0, 0x3d, 0xd8, 0, 0xde, 0xac, 0x20)]]) {
    const wanted = new TextDecoder(label).decode(all);
    for (let one = 0; one <= all.length; one++) for (let two = one; two <= all.length; two++) {
      const decoder = new TextDecoder(label);
      eq(decoder.decode(all.subarray(0, one), {stream: true}) + decoder.decode(all.subarray(one, two), {stream: true}) + decoder.decode(all.subarray(two)), wanted, `${label} ${one} ${two}`);
    }
  }
});
test('a decoder starts again after an error', () => {
  const decoder = new TextDecoder('utf-8', {fatal: true});
  throws('TypeError', () => decoder.decode(bytes(0xff)));
  eq(decoder.decode(bytes(0x41)), 'A');
  throws('TypeError', () => { decoder.decode(bytes(0xe2), {stream: true}); decoder.decode(); });
  eq(decoder.decode(bytes(0x42)), 'B');
});
test('the types that can be decoded', () => {
  const all = bytes(0, 97, 98, 99, 0);
  eq(new TextDecoder().decode(all.buffer), '\0abc\0');
  eq(new TextDecoder().decode(new DataView(all.buffer, 1, 3)), 'abc');
  eq(new TextDecoder().decode(all.subarray(1, 4)), 'abc');
  eq(new TextDecoder().decode(), '');
  eq(new TextDecoder().decode(undefined), '');
  for (const odd of [null, 'abc', 7, {}, [97]]) throws('TypeError', () => new TextDecoder().decode(odd));
});
test('btoa', () => {
  for (const [text, coded] of [['', ''], ['f', 'Zg=='], ['fo', 'Zm8='], ['foo', 'Zm9v'], ['foob', 'Zm9vYg=='], ['fooba', 'Zm9vYmE='], ['foobar', 'Zm9vYmFy'], ['\x00', 'AA=='], ['\xff\xff\xc0', '///A'], [null, 'bnVsbA=='], [12, 'MTI='], [undefined, 'dW5kZWZpbmVk']]) eq(btoa(text), coded);
  for (const text of ['€', 'ab\u0100', '\ud800']) eq(throws('InvalidCharacterError', () => btoa(text)) instanceof DOMException, true);
  throws('TypeError', () => btoa());
});
test('atob accepts what the standard accepts', () => {
  for (const [coded, text] of [['', ''], ['abcd', 'i\xb7\x1d'], [' abcd', 'i\xb7\x1d'], ['ab\t\ncd', 'i\xb7\x1d'], ['ab', 'i'], ['abc', 'i\xb7'], ['ab==', 'i'], ['abc=', 'i\xb7'], ['ab= =', 'i'], ['AA', '\0'], ['//A=', '\xff\xf0'], [null, '\x9e\xe9e'], ['12', '\xd7'], ['a\f\r b', 'i'], ['NaN', '\x35\xa3']]) eq(atob(coded), text, coded);
  for (const coded of ['a', 'abcde', 'ab=', 'a=', '=', '==', '====', 'abcd=', 'abcd==', 'abc==', 'ab==c', 'a=b=', 'ab_-', 'ab\u00a0cd', 'äbcd', ' ', '\x0bab'].filter((coded) => coded !== ' ')) throws('InvalidCharacterError', () => atob(coded));
  eq(atob(' '), '');
});
failures();
