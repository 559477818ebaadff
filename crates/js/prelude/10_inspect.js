// How a value is printed for a person.
// Invariant: it never throws and calls no getter; traps of a Proxy may run, and what they throw is shown as unreadable. The
// text is bounded in depth, items and length, whatever the value is.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;
  const WIDTH = 76, ITEMS = 100, STRING = 10000, TOTAL = 200000;
  const IDENTIFIER = /^[A-Za-z_$][A-Za-z0-9_$]*$/;
  const CONTROL = /[\x00-\x1f\x7f'\\\u2028\u2029]/g;
  const ESCAPES = { __proto__: null, '\n': '\\n', '\t': '\\t', '\r': '\\r', '\b': '\\b', '\f': '\\f', '\v': '\\v', '\\': '\\\\', "'": "\\'" };

  const quote = (text) => {
    const short = text.length > STRING;
    const shown = short ? own.slice(text, 0, STRING) : text;
    const escape = (c) => ESCAPES[c] ?? `\\u${own.padStart(own.numberToString(own.charCodeAt(c, 0), 16), 4, '0')}`;
    const body = own.indexOf(shown, "'") >= 0 && own.indexOf(shown, '"') < 0
      ? `"${own.replace(shown, CONTROL, (c) => (c === "'" ? c : escape(c)))}"`
      : `'${own.replace(shown, CONTROL, escape)}'`;
    return short ? `${body}... ${text.length - STRING} more characters` : body;
  };

  const primitive = (value) => {
    switch (typeof value) {
      case 'string': return quote(value);
      case 'number': return value === 0 && 1 / value < 0 ? '-0' : `${value}`;
      case 'bigint': return `${own.bigintToString(value)}n`;
      case 'symbol': return own.symbolToString(value);
      default: return `${value}`;
    }
  };

  /** A data property, looked for along the prototypes; accessors are not called. */
  const lookup = (object, name) => {
    for (let at = object, steps = 0; at !== null && at !== undefined && steps < 100; steps++) {
      const found = own.getOwnPropertyDescriptor(at, name);
      if (found) return found.value;
      at = own.getPrototypeOf(at);
    }
    return undefined;
  };

  /** The name of the class; null for an object without a prototype. */
  const className = (object) => {
    for (let at = object, steps = 0; at !== null && steps < 100; steps++) {
      const found = own.getOwnPropertyDescriptor(at, 'constructor');
      if (found && typeof found.value === 'function') {
        const name = own.getOwnPropertyDescriptor(found.value, 'name')?.value;
        if (typeof name === 'string' && name !== '') return name;
      }
      at = own.getPrototypeOf(at);
    }
    return null;
  };

  const brand = (value) => {
    const tag = own.objectToString(value);
    return own.slice(tag, 8, -1);
  };
  const attempt = (work) => {
    try { return work(); } catch { return undefined; }
  };

  const key = (name) => (typeof name === 'symbol' ? `[${own.symbolToString(name)}]` : own.test(IDENTIFIER, name) ? name : quote(name));

  const property = (state, object, name, depth, keyed) => {
    const found = own.getOwnPropertyDescriptor(object, name);
    if (!found) return undefined;
    let text;
    if (found.get || found.set) text = found.get ? (found.set ? '[Getter/Setter]' : '[Getter]') : '[Setter]';
    else text = show(state, found.value, depth + 1);
    return keyed ? `${key(name)}: ${text}` : text;
  };

  const isIndex = (name, length) => {
    if (typeof name !== 'string') return false;
    const number = +name;
    return number >= 0 && number < length && `${number}` === name;
  };

  /** Own enumerable properties, those of an array's or string's indices left out. */
  const properties = (state, object, depth, into, indices, skip) => {
    const names = own.ownKeys(object);
    let shown = 0;
    for (let at = 0; at < names.length; at++) {
      const name = names[at];
      if (indices > 0 && isIndex(name, indices)) continue;
      if (skip && own.hasOwn(skip, name)) continue;
      const found = own.getOwnPropertyDescriptor(object, name);
      if (!found || !found.enumerable) continue;
      if (shown++ >= ITEMS) {
        own.push(into, `... ${names.length - at} more properties`);
        return;
      }
      own.push(into, property(state, object, name, depth, true));
    }
  };

  const more = (into, left, what) => {
    if (left > 0) own.push(into, `... ${left} more ${what}${left > 1 ? 's' : ''}`);
  };

  const array = (state, value, depth, into) => {
    const length = own.getOwnPropertyDescriptor(value, 'length').value;
    let holes = 0, at = 0;
    const flush = () => {
      if (holes > 0) own.push(into, `<${holes} empty item${holes > 1 ? 's' : ''}>`);
      holes = 0;
    };
    // A hole costs a look, so a sparse array of a billion is not walked to its end.
    for (; at < length && into.length < ITEMS && at < 10000; at++) {
      if (own.getOwnPropertyDescriptor(value, at) === undefined) { holes++; continue; }
      flush();
      own.push(into, property(state, value, `${at}`, depth, false));
    }
    flush();
    more(into, length - at, 'item');
    properties(state, value, depth, into, length);
  };

  const typed = (value, into) => {
    const length = own.typedLength(value);
    for (let at = 0; at < length && at < ITEMS; at++) own.push(into, primitive(value[at]));
    more(into, length - ITEMS, 'item');
  };

  const error = (state, value, depth) => {
    const name = attempt(() => own.String(value.name)) ?? 'Error';
    const message = attempt(() => own.String(value.message)) ?? '';
    const stack = attempt(() => value.stack);
    const head = message === '' ? name : `${name}: ${message}`;
    let text = head;
    if (typeof stack === 'string' && stack !== '') {
      const lines = own.replace(stack, /\n+$/, '');
      text = own.indexOf(lines, head) === 0 ? lines : `${head}\n${lines}`;
    }
    const into = [];
    attempt(() => properties(state, value, depth, into, 0, { __proto__: null, stack: 1, message: 1, name: 1, cause: 1, errors: 1 }));
    const cause = attempt(() => own.getOwnPropertyDescriptor(value, 'cause'));
    if (cause) own.push(into, `[cause]: ${show(state, cause.value, depth + 1)}`);
    const errors = attempt(() => own.getOwnPropertyDescriptor(value, 'errors'));
    if (errors) own.push(into, `[errors]: ${show(state, errors.value, depth + 1)}`);
    if (depth > 0 && own.indexOf(text, '\n') < 0) text = `[${text}]`;
    return into.length > 0 ? `${text} ${layout(into, '{', '}', state.indent)}` : text;
  };

  const callable = (value) => {
    const source = attempt(() => own.functionToString(value)) ?? '';
    const name = attempt(() => own.getOwnPropertyDescriptor(value, 'name')?.value);
    const named = typeof name === 'string' && name !== '' ? name : '(anonymous)';
    if (own.test(/^class\b/, source)) {
      const parent = attempt(() => own.getPrototypeOf(value));
      const above = typeof parent === 'function' ? attempt(() => own.getOwnPropertyDescriptor(parent, 'name')?.value) : '';
      return `[class ${named}${above ? ` extends ${above}` : ''}]`;
    }
    const kind = own.slice(own.objectToString(value), 8, -1);
    return `[${kind === 'Object' ? 'Function' : kind}${named === '(anonymous)' ? ' ' : ': '}${named}]`;
  };

  const layout = (parts, open, close, indent, prefix = '') => {
    if (parts.length === 0) return `${prefix}${open}${close}`;
    let width = prefix.length + indent, lines = false;
    for (let at = 0; at < parts.length; at++) {
      width += parts[at].length + 2;
      lines ||= own.indexOf(parts[at], '\n') >= 0;
    }
    if (!lines && width <= WIDTH) return `${prefix}${open} ${own.join(parts, ', ')} ${close}`;
    const pad = own.repeat(' ', indent + 2);
    // Many short items stand in rows, not one in a line.
    if (!lines && parts.length > 6 && width / parts.length < 16) {
      const rows = [];
      let row = '';
      for (let at = 0; at < parts.length; at++) {
        const part = at + 1 < parts.length ? `${parts[at]},` : parts[at];
        if (row !== '' && row.length + part.length + indent > WIDTH) { own.push(rows, row); row = part; }
        else row = row === '' ? part : `${row} ${part}`;
      }
      own.push(rows, row);
      return `${prefix}${open}\n${pad}${own.join(rows, `\n${pad}`)}\n${own.repeat(' ', indent)}${close}`;
    }
    return `${prefix}${open}\n${pad}${own.join(parts, `,\n${pad}`)}\n${own.repeat(' ', indent)}${close}`;
  };

  const BOXES = { __proto__: null, Number: own.numberValue, String: own.stringValue, Boolean: own.booleanValue, BigInt: own.bigintValue, Symbol: own.symbolValue };

  const body = (state, value, depth) => {
    const kind = attempt(() => brand(value)) ?? 'Object';
    const name = attempt(() => className(value)) ?? null;
    const into = [];
    const indent = state.indent;
    const within = (work) => {
      state.indent += 2;
      try { work(); } finally { state.indent = indent; }
    };
    const prefix = (usual) => (name === usual ? '' : `${name ?? `[${usual}: null prototype]`} `);

    if (own.isArray(value)) {
      const length = own.getOwnPropertyDescriptor(value, 'length').value;
      within(() => array(state, value, depth, into));
      return layout(into, '[', ']', indent, name === 'Array' ? '' : `${name}(${length}) `);
    }
    if (kind === 'Error' || kind === 'DOMException') return error(state, value, depth);
    const tagged = attempt(() => own.typedTag(value));
    if (tagged !== undefined) {
      typed(value, into);
      return layout(into, '[', ']', indent, `${name}(${own.typedLength(value)}) `);
    }
    if (kind === 'Map' && attempt(() => own.mapSize(value)) !== undefined) {
      within(() => {
        own.mapForEach(value, (item, at) => {
          if (into.length < ITEMS) own.push(into, `${show(state, at, depth + 1)} => ${show(state, item, depth + 1)}`);
        });
        more(into, own.mapSize(value) - ITEMS, 'item');
        properties(state, value, depth, into, 0);
      });
      return layout(into, '{', '}', indent, `${name}(${own.mapSize(value)}) `);
    }
    if (kind === 'Set' && attempt(() => own.setSize(value)) !== undefined) {
      within(() => {
        own.setForEach(value, (item) => {
          if (into.length < ITEMS) own.push(into, show(state, item, depth + 1));
        });
        more(into, own.setSize(value) - ITEMS, 'item');
        properties(state, value, depth, into, 0);
      });
      return layout(into, '{', '}', indent, `${name}(${own.setSize(value)}) `);
    }
    let head;
    if (kind === 'Date') {
      const time = attempt(() => own.dateTime(value));
      if (time !== undefined) head = time === time ? own.dateIso(value) : 'Invalid Date';
    } else if (kind === 'RegExp') {
      const source = attempt(() => own.regexpSource(value));
      if (source !== undefined) head = `/${source}/${attempt(() => own.regexpFlags(value)) ?? ''}`;
    } else if (BOXES[kind]) {
      const inner = attempt(() => BOXES[kind](value));
      if (inner !== undefined) head = `[${kind}: ${primitive(inner)}]`;
    } else if (kind === 'ArrayBuffer') {
      const length = attempt(() => own.bufferLength(value));
      if (length !== undefined) head = `ArrayBuffer { byteLength: ${length} }`;
    } else if (kind === 'Promise' || kind === 'WeakMap' || kind === 'WeakSet' || kind === 'WeakRef' || kind === 'Generator' || kind === 'AsyncGenerator') {
      head = `${kind} {}`;
    }
    const custom = host.inspectors && attempt(() => host.inspectors(value));
    if (typeof custom === 'string') return custom;
    within(() => properties(state, value, depth, into, kind === 'String' && head ? value.length : 0));
    if (head !== undefined) return into.length > 0 ? layout(into, '{', '}', indent, `${head} `) : head;
    const tag = attempt(() => lookup(value, own.Symbol.toStringTag));
    const shown = prefix('Object') + (typeof tag === 'string' && tag !== '' && tag !== name ? `[${tag}] ` : '');
    return layout(into, '{', '}', indent, shown);
  };

  const show = (state, value, depth) => {
    if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return primitive(value);
    if (state.left <= 0) return '[...]';
    const path = state.path;
    for (let at = 0; at < path.length; at++) if (path[at] === value) return '[Circular]';
    if (typeof value === 'function') {
      const text = callable(value);
      const into = [];
      if (depth <= state.depth) attempt(() => properties(state, value, depth, into, 0));
      return into.length > 0 ? layout(into, '{', '}', state.indent, `${text} `) : text;
    }
    if (depth > state.depth) {
      const name = own.isArray(value) ? 'Array' : attempt(() => className(value)) ?? 'Object: null prototype';
      return `[${name}]`;
    }
    own.push(path, value);
    try {
      const text = body(state, value, depth);
      state.left -= text.length;
      return text;
    } catch {
      return '[unreadable]';
    } finally {
      path.length--;
    }
  };

  const inspect = (value, depth = 3) => {
    try {
      const text = show({ __proto__: null, path: [], indent: 0, left: TOTAL, depth }, value, 0);
      return text.length > TOTAL ? `${own.slice(text, 0, TOTAL)}... ${text.length - TOTAL} more characters` : text;
    } catch {
      return '[unreadable]';
    }
  };
  host.inspect = (value) => inspect(value);
  own.inspect = inspect;
})();
