// `Headers`, `Request`, `Response` and `fetch`, whose calls the host makes where the server's policy allows the origin.
// Invariant: what goes to the host is data: method, URL, headers, and the body as base64. Bodies are whole, there are no streams.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;
  const NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  const headerName = (value) => {
    const name = own.String(value);
    if (!own.test(NAME, name)) throw new own.TypeError(`${own.inspect(name)} is not a header's name`);
    return own.toLowerCase(name);
  };
  const headerValue = (value) => {
    const text = own.replace(own.String(value), /^[\t\n\r ]+|[\t\n\r ]+$/g, '');
    if (own.test(/[\0\n\r]|[^\0-\xff]/, text)) throw new own.TypeError(`${own.inspect(text)} is not a header's value`);
    return text;
  };

  class Headers {
    #list = [];
    constructor(init = undefined) {
      if (init === undefined) return;
      if (typeof init !== 'object' || init === null) throw new own.TypeError('Headers takes pairs or an object');
      if (typeof init[own.Symbol.iterator] === 'function') {
        for (const pair of init) {
          const both = [...pair];
          if (both.length !== 2) throw new own.TypeError('Headers takes pairs');
          this.append(both[0], both[1]);
        }
      } else {
        const names = own.keys(init);
        for (let at = 0; at < names.length; at++) this.append(names[at], init[names[at]]);
      }
    }
    append(name, value) { own.push(this.#list, [headerName(name), headerValue(value)]); }
    delete(name) {
      const wanted = headerName(name), kept = [];
      for (let at = 0; at < this.#list.length; at++) if (this.#list[at][0] !== wanted) own.push(kept, this.#list[at]);
      this.#list = kept;
    }
    get(name) {
      const wanted = headerName(name);
      let found = null;
      for (let at = 0; at < this.#list.length; at++)
        if (this.#list[at][0] === wanted) found = found === null ? this.#list[at][1] : `${found}, ${this.#list[at][1]}`;
      return found;
    }
    getSetCookie() {
      const out = [];
      for (let at = 0; at < this.#list.length; at++) if (this.#list[at][0] === 'set-cookie') own.push(out, this.#list[at][1]);
      return out;
    }
    has(name) { return this.get(name) !== null; }
    set(name, value) {
      const key = headerName(name), text = headerValue(value);
      this.delete(key);
      own.push(this.#list, [key, text]);
    }
    #sorted() {
      const names = [], out = [];
      for (let at = 0; at < this.#list.length; at++) if (!names.includes(this.#list[at][0])) own.push(names, this.#list[at][0]);
      own.sort(names);
      for (let at = 0; at < names.length; at++) {
        if (names[at] !== 'set-cookie') { own.push(out, [names[at], this.get(names[at])]); continue; }
        const cookies = this.getSetCookie();
        for (let c = 0; c < cookies.length; c++) own.push(out, ['set-cookie', cookies[c]]);
      }
      return out;
    }
    forEach(work, self) {
      const pairs = this.#sorted();
      for (let at = 0; at < pairs.length; at++) own.apply(work, self, [pairs[at][1], pairs[at][0], this]);
    }
    *keys() { const pairs = this.#sorted(); for (let at = 0; at < pairs.length; at++) yield pairs[at][0]; }
    *values() { const pairs = this.#sorted(); for (let at = 0; at < pairs.length; at++) yield pairs[at][1]; }
    *entries() { const pairs = this.#sorted(); for (let at = 0; at < pairs.length; at++) yield pairs[at]; }
    *[Symbol.iterator]() { yield* this.entries(); }
  }
  own.tag(Headers.prototype, 'Headers');
  own.enumerable(Headers.prototype, 'append', 'delete', 'get', 'getSetCookie', 'has', 'set', 'forEach', 'keys', 'values', 'entries');
  own.global('Headers', Headers);

  /** Bytes of a body, and the type that goes with them. */
  const extract = (body) => {
    if (body === undefined || body === null) return { bytes: null, type: null };
    const bytes = own.bytesOf(body);
    if (bytes !== undefined) return { bytes: own.typedSlice(bytes), type: null };
    if (body instanceof URLSearchParams) return { bytes: own.encode(body.toString()), type: 'application/x-www-form-urlencoded;charset=UTF-8' };
    return { bytes: own.encode(own.usv(body)), type: 'text/plain;charset=UTF-8' };
  };

  let bytesOfBody;
  class Body {
    #bytes; #used = false;
    constructor(bytes) { this.#bytes = bytes; }
    static { bytesOfBody = (body) => body.#bytes; }
    get bodyUsed() { return this.#used; }
    get body() {
      if (this.#bytes === null) return null;
      throw new own.TypeError('streams are not available; read text(), json(), arrayBuffer() or bytes()');
    }
    #take() {
      if (this.#used) throw new own.TypeError('the body was read already');
      if (this.#bytes !== null) this.#used = true;
      return this.#bytes ?? new own.Uint8Array(0);
    }
    async arrayBuffer() { const bytes = this.#take(); return own.bufferSlice(own.typedBuffer(bytes), own.typedOffset(bytes), own.typedOffset(bytes) + own.typedBytes(bytes)); }
    async bytes() { return own.typedSlice(this.#take()); }
    async text() { return own.decodeUtf8(withoutBom(this.#take())); }
    async json() { return own.parse(own.decodeUtf8(withoutBom(this.#take()))); }
  }
  const withoutBom = (bytes) => (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? own.typedSubarray(bytes, 3) : bytes);

  /** Six methods are known in any case; another one is what it is. */
  const methodName = (value) => {
    const name = own.String(value), upper = own.toUpperCase(name);
    return own.test(/^(?:DELETE|GET|HEAD|OPTIONS|POST|PUT)$/, upper) ? upper : name;
  };

  own.enumerable(Body.prototype, 'bodyUsed', 'body', 'arrayBuffer', 'bytes', 'text', 'json');

  class Request extends Body {
    #method; #url; #headers; #signal;
    constructor(input, init = {}) {
      const from = input instanceof Request ? input : null;
      const parsed = from ? null : new URL(input);
      const url = from ? from.#url : parsed.href;
      const method = methodName(init?.method ?? (from ? from.#method : 'GET'));
      if (from === null && (parsed.username !== '' || parsed.password !== '')) throw new own.TypeError('a request takes no user and no password in its URL');
      if (!own.test(NAME, method) || own.test(/^(?:CONNECT|TRACE|TRACK)$/i, method)) throw new own.TypeError(`the method ${method} is not available`);
      const given = init?.body === undefined && from ? { bytes: bytesOfBody(from), type: null } : extract(init?.body);
      if (given.bytes !== null && (method === 'GET' || method === 'HEAD')) throw new own.TypeError(`${method} has no body`);
      super(given.bytes);
      this.#url = url;
      this.#method = method;
      this.#headers = new Headers(init?.headers ?? (from ? from.#headers : undefined));
      if (given.type !== null && !this.#headers.has('content-type')) this.#headers.set('content-type', given.type);
      this.#signal = init?.signal ?? (from ? from.#signal : null);
    }
    get method() { return this.#method; }
    get url() { return this.#url; }
    get headers() { return this.#headers; }
    get signal() { return this.#signal; }
    clone() { return new Request(this); }
  }
  own.tag(Request.prototype, 'Request');
  own.enumerable(Request.prototype, 'method', 'url', 'headers', 'signal', 'clone');
  own.global('Request', Request);

  let answered;
  class Response extends Body {
    #status; #statusText; #headers; #url = ''; #type = 'default';
    constructor(body = null, init = {}) {
      const status = init?.status === undefined ? 200 : own.Number(init.status);
      if (!(status >= 200 && status <= 599)) throw new own.RangeError(`${init.status} is not a status between 200 and 599`);
      const given = extract(body);
      if (given.bytes !== null && (status === 204 || status === 205 || status === 304)) throw new own.TypeError(`a ${status} has no body`);
      super(given.bytes);
      this.#status = status;
      this.#statusText = own.String(init?.statusText ?? '');
      this.#headers = new Headers(init?.headers);
      if (given.type !== null && !this.#headers.has('content-type')) this.#headers.set('content-type', given.type);
    }
    static {
      answered = (answer, url) => {
        const bytes = answer.body === undefined || answer.body === null ? null : own.fromBase64(answer.body) ?? null;
        const empty = answer.status === 204 || answer.status === 205 || answer.status === 304;
        const response = new Response(empty ? null : bytes, { status: answer.status >= 200 && answer.status <= 599 ? answer.status : 200, headers: answer.headers });
        response.#status = answer.status;
        response.#statusText = answer.statusText ?? '';
        response.#url = answer.url ?? url;
        response.#type = 'basic';
        return response;
      };
    }
    get status() { return this.#status; }
    get ok() { return this.#status >= 200 && this.#status <= 299; }
    get statusText() { return this.#statusText; }
    get headers() { return this.#headers; }
    get url() { return this.#url; }
    get type() { return this.#type; }
    get redirected() { return false; }
    clone() {
      if (this.bodyUsed) throw new own.TypeError('the body was read already');
      const copy = new Response(bytesOfBody(this), { status: this.#status, statusText: this.#statusText, headers: this.#headers });
      copy.#url = this.#url;
      copy.#type = this.#type;
      return copy;
    }
    static json(data, init = {}) {
      const text = own.stringify(data);
      if (text === undefined) throw new own.TypeError('the value has no JSON');
      const headers = new Headers(init?.headers);
      if (!headers.has('content-type')) headers.set('content-type', 'application/json');
      return new Response(text, { ...init, headers });
    }
    static error() { const response = new Response(null, {}); response.#status = 0; response.#type = 'error'; return response; }
    static redirect(url, status = 302) {
      const code = own.Number(status);
      if (!(code === 301 || code === 302 || code === 303 || code === 307 || code === 308)) throw new own.RangeError(`${status} is not a redirect`);
      return new Response(null, { status: code, headers: { location: new URL(url).href } });
    }
  }
  own.tag(Response.prototype, 'Response');
  own.enumerable(Response.prototype, 'status', 'ok', 'statusText', 'headers', 'url', 'type', 'redirected', 'clone');
  own.global('Response', Response);

  const fetch = function fetch(input, init = undefined) {
    return new own.Promise((resolve, reject) => {
      const request = new Request(input, init);
      const signal = request.signal;
      if (signal?.aborted) { reject(signal.reason); return; }
      if (signal) signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      const headers = { __proto__: null };
      request.headers.forEach((value, name) => { headers[name] = value; });
      const bytes = bytesOfBody(request);
      const body = bytes === null ? null : own.toBase64(bytes);
      const call = { __proto__: null, method: request.method, url: request.url, headers, body };
      own.then(host.call('fetch', own.stringify({ __proto__: null, request: call })), (answer) => {
        try { resolve(answered(answer, request.url)); } catch (error) { reject(error); }
      }, reject);
    });
  };
  // It is there only for a run that may use it, and a heap may go on in one that may not.
  own.defineProperty(globalThis, 'fetch', {
    __proto__: null, configurable: true, enumerable: false,
    get: () => (own.surroundings().fetch ? fetch : undefined),
    set: (value) => own.global('fetch', value),
  });
})();
