// Hosts of URLs: domains with Punycode, IPv4 and IPv6 addresses, opaque hosts. The URL Standard, "host parsing".
// Invariant: a host that comes out is in its one serialised form; `null` means that it is no host.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;

  /** A percent-encode set as a function of a byte. */
  const among = (text) => {
    const marks = new own.Uint8Array(128);
    for (let at = 0; at < text.length; at++) marks[own.charCodeAt(text, at)] = 1;
    return (byte) => byte < 0x20 || byte > 0x7e || marks[byte] === 1;
  };
  const C0 = (byte) => byte < 0x20 || byte > 0x7e;
  const sets = {
    __proto__: null, C0,
    fragment: among(' "<>`'), query: among(' "#<>'), special: among(" \"#<>'"), path: among(' "#<>?^`{}'),
    user: among(' "#<>?^`{}/:;=@[\\]|'), form: among('!"#$%&\'()+,/:;<=>?@[\\]^`{|}~ '), component: among(' "#<>?^`{}/:;=@[\\]|$%&+,'),
  };
  const HEX = '0123456789ABCDEF';
  const percent = (byte) => `%${HEX[byte >> 4]}${HEX[byte & 15]}`;
  const encodeWith = (text, set) => {
    let plain = true;
    for (let at = 0; at < text.length && plain; at++) plain = !set(own.charCodeAt(text, at));
    if (plain) return text;
    const bytes = own.encode(text);
    let out = '';
    for (let at = 0; at < bytes.length; at++) out += set(bytes[at]) ? percent(bytes[at]) : own.fromCharCode(bytes[at]);
    return out;
  };
  const hexValue = (code) => (code >= 48 && code <= 57 ? code - 48 : code >= 65 && code <= 70 ? code - 55 : code >= 97 && code <= 102 ? code - 87 : -1);
  const percentDecode = (text) => {
    const bytes = own.encode(text);
    const out = new own.Uint8Array(bytes.length);
    let to = 0;
    for (let at = 0; at < bytes.length; at++) {
      const high = bytes[at] === 37 && at + 2 < bytes.length ? hexValue(bytes[at + 1]) : -1;
      const low = high >= 0 ? hexValue(bytes[at + 2]) : -1;
      if (low >= 0) { out[to++] = (high << 4) | low; at += 2; } else out[to++] = bytes[at];
    }
    return own.typedSubarray(out, 0, to);
  };

  /** RFC 3492. */
  const adapt = (delta, points, first) => {
    delta = first ? (delta / 700) | 0 : delta >> 1;
    delta += (delta / points) | 0;
    let k = 0;
    for (; delta > 455; k += 36) delta = (delta / 35) | 0;
    return k + ((36 * delta) / (delta + 38) | 0);
  };
  const digit = (value) => own.fromCharCode(value < 26 ? value + 97 : value + 22);
  const punycode = (points) => {
    let out = '';
    for (let at = 0; at < points.length; at++) if (points[at] < 128) out += own.fromCharCode(points[at]);
    const basic = out.length;
    let handled = basic, n = 128, delta = 0, bias = 72;
    if (basic > 0) out += '-';
    while (handled < points.length) {
      let next = 0x7fffffff;
      for (let at = 0; at < points.length; at++) if (points[at] >= n && points[at] < next) next = points[at];
      delta += (next - n) * (handled + 1);
      n = next;
      for (let at = 0; at < points.length; at++) {
        if (points[at] < n) delta++;
        if (points[at] !== n) continue;
        let q = delta;
        for (let k = 36; ; k += 36) {
          const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
          if (q < t) break;
          out += digit(t + ((q - t) % (36 - t)));
          q = ((q - t) / (36 - t)) | 0;
        }
        out += digit(q);
        bias = adapt(delta, handled + 1, handled === basic);
        delta = 0;
        handled++;
      }
      delta++;
      n++;
    }
    return out;
  };
  const unpunycode = (text) => {
    const points = [];
    let from = 0;
    for (let at = 0; at < text.length; at++) if (text[at] === '-') from = at + 1;
    for (let at = 0; at < from - 1; at++) own.push(points, own.charCodeAt(text, at));
    let n = 128, i = 0, bias = 72;
    for (let at = from; at < text.length;) {
      const old = i;
      for (let w = 1, k = 36; ; k += 36) {
        if (at >= text.length) return null;
        const code = own.charCodeAt(text, at++);
        const value = code >= 48 && code <= 57 ? code - 22 : code >= 97 && code <= 122 ? code - 97 : -1;
        if (value < 0) return null;
        i += value * w;
        if (i > 0x7fffffff) return null;
        const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
        if (value < t) break;
        w *= 36 - t;
      }
      bias = adapt(i - old, points.length + 1, old === 0);
      n += (i / (points.length + 1)) | 0;
      i %= points.length + 1;
      if (n > 0x10ffff || (n >= 0xd800 && n <= 0xdfff)) return null;
      own.splice(points, i++, 0, n);
    }
    return points;
  };
  const pointsOf = (text) => {
    const points = [];
    for (let at = 0; at < text.length; at++) {
      const code = own.codePointAt(text, at);
      own.push(points, code);
      if (code > 0xffff) at++;
    }
    return points;
  };

  // What UTS 46 leaves out, what it forbids beyond ASCII, and marks that no label begins with.
  const IGNORED = /[\u00ad\u034f\u180b-\u180d\u180f\u200b\u2060\u2064\ufe00-\ufe0f\ufeff]/gu;
  const FORBIDDEN_POINT = /[\u0080-\u009f\u00a0\u2000-\u200a\u2028-\u202e\u2061-\u2063\u2065-\u206f\ufff0-\uffff\ud800-\udfff\ue000-\uf8ff\u{e0000}-\u{10ffff}\p{Cn}]/u;
  const MARK = /^\p{M}/u;
  const JOINER = /[\u200c\u200d]/;
  const mapped = (text) => own.normalize(own.toLowerCase(own.normalize(own.replace(own.replace(own.replace(own.replace(text, IGNORED, ''), /[\u3002\uff0e\uff61]/g, '.'), /[\u1e9e]/g, 'ss'), /\u03f4/g, '\u03b8'), 'NFKC')), 'NFC');
  const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/u;

  const validLabel = (label) => {
    if (label === '' || own.test(MARK, label) || own.test(FORBIDDEN_POINT, label)) return false;
    if (own.test(JOINER, label) && !own.test(/[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u0e3a\u0f84\u1039\u103a][\u200c\u200d]/, label)) return false;
    // The Bidi rule, in its main part: no mixing of directions within a label.
    return !own.test(RIGHT_TO_LEFT, label) || !own.test(/[a-z]/, label);
  };
  const toAscii = (domain) => {
    let ascii = true;
    for (let at = 0; at < domain.length && ascii; at++) ascii = own.charCodeAt(domain, at) < 128;
    const labels = own.split(ascii ? own.toLowerCase(domain) : mapped(domain), '.');
    for (let at = 0; at < labels.length; at++) {
      const label = labels[at];
      if (own.indexOf(label, 'xn--') === 0) {
        const points = unpunycode(own.slice(label, 4));
        if (points === null || points.length === 0) return null;
        let back = '';
        for (let p = 0; p < points.length; p++) back += own.fromCodePoint(points[p]);
        let other = false;
        for (let p = 0; p < points.length; p++) other ||= points[p] > 127;
        if (!other || mapped(back) !== back || !validLabel(back)) return null;
      } else {
        const points = pointsOf(label);
        let other = false;
        for (let p = 0; p < points.length; p++) other ||= points[p] > 127;
        if (other) {
          if (!validLabel(label)) return null;
          labels[at] = `xn--${punycode(points)}`;
        }
      }
    }
    const result = own.join(labels, '.');
    return result === '' ? null : result;
  };

  const FORBIDDEN = /[\0\t\n\r #/:<>?@[\\\]^|]/;
  const FORBIDDEN_DOMAIN = /[\0-\x20#%/:<>?@[\\\]^|\x7f]/;

  const number4 = (part) => {
    if (part === '') return null;
    let radix = 10, text = part;
    if (text.length >= 2 && (own.slice(text, 0, 2) === '0x' || own.slice(text, 0, 2) === '0X')) { radix = 16; text = own.slice(text, 2); }
    else if (text.length >= 2 && text[0] === '0') { radix = 8; text = own.slice(text, 1); }
    if (text === '') return 0;
    const form = radix === 10 ? /^[0-9]+$/ : radix === 16 ? /^[0-9a-fA-F]+$/ : /^[0-7]+$/;
    if (!own.test(form, text)) return null;
    let value = 0;
    for (let at = 0; at < text.length; at++) value = value * radix + hexValue(own.charCodeAt(text, at));
    return value;
  };
  const endsInNumber = (text) => {
    const parts = own.split(text, '.');
    let last = parts[parts.length - 1];
    if (last === '') {
      if (parts.length === 1) return false;
      last = parts[parts.length - 2];
    }
    return own.test(/^[0-9]+$/, last) || own.test(/^0[xX][0-9a-fA-F]*$/, last);
  };
  const ipv4 = (text) => {
    const parts = own.split(text, '.');
    if (parts[parts.length - 1] === '' && parts.length > 1) parts.length--;
    if (parts.length > 4) return null;
    let value = 0;
    for (let at = 0; at < parts.length; at++) {
      const number = number4(parts[at]);
      if (number === null) return null;
      const last = at === parts.length - 1;
      if (last ? number >= 256 ** (5 - parts.length) : number > 255) return null;
      value += last ? number : number * 256 ** (3 - at);
    }
    return `${(value / 16777216) | 0}.${(value / 65536 | 0) & 255}.${(value / 256 | 0) & 255}.${value % 256}`;
  };
  const ipv6 = (text) => {
    const pieces = [0, 0, 0, 0, 0, 0, 0, 0];
    let piece = 0, compress = -1, at = 0;
    const code = (place) => (place < text.length ? own.charCodeAt(text, place) : -1);
    if (text[0] === ':') {
      if (text[1] !== ':') return null;
      at = 2;
      compress = ++piece;
    }
    while (at < text.length) {
      if (piece === 8) return null;
      if (text[at] === ':') {
        if (compress >= 0) return null;
        at++;
        compress = ++piece;
        continue;
      }
      let value = 0, length = 0;
      while (length < 4 && hexValue(code(at)) >= 0) { value = value * 16 + hexValue(code(at)); at++; length++; }
      if (text[at] === '.') {
        if (length === 0 || piece > 6) return null;
        at -= length;
        let seen = 0;
        while (at < text.length) {
          let part = -1;
          if (seen > 0) {
            if (text[at] !== '.' || seen >= 4) return null;
            at++;
          }
          if (!(code(at) >= 48 && code(at) <= 57)) return null;
          while (code(at) >= 48 && code(at) <= 57) {
            const number = code(at) - 48;
            if (part === 0) return null;
            part = part < 0 ? number : part * 10 + number;
            if (part > 255) return null;
            at++;
          }
          pieces[piece] = pieces[piece] * 256 + part;
          seen++;
          if (seen === 2 || seen === 4) piece++;
        }
        if (seen !== 4) return null;
        break;
      } else if (text[at] === ':') {
        at++;
        if (at >= text.length) return null;
      } else if (at < text.length) return null;
      pieces[piece++] = value;
    }
    if (compress >= 0) {
      let swaps = piece - compress;
      piece = 7;
      while (piece !== 0 && swaps > 0) {
        const other = compress + swaps - 1;
        const kept = pieces[piece];
        pieces[piece] = pieces[other];
        pieces[other] = kept;
        piece--;
        swaps--;
      }
    } else if (piece !== 8) return null;
    return ipv6Text(pieces);
  };
  const ipv6Text = (pieces) => {
    let best = -1, length = 1;
    for (let at = 0; at < 8; at++) {
      let run = 0;
      while (at + run < 8 && pieces[at + run] === 0) run++;
      if (run > length) { best = at; length = run; }
    }
    let out = '';
    for (let at = 0; at < 8; at++) {
      if (at === best) { out += at === 0 ? '::' : ':'; at += length - 1; continue; }
      out += own.numberToString(pieces[at], 16);
      if (at !== 7) out += ':';
    }
    return `[${out}]`;
  };

  const parse = (text, special) => {
    if (text[0] === '[') return text[text.length - 1] === ']' ? ipv6(own.slice(text, 1, -1)) : null;
    if (!special) return own.test(FORBIDDEN, text) ? null : encodeWith(text, C0);
    const domain = own.decodeUtf8(percentDecode(text));
    const ascii = toAscii(domain);
    if (ascii === null || own.test(FORBIDDEN_DOMAIN, ascii)) return null;
    return endsInNumber(ascii) ? ipv4(ascii) : ascii;
  };
  own.urls = { __proto__: null, parseHost: parse, sets, encodeWith, percentDecode, percent };
})();
