// `URL` and `URLSearchParams`: the URL Standard's basic parser as its state machine, and its setters.
// Invariant: a URL that parses serialises to text that parses to itself.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;
  const { parseHost, sets, encodeWith, percentDecode, percent } = own.urls;
  const SPECIAL = { __proto__: null, ftp: 21, file: null, http: 80, https: 443, ws: 80, wss: 443 };
  const special = (url) => url.scheme in SPECIAL;
  const alpha = (c) => (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const digit = (c) => c >= '0' && c <= '9';
  const driveLetter = (text) => own.test(/^[A-Za-z][:|]$/, text);
  const normalDrive = (text) => own.test(/^[A-Za-z]:$/, text);
  const startsDrive = (text) => own.test(/^[A-Za-z][:|](?:[/\\?#]|$)/, text);
  const single = (text) => text === '.' || own.toLowerCase(text) === '%2e';
  const double = (text) => own.test(/^(?:\.|%2e){2}$/i, text);
  const shorten = (url) => {
    const path = url.path;
    if (url.scheme === 'file' && path.length === 1 && normalDrive(path[0])) return;
    if (path.length > 0) path.length--;
  };
  const copy = (path) => {
    if (typeof path === 'string') return path;
    const out = [];
    for (let at = 0; at < path.length; at++) own.push(out, path[at]);
    return out;
  };
  const blank = () => ({ __proto__: null, scheme: '', user: '', password: '', host: null, port: null, path: [], query: null, fragment: null });

  /** Parses into `url`; false is a failure. `state` is given by setters. */
  const basic = (input, base, url, state) => {
    const given = state !== undefined;
    if (!given) input = own.replace(input, /^[\0-\x20]+|[\0-\x20]+$/g, '');
    input = own.replace(input, /[\t\n\r]/g, '');
    state ??= 'scheme start';
    let buffer = '', at = false, inside = false, password = false;
    const points = [];
    for (let place = 0; place < input.length; place++) {
      const code = own.codePointAt(input, place);
      own.push(points, own.fromCodePoint(code));
      if (code > 0xffff) place++;
    }
    const rest = (from) => {
      let out = '';
      for (let place = from; place < points.length; place++) out += points[place];
      return out;
    };
    for (let p = 0; p <= points.length; p++) {
      const c = points[p] ?? '';
      const end = p === points.length;
      switch (state) {
        case 'scheme start':
          if (alpha(c)) { buffer += own.toLowerCase(c); state = 'scheme'; }
          else if (!given) { state = 'no scheme'; p--; }
          else return false;
          break;
        case 'scheme':
          if (alpha(c) || digit(c) || c === '+' || c === '-' || c === '.') buffer += own.toLowerCase(c);
          else if (c === ':') {
            if (given) {
              if ((url.scheme in SPECIAL) !== (buffer in SPECIAL)) return true;
              if ((url.user !== '' || url.password !== '' || url.port !== null) && buffer === 'file') return true;
              if (url.scheme === 'file' && url.host === '') return true;
            }
            url.scheme = buffer;
            if (given) {
              if (url.port === SPECIAL[url.scheme]) url.port = null;
              return true;
            }
            buffer = '';
            if (url.scheme === 'file') state = 'file';
            else if (special(url) && base !== null && base.scheme === url.scheme) state = 'special relative or authority';
            else if (special(url)) state = 'special authority slashes';
            else if (points[p + 1] === '/') { state = 'path or authority'; p++; }
            else { url.path = ''; state = 'opaque path'; }
          } else if (!given) { buffer = ''; state = 'no scheme'; p = -1; }
          else return false;
          break;
        case 'no scheme':
          if (base === null || (typeof base.path === 'string' && c !== '#')) return false;
          if (typeof base.path === 'string' && c === '#') {
            url.scheme = base.scheme; url.path = base.path; url.query = base.query; url.fragment = ''; state = 'fragment';
          } else { state = base.scheme === 'file' ? 'file' : 'relative'; p--; }
          break;
        case 'special relative or authority':
          if (c === '/' && points[p + 1] === '/') { state = 'special authority ignore slashes'; p++; }
          else { state = 'relative'; p--; }
          break;
        case 'path or authority':
          if (c === '/') state = 'authority';
          else { state = 'path'; p--; }
          break;
        case 'relative':
          url.scheme = base.scheme;
          if (c === '/') state = 'relative slash';
          else if (special(url) && c === '\\') state = 'relative slash';
          else {
            url.user = base.user; url.password = base.password; url.host = base.host; url.port = base.port;
            url.path = copy(base.path); url.query = base.query;
            if (c === '?') { url.query = ''; state = 'query'; }
            else if (c === '#') { url.fragment = ''; state = 'fragment'; }
            else if (!end) { url.query = null; shorten(url); state = 'path'; p--; }
          }
          break;
        case 'relative slash':
          if (special(url) && (c === '/' || c === '\\')) state = 'special authority ignore slashes';
          else if (c === '/') state = 'authority';
          else {
            url.user = base.user; url.password = base.password; url.host = base.host; url.port = base.port;
            state = 'path'; p--;
          }
          break;
        case 'special authority slashes':
          state = 'special authority ignore slashes';
          if (c === '/' && points[p + 1] === '/') p++;
          else p--;
          break;
        case 'special authority ignore slashes':
          if (c !== '/' && c !== '\\') { state = 'authority'; p--; }
          break;
        case 'authority':
          if (c === '@') {
            if (at) buffer = `%40${buffer}`;
            at = true;
            for (let place = 0; place < buffer.length; place++) {
              const one = own.fromCodePoint(own.codePointAt(buffer, place));
              if (one.length > 1) place++;
              if (one === ':' && !password) { password = true; continue; }
              if (password) url.password += encodeWith(one, sets.user);
              else url.user += encodeWith(one, sets.user);
            }
            buffer = '';
          } else if (end || c === '/' || c === '?' || c === '#' || (special(url) && c === '\\')) {
            if (at && buffer === '') return false;
            let length = 0;
            for (let place = 0; place < buffer.length; place++, length++) if (own.codePointAt(buffer, place) > 0xffff) place++;
            p -= length + 1;
            buffer = '';
            state = 'host';
          } else buffer += c;
          break;
        case 'host':
        case 'hostname':
          if (given && url.scheme === 'file') { p--; state = 'file host'; }
          else if (c === ':' && !inside) {
            if (buffer === '') return false;
            if (given === true && hostnameOnly.on) return false;
            const parsed = parseHost(buffer, special(url));
            if (parsed === null) return false;
            url.host = parsed; buffer = ''; state = 'port';
          } else if (end || c === '/' || c === '?' || c === '#' || (special(url) && c === '\\')) {
            p--;
            if (special(url) && buffer === '') return false;
            if (given && buffer === '' && (url.user !== '' || url.password !== '' || url.port !== null)) return false;
            const parsed = parseHost(buffer, special(url));
            if (parsed === null) return false;
            url.host = parsed; buffer = ''; state = 'path start';
            if (given) return true;
          } else {
            if (c === '[') inside = true;
            if (c === ']') inside = false;
            buffer += c;
          }
          break;
        case 'port':
          if (digit(c)) buffer += c;
          else if (end || c === '/' || c === '?' || c === '#' || (special(url) && c === '\\') || given) {
            if (buffer !== '') {
              const port = +buffer;
              if (port > 65535) return false;
              url.port = port === SPECIAL[url.scheme] ? null : port;
              buffer = '';
              if (given) return true;
            }
            if (given) return false;
            state = 'path start'; p--;
          } else return false;
          break;
        case 'file':
          url.scheme = 'file';
          url.host = '';
          if (c === '/' || c === '\\') state = 'file slash';
          else if (base !== null && base.scheme === 'file') {
            url.host = base.host; url.path = copy(base.path); url.query = base.query;
            if (c === '?') { url.query = ''; state = 'query'; }
            else if (c === '#') { url.fragment = ''; state = 'fragment'; }
            else if (!end) {
              url.query = null;
              if (!startsDrive(rest(p))) shorten(url);
              else url.path = [];
              state = 'path'; p--;
            }
          } else { state = 'path'; p--; }
          break;
        case 'file slash':
          if (c === '/' || c === '\\') state = 'file host';
          else {
            if (base !== null && base.scheme === 'file') {
              url.host = base.host;
              if (!startsDrive(rest(p)) && base.path.length > 0 && normalDrive(base.path[0])) own.push(url.path, base.path[0]);
            }
            state = 'path'; p--;
          }
          break;
        case 'file host':
          if (end || c === '/' || c === '\\' || c === '?' || c === '#') {
            p--;
            if (!given && driveLetter(buffer)) state = 'path';
            else if (buffer === '') {
              url.host = '';
              if (given) return true;
              state = 'path start';
            } else {
              const parsed = parseHost(buffer, special(url));
              if (parsed === null) return false;
              url.host = parsed === 'localhost' ? '' : parsed;
              if (given) return true;
              buffer = '';
              state = 'path start';
            }
          } else buffer += c;
          break;
        case 'path start':
          if (special(url)) { state = 'path'; if (c !== '/' && c !== '\\') p--; }
          else if (!given && c === '?') { url.query = ''; state = 'query'; }
          else if (!given && c === '#') { url.fragment = ''; state = 'fragment'; }
          else if (!end) { state = 'path'; if (c !== '/') p--; }
          else if (given && url.host === null) own.push(url.path, '');
          break;
        case 'path': {
          const slash = c === '/' || (special(url) && c === '\\');
          if (end || slash || (!given && (c === '?' || c === '#'))) {
            if (double(buffer)) { shorten(url); if (!slash) own.push(url.path, ''); }
            else if (single(buffer)) { if (!slash) own.push(url.path, ''); }
            else {
              if (url.scheme === 'file' && url.path.length === 0 && driveLetter(buffer)) buffer = `${buffer[0]}:`;
              own.push(url.path, buffer);
            }
            buffer = '';
            if (c === '?' && !given) { url.query = ''; state = 'query'; }
            if (c === '#' && !given) { url.fragment = ''; state = 'fragment'; }
          } else buffer += encodeWith(c, sets.path);
          break;
        }
        case 'opaque path':
          if (c === '?') { url.query = ''; state = 'query'; }
          else if (c === '#') { url.fragment = ''; state = 'fragment'; }
          else if (c === ' ') url.path += points[p + 1] === '?' || points[p + 1] === '#' ? '%20' : ' ';
          else if (!end) url.path += encodeWith(c, sets.C0);
          break;
        case 'query':
          if ((!given && c === '#') || end) {
            url.query += encodeWith(buffer, special(url) ? sets.special : sets.query);
            buffer = '';
            if (c === '#') { url.fragment = ''; state = 'fragment'; }
          } else buffer += c;
          break;
        default: // fragment
          if (!end) url.fragment += encodeWith(c, sets.fragment);
      }
    }
    return true;
  };
  /** The setter `hostname` takes no port, `host` does. */
  const hostnameOnly = { __proto__: null, on: false };

  const pathText = (url) => (typeof url.path === 'string' ? url.path : url.path.length === 0 ? '' : `/${own.join(url.path, '/')}`);
  const serialize = (url, fragment = true) => {
    let out = `${url.scheme}:`;
    if (url.host !== null) {
      out += '//';
      if (url.user !== '' || url.password !== '') out += `${url.user}${url.password === '' ? '' : `:${url.password}`}@`;
      out += url.host + (url.port === null ? '' : `:${url.port}`);
    } else if (typeof url.path !== 'string' && url.path.length > 1 && url.path[0] === '') out += '/.';
    out += pathText(url);
    if (url.query !== null) out += `?${url.query}`;
    if (fragment && url.fragment !== null) out += `#${url.fragment}`;
    return out;
  };
  const parse = (text, base) => {
    let on = null;
    if (base !== undefined) {
      on = blank();
      if (!basic(own.usv(base), null, on)) return null;
    }
    const url = blank();
    return basic(own.usv(text), on, url) ? url : null;
  };

  const decodeForm = (text) => own.decodeUtf8(percentDecode(own.replace(text, /\+/g, ' ')));
  const parseForm = (text) => {
    const list = [], parts = own.split(text, '&');
    for (let at = 0; at < parts.length; at++) {
      if (parts[at] === '') continue;
      const equals = own.indexOf(parts[at], '=');
      const name = equals < 0 ? parts[at] : own.slice(parts[at], 0, equals);
      own.push(list, [decodeForm(name), equals < 0 ? '' : decodeForm(own.slice(parts[at], equals + 1))]);
    }
    return list;
  };
  const encodeForm = (text) => {
    const bytes = own.encode(text);
    let out = '';
    for (let at = 0; at < bytes.length; at++)
      out += bytes[at] === 0x20 ? '+' : sets.form(bytes[at]) ? percent(bytes[at]) : own.fromCharCode(bytes[at]);
    return out;
  };

  let paramsOf, bind;
  const iterator = (list, pick, tag) => {
    let at = 0;
    const prototype = own.create(own.getPrototypeOf(own.getPrototypeOf([][own.Symbol.iterator]())));
    prototype.next = () => (at < list().length ? { value: pick(list()[at++]), done: false } : { value: undefined, done: true });
    own.tag(prototype, tag);
    return prototype;
  };
  class URLSearchParams {
    #list = []; #url = null;
    constructor(init = '') {
      if ((typeof init === 'object' && init !== null) || typeof init === 'function') {
        const method = init[own.Symbol.iterator];
        if (method !== undefined && method !== null) {
          if (typeof method !== 'function') throw new own.TypeError('URLSearchParams takes pairs');
          for (const pair of init) {
            const both = [...pair];
            if (both.length !== 2) throw new own.TypeError('URLSearchParams takes pairs');
            own.push(this.#list, [own.usv(both[0]), own.usv(both[1])]);
          }
        } else {
          const names = own.ownKeys(init), seen = new own.Map();
          for (let at = 0; at < names.length; at++) {
            const found = own.getOwnPropertyDescriptor(init, names[at]);
            if (!found?.enumerable) continue;
            const name = own.usv(names[at]), value = own.usv(init[names[at]]);
            if (own.mapHas(seen, name)) own.mapGet(seen, name)[1] = value;
            else { const pair = [name, value]; own.mapSet(seen, name, pair); own.push(this.#list, pair); }
          }
        }
      } else {
        const text = own.usv(init);
        this.#list = parseForm(text[0] === '?' ? own.slice(text, 1) : text);
      }
    }
    static {
      paramsOf = (text) => { const made = new URLSearchParams(); made.#list = parseForm(text); return made; };
      bind = { __proto__: null, to: (params, url) => { params.#url = url; }, reset: (params, text) => { params.#list = parseForm(text); } };
    }
    #changed() { if (this.#url) this.#url(this.toString()); }
    get size() { return this.#list.length; }
    append(name, value) {
      if (arguments.length < 2) throw new own.TypeError('append takes a name and a value');
      own.push(this.#list, [own.usv(name), own.usv(value)]);
      this.#changed();
    }
    #filter(keep) {
      const kept = [];
      for (let at = 0; at < this.#list.length; at++) if (keep(this.#list[at])) own.push(kept, this.#list[at]);
      this.#list = kept;
    }
    delete(name, value) {
      if (arguments.length < 1) throw new own.TypeError('delete takes a name');
      const wanted = own.usv(name), exact = value === undefined ? undefined : own.usv(value);
      this.#filter((pair) => pair[0] !== wanted || (exact !== undefined && pair[1] !== exact));
      this.#changed();
    }
    get(name) {
      if (arguments.length < 1) throw new own.TypeError('get takes a name');
      const wanted = own.usv(name);
      for (let at = 0; at < this.#list.length; at++) if (this.#list[at][0] === wanted) return this.#list[at][1];
      return null;
    }
    getAll(name) {
      if (arguments.length < 1) throw new own.TypeError('getAll takes a name');
      const wanted = own.usv(name), out = [];
      for (let at = 0; at < this.#list.length; at++) if (this.#list[at][0] === wanted) own.push(out, this.#list[at][1]);
      return out;
    }
    has(name, value) {
      if (arguments.length < 1) throw new own.TypeError('has takes a name');
      const wanted = own.usv(name), exact = value === undefined ? undefined : own.usv(value);
      for (let at = 0; at < this.#list.length; at++)
        if (this.#list[at][0] === wanted && (exact === undefined || this.#list[at][1] === exact)) return true;
      return false;
    }
    set(name, value) {
      if (arguments.length < 2) throw new own.TypeError('set takes a name and a value');
      const wanted = own.usv(name), text = own.usv(value);
      let found = false;
      this.#filter((pair) => {
        if (pair[0] !== wanted) return true;
        if (found) return false;
        found = true;
        pair[1] = text;
        return true;
      });
      if (!found) own.push(this.#list, [wanted, text]);
      this.#changed();
    }
    sort() {
      own.sort(this.#list, (a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
      this.#changed();
    }
    forEach(work, self) {
      if (typeof work !== 'function') throw new own.TypeError('forEach takes a function');
      for (let at = 0; at < this.#list.length; at++) own.apply(work, self, [this.#list[at][1], this.#list[at][0], this]);
    }
    keys() { return iterator(() => this.#list, (pair) => pair[0], 'URLSearchParams Iterator'); }
    values() { return iterator(() => this.#list, (pair) => pair[1], 'URLSearchParams Iterator'); }
    entries() { return iterator(() => this.#list, (pair) => [pair[0], pair[1]], 'URLSearchParams Iterator'); }
    toString() {
      let out = '';
      for (let at = 0; at < this.#list.length; at++)
        out += `${at > 0 ? '&' : ''}${encodeForm(this.#list[at][0])}=${encodeForm(this.#list[at][1])}`;
      return out;
    }
  }
  own.defineProperty(URLSearchParams.prototype, own.Symbol.iterator, { __proto__: null, value: URLSearchParams.prototype.entries, writable: true, configurable: true });
  own.tag(URLSearchParams.prototype, 'URLSearchParams');
  own.enumerable(URLSearchParams.prototype, 'size', 'append', 'delete', 'get', 'getAll', 'has', 'set', 'sort', 'forEach', 'keys', 'values', 'entries', 'toString');
  own.global('URLSearchParams', URLSearchParams);

  class URL {
    #url; #params;
    constructor(url, base = undefined) {
      if (arguments.length === 0) throw new own.TypeError('URL takes a text');
      this.#url = parse(url, base);
      if (this.#url === null) throw new own.TypeError(`Invalid URL: ${own.inspect(own.String(url))}`);
      this.#params = paramsOf(this.#url.query ?? '');
      bind.to(this.#params, (text) => { this.#url.query = text === '' ? null : text; if (text === '') this.#stripOpaque(); });
    }
    static parse(url, base = undefined) { try { return new URL(url, base); } catch { return null; } }
    static canParse(url, base = undefined) { return parse(url, base) !== null; }
    #stripOpaque() {
      const url = this.#url;
      if (typeof url.path === 'string' && url.fragment === null && url.query === null) url.path = own.replace(url.path, / +$/, '');
    }
    get href() { return serialize(this.#url); }
    set href(value) {
      const url = parse(value);
      if (url === null) throw new own.TypeError(`Invalid URL: ${own.inspect(own.String(value))}`);
      this.#url = url;
      bind.reset(this.#params, url.query ?? '');
    }
    get origin() {
      const url = this.#url;
      if (url.scheme === 'blob') {
        const inner = parse(pathText(url));
        return inner !== null && (inner.scheme === 'http' || inner.scheme === 'https') ? new URL(pathText(url)).origin : 'null';
      }
      return !special(url) || url.scheme === 'file' ? 'null' : `${url.scheme}://${url.host}${url.port === null ? '' : `:${url.port}`}`;
    }
    get protocol() { return `${this.#url.scheme}:`; }
    set protocol(value) { basic(`${own.usv(value)}:`, null, this.#url, 'scheme start'); }
    #credentials() { const url = this.#url; return url.host !== null && url.host !== '' && url.scheme !== 'file'; }
    get username() { return this.#url.user; }
    set username(value) { const text = own.usv(value); if (this.#credentials()) this.#url.user = encodeWith(text, sets.user); }
    get password() { return this.#url.password; }
    set password(value) { const text = own.usv(value); if (this.#credentials()) this.#url.password = encodeWith(text, sets.user); }
    get host() { const url = this.#url; return url.host === null ? '' : url.port === null ? url.host : `${url.host}:${url.port}`; }
    set host(value) { this.#change(value, 'host', false); }
    get hostname() { return this.#url.host ?? ''; }
    set hostname(value) { this.#change(value, 'hostname', true); }
    #change(value, state, only) {
      const text = own.usv(value);
      if (typeof this.#url.path === 'string') return;
      const next = { ...this.#url, path: copy(this.#url.path) };
      own.setPrototypeOf(next, null);
      hostnameOnly.on = only;
      const fits = basic(text, null, next, state);
      hostnameOnly.on = false;
      // A bad port after a good host leaves the host.
      if (fits || (!only && next.host !== this.#url.host)) this.#url = next;
    }
    get port() { return this.#url.port === null ? '' : `${this.#url.port}`; }
    set port(value) {
      const text = own.usv(value);
      if (!this.#credentials()) return;
      if (text === '') this.#url.port = null;
      else basic(text, null, this.#url, 'port');
    }
    get pathname() { return pathText(this.#url); }
    set pathname(value) {
      const text = own.usv(value);
      if (typeof this.#url.path === 'string') return;
      this.#url.path = [];
      basic(text, null, this.#url, 'path start');
    }
    get search() { return this.#url.query === null || this.#url.query === '' ? '' : `?${this.#url.query}`; }
    set search(value) {
      const text = own.usv(value);
      if (text === '') { this.#url.query = null; this.#stripOpaque(); bind.reset(this.#params, ''); return; }
      this.#url.query = '';
      basic(text[0] === '?' ? own.slice(text, 1) : text, null, this.#url, 'query');
      bind.reset(this.#params, this.#url.query);
    }
    get searchParams() { return this.#params; }
    get hash() { return this.#url.fragment === null || this.#url.fragment === '' ? '' : `#${this.#url.fragment}`; }
    set hash(value) {
      const text = own.usv(value);
      if (text === '') { this.#url.fragment = null; this.#stripOpaque(); return; }
      this.#url.fragment = '';
      basic(text[0] === '#' ? own.slice(text, 1) : text, null, this.#url, 'fragment');
    }
    toString() { return serialize(this.#url); }
    toJSON() { return serialize(this.#url); }
  }
  own.tag(URL.prototype, 'URL');
  own.enumerable(URL.prototype, 'href', 'origin', 'protocol', 'username', 'password', 'host', 'hostname', 'port', 'pathname', 'search', 'searchParams', 'hash', 'toString', 'toJSON');
  own.global('URL', URL);
  const hrefOf = own.getter(URL.prototype, 'href');
  const showParams = own.uncurry(URLSearchParams.prototype.toString);
  const custom = host.inspectors;
  host.inspectors = (value) => {
    if (value instanceof URL) return `URL '${hrefOf(value)}'`;
    if (value instanceof URLSearchParams) return `URLSearchParams '${showParams(value)}'`;
    return custom?.(value);
  };
})();
