// `crypto` (random values, UUIDs, digests) and `performance`.
// Invariant: randomness is the host's, asked for each time; none is kept in the heap.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;
  const INTEGERS = { __proto__: null, Int8Array: 1, Uint8Array: 1, Uint8ClampedArray: 1, Int16Array: 1, Uint16Array: 1, Int32Array: 1, Uint32Array: 1, BigInt64Array: 1, BigUint64Array: 1 };
  const ALGORITHMS = { __proto__: null, 'SHA-1': 1, 'SHA-256': 1, 'SHA-384': 1, 'SHA-512': 1 };

  class SubtleCrypto {
    digest(algorithm, data) {
      return new own.Promise((resolve, reject) => {
        const given = typeof algorithm === 'object' && algorithm !== null ? algorithm.name : algorithm;
        const name = own.toUpperCase(own.String(given));
        if (!(name in ALGORITHMS)) { reject(new own.DOMException(`the digest ${name} is not available; SHA-1, SHA-256, SHA-384 and SHA-512 are`, 'NotSupportedError')); return; }
        const bytes = own.bytesOf(data);
        if (bytes === undefined) { reject(new own.TypeError('digest takes an ArrayBuffer or a view of one')); return; }
        const made = host.digest(name, bytes);
        resolve(own.bufferSlice(own.typedBuffer(made), own.typedOffset(made), own.typedOffset(made) + own.typedBytes(made)));
      });
    }
  }
  own.tag(SubtleCrypto.prototype, 'SubtleCrypto');
  own.enumerable(SubtleCrypto.prototype, 'digest');

  class Crypto {
    #subtle = new SubtleCrypto();
    get subtle() { return this.#subtle; }
    getRandomValues(array) {
      if (!own.isView(array) || !(own.typedTag(array) in INTEGERS)) throw new own.DOMException('getRandomValues fills an array of integers', 'TypeMismatchError');
      const length = own.typedBytes(array);
      if (length > 65536) throw new own.DOMException(`getRandomValues fills at most 65536 bytes, not ${length}`, 'QuotaExceededError');
      own.typedSet(new own.Uint8Array(own.typedBuffer(array), own.typedOffset(array), length), host.random(length));
      return array;
    }
    randomUUID() {
      const bytes = host.random(16);
      bytes[6] = (bytes[6] & 0x0f) | 0x40;
      bytes[8] = (bytes[8] & 0x3f) | 0x80;
      let out = '';
      for (let at = 0; at < 16; at++)
        out += (at === 4 || at === 6 || at === 8 || at === 10 ? '-' : '') + own.padStart(own.numberToString(bytes[at], 16), 2, '0');
      return out;
    }
  }
  own.tag(Crypto.prototype, 'Crypto');
  own.enumerable(Crypto.prototype, 'subtle', 'getRandomValues', 'randomUUID');
  own.global('crypto', new Crypto());

  // A heap outlives processes, so time is counted from 1970 and not from a start that nobody remembers.
  class Performance {
    get timeOrigin() { return 0; }
    now() { return host.now(); }
    toJSON() { return { timeOrigin: 0 }; }
  }
  own.tag(Performance.prototype, 'Performance');
  own.enumerable(Performance.prototype, 'timeOrigin', 'now', 'toJSON');
  const before = globalThis.performance;
  if (before !== undefined) delete globalThis.performance;
  own.global('performance', new Performance());
})();
