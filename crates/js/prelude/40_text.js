// `TextEncoder`, `TextDecoder` (UTF-8, UTF-16LE, UTF-16BE, windows-1252), `atob`, `btoa`.
// Invariant: bytes that are no text become U+FFFD exactly as the Encoding Standard says, or an error when `fatal` is asked for.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;
  const Bytes = own.Uint8Array;

  const encode = (text) => {
    const bytes = new Bytes(text.length * 3);
    let to = 0;
    for (let at = 0; at < text.length; at++) {
      let code = own.charCodeAt(text, at);
      if (code >= 0xd800 && code <= 0xdfff) {
        const next = code < 0xdc00 && at + 1 < text.length ? own.charCodeAt(text, at + 1) : 0;
        if (next >= 0xdc00 && next <= 0xdfff) { code = 0x10000 + ((code - 0xd800) << 10) + (next - 0xdc00); at++; }
        else code = 0xfffd;
      }
      if (code < 0x80) bytes[to++] = code;
      else if (code < 0x800) { bytes[to++] = 0xc0 | (code >> 6); bytes[to++] = 0x80 | (code & 63); }
      else if (code < 0x10000) { bytes[to++] = 0xe0 | (code >> 12); bytes[to++] = 0x80 | ((code >> 6) & 63); bytes[to++] = 0x80 | (code & 63); }
      else { bytes[to++] = 0xf0 | (code >> 18); bytes[to++] = 0x80 | ((code >> 12) & 63); bytes[to++] = 0x80 | ((code >> 6) & 63); bytes[to++] = 0x80 | (code & 63); }
    }
    return own.typedSlice(bytes, 0, to);
  };
  own.encode = encode;

  class TextEncoder {
    get encoding() { return 'utf-8'; }
    encode(text = '') { return encode(own.String(text)); }
    encodeInto(source, into) {
      const text = own.String(source);
      if (own.typedTag(into) !== 'Uint8Array') throw new own.TypeError('encodeInto writes to a Uint8Array');
      const room = own.typedLength(into);
      let read = 0, written = 0;
      while (read < text.length) {
        const code = own.codePointAt(text, read);
        const units = code > 0xffff ? 2 : 1;
        const bytes = encode(own.slice(text, read, read + units));
        if (written + bytes.length > room) break;
        own.typedSet(into, bytes, written);
        written += bytes.length;
        read += units;
      }
      return { read, written };
    }
  }
  own.tag(TextEncoder.prototype, 'TextEncoder');
  own.enumerable(TextEncoder.prototype, 'encoding', 'encode', 'encodeInto');
  own.global('TextEncoder', TextEncoder);

  /** Collects characters in pieces: a string grown by one character at a time is slow. */
  const collector = () => {
    const parts = [];
    let units = [];
    return {
      __proto__: null,
      add(code) {
        if (code > 0xffff) { own.push(units, 0xd800 + ((code - 0x10000) >> 10), 0xdc00 + ((code - 0x10000) & 0x3ff)); }
        else own.push(units, code);
        if (units.length >= 4096) { own.push(parts, own.apply(own.fromCharCode, undefined, units)); units = []; }
      },
      text() {
        own.push(parts, own.apply(own.fromCharCode, undefined, units));
        units = [];
        return own.join(parts, '');
      },
    };
  };

  const utf8 = () => {
    let needed = 0, seen = 0, point = 0, lower = 0x80, upper = 0xbf;
    const reset = () => { needed = seen = point = 0; lower = 0x80; upper = 0xbf; };
    return {
      __proto__: null,
      feed(bytes, emit, bad) {
        for (let at = 0; at < bytes.length; at++) {
          const byte = bytes[at];
          if (needed === 0) {
            if (byte < 0x80) emit(byte);
            else if (byte >= 0xc2 && byte <= 0xdf) { needed = 1; point = byte & 0x1f; }
            else if (byte >= 0xe0 && byte <= 0xef) {
              if (byte === 0xe0) lower = 0xa0;
              if (byte === 0xed) upper = 0x9f;
              needed = 2; point = byte & 0xf;
            } else if (byte >= 0xf0 && byte <= 0xf4) {
              if (byte === 0xf0) lower = 0x90;
              if (byte === 0xf4) upper = 0x8f;
              needed = 3; point = byte & 0x7;
            } else bad();
            continue;
          }
          if (byte < lower || byte > upper) { reset(); at--; bad(); continue; }
          lower = 0x80; upper = 0xbf;
          point = (point << 6) | (byte & 0x3f);
          if (++seen === needed) { const whole = point; reset(); emit(whole); }
        }
      },
      end(bad) { if (needed !== 0) { reset(); bad(); } },
    };
  };

  const utf16 = (big) => () => {
    let lead = -1, surrogate = -1;
    const unit = (code, emit, bad) => {
      if (surrogate >= 0) {
        const high = surrogate;
        surrogate = -1;
        if (code >= 0xdc00 && code <= 0xdfff) { emit(0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00)); return; }
        bad();
      }
      if (code >= 0xd800 && code <= 0xdbff) surrogate = code;
      else if (code >= 0xdc00 && code <= 0xdfff) bad();
      else emit(code);
    };
    return {
      __proto__: null,
      feed(bytes, emit, bad) {
        for (let at = 0; at < bytes.length; at++) {
          if (lead < 0) { lead = bytes[at]; continue; }
          const code = big ? (lead << 8) | bytes[at] : (bytes[at] << 8) | lead;
          lead = -1;
          unit(code, emit, bad);
        }
      },
      end(bad) {
        if (lead >= 0 || surrogate >= 0) { lead = surrogate = -1; bad(); }
      },
    };
  };

  const HIGH = [
    0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152, 0x8d, 0x17d, 0x8f,
    0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a, 0x153, 0x9d, 0x17e, 0x178,
  ];
  const windows1252 = () => ({
    __proto__: null,
    feed(bytes, emit) {
      for (let at = 0; at < bytes.length; at++) emit(bytes[at] >= 0x80 && bytes[at] < 0xa0 ? HIGH[bytes[at] - 0x80] : bytes[at]);
    },
    end() {},
  });

  const DECODERS = { __proto__: null, 'utf-8': utf8, 'utf-16le': utf16(false), 'utf-16be': utf16(true), 'windows-1252': windows1252 };
  const LABELS = { __proto__: null };
  const label = (name, text) => {
    const names = own.split(text, ' ');
    for (let at = 0; at < names.length; at++) LABELS[names[at]] = name;
  };
  label('utf-8', 'unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8');
  label('utf-16le', 'csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le');
  label('utf-16be', 'unicodefffe utf-16be');
  label('windows-1252', 'ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252');

  class TextDecoder {
    #encoding; #fatal; #ignoreBOM; #decoder; #started = false;
    constructor(label = 'utf-8', options = undefined) {
      const name = own.toLowerCase(own.replace(own.String(label), /^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, ''));
      this.#encoding = LABELS[name];
      if (this.#encoding === undefined) throw new own.RangeError(`the encoding '${label}' is not available; utf-8, utf-16le, utf-16be and windows-1252 are`);
      this.#fatal = !!options?.fatal;
      this.#ignoreBOM = !!options?.ignoreBOM;
      this.#decoder = DECODERS[this.#encoding]();
    }
    get encoding() { return this.#encoding; }
    get fatal() { return this.#fatal; }
    get ignoreBOM() { return this.#ignoreBOM; }
    decode(input = undefined, options = undefined) {
      const bytes = input === undefined ? new Bytes(0) : own.bytesOf(input);
      if (bytes === undefined) throw new own.TypeError('decode takes an ArrayBuffer or a view of one');
      const out = collector();
      const bad = () => {
        if (this.#fatal) throw new own.TypeError(`the bytes are not ${this.#encoding}`);
        this.#started = true;
        out.add(0xfffd);
      };
      const emit = (code) => {
        const first = !this.#started;
        this.#started = true;
        if (!(first && code === 0xfeff && !this.#ignoreBOM && this.#encoding !== 'windows-1252')) out.add(code);
      };
      try {
        this.#decoder.feed(bytes, emit, bad);
        if (!options?.stream) this.#decoder.end(bad);
      } catch (error) {
        this.#decoder = DECODERS[this.#encoding]();
        this.#started = false;
        throw error;
      }
      if (!options?.stream) this.#started = false;
      return out.text();
    }
  }
  own.tag(TextDecoder.prototype, 'TextDecoder');
  own.enumerable(TextDecoder.prototype, 'encoding', 'fatal', 'ignoreBOM', 'decode');
  own.global('TextDecoder', TextDecoder);
  own.decodeUtf8 = (bytes) => {
    const out = collector(), decoder = utf8();
    const bad = () => out.add(0xfffd);
    decoder.feed(bytes, out.add, bad);
    decoder.end(bad);
    return out.text();
  };

  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const VALUES = new Bytes(128).fill(255);
  for (let at = 0; at < 64; at++) VALUES[own.charCodeAt(ALPHABET, at)] = at;

  own.toBase64 = (bytes) => {
    const parts = [];
    let text = '';
    for (let at = 0; at < bytes.length; at += 3) {
      const a = bytes[at], b = bytes[at + 1], c = bytes[at + 2];
      text += ALPHABET[a >> 2] + ALPHABET[((a & 3) << 4) | (b >> 4)] + (b === undefined ? '=' : ALPHABET[((b & 15) << 2) | (c >> 6)]) + (c === undefined ? '=' : ALPHABET[c & 63]);
      if (text.length > 8192) { own.push(parts, text); text = ''; }
    }
    own.push(parts, text);
    return own.join(parts, '');
  };
  /** Forgiving base64; undefined when it is none. */
  own.fromBase64 = (given) => {
    let text = own.replace(given, /[\t\n\f\r ]+/g, '');
    if (text.length % 4 === 0) text = own.replace(text, /={1,2}$/, '');
    if (text.length % 4 === 1) return undefined;
    const bytes = new Bytes((text.length * 3) >> 2);
    let bits = 0, count = 0, to = 0;
    for (let at = 0; at < text.length; at++) {
      const code = own.charCodeAt(text, at), value = code < 128 ? VALUES[code] : 255;
      if (value === 255) return undefined;
      bits = (bits << 6) | value;
      count += 6;
      if (count >= 8) { count -= 8; bytes[to++] = (bits >> count) & 255; }
    }
    return bytes;
  };
  own.global('btoa', function btoa(text) {
    if (arguments.length === 0) throw new own.TypeError('btoa takes a string');
    const given = own.String(text);
    const bytes = new Bytes(given.length);
    for (let at = 0; at < given.length; at++) {
      const code = own.charCodeAt(given, at);
      if (code > 255) throw new own.DOMException('btoa takes characters up to U+00FF only', 'InvalidCharacterError');
      bytes[at] = code;
    }
    return own.toBase64(bytes);
  });
  own.global('atob', function atob(text) {
    if (arguments.length === 0) throw new own.TypeError('atob takes a string');
    const bytes = own.fromBase64(own.String(text));
    if (bytes === undefined) throw new own.DOMException('the text is not base64', 'InvalidCharacterError');
    const out = collector();
    for (let at = 0; at < bytes.length; at++) out.add(bytes[at]);
    return out.text();
  });
})();
