// `console`: lines of the run's output.
// Invariant: no method throws; a group indents whole lines, those of a printed object included.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;
  const DEBUG = 0, LOG = 1, WARN = 2, ERROR = 3;
  let indent = '';
  const counts = new own.Map();
  const times = new own.Map();

  const text = (value) => (typeof value === 'string' ? value : own.inspect(value));

  const formatted = (values) => {
    let out = '', next = 0;
    if (typeof values[0] === 'string' && values.length > 1 && own.indexOf(values[0], '%') >= 0) {
      const format = values[0];
      next = 1;
      for (let at = 0; at < format.length; at++) {
        const mark = format[at + 1];
        if (format[at] !== '%' || mark === undefined) { out += format[at]; continue; }
        if (mark === '%') { out += '%'; at++; continue; }
        if (next >= values.length || own.indexOf('sdifjoOc', mark) < 0) { out += '%'; continue; }
        out += directive(mark, values[next++]);
        at++;
      }
      if (next < values.length) out += ' ';
    }
    for (let at = next; at < values.length; at++) out += `${text(values[at])}${at + 1 < values.length ? ' ' : ''}`;
    return out;
  };

  const directive = (mark, value) => {
    const number = (convert) => {
      if (typeof value === 'bigint') return `${own.inspect(value)}`;
      return typeof value === 'symbol' || (typeof value === 'object' && value !== null) ? 'NaN' : `${convert(value)}`;
    };
    switch (mark) {
      case 's': return typeof value === 'object' || typeof value === 'function' ? own.inspect(value, 0) : typeof value === 'symbol' ? own.symbolToString(value) : `${value}`;
      case 'd': return number((value) => own.Number(value));
      case 'i': return number((value) => parseIntOf(value));
      case 'f': return number((value) => parseFloatOf(value));
      case 'j':
        try { return `${own.stringify(value)}`; } catch { return '[Circular]'; }
      case 'c': return '';
      default: return own.inspect(value, 4);
    }
  };
  const parseIntOf = parseInt, parseFloatOf = parseFloat;

  const print = (level, line) => {
    const whole = indent === '' ? line : indent + own.join(own.split(line, '\n'), `\n${indent}`);
    host.print(level, whole);
  };
  const guarded = (work) => {
    try { work(); } catch { /* a console that throws would change what a program does */ }
  };
  const printer = (level) => (...values) => guarded(() => print(level, formatted(values)));
  const label = (value) => (value === undefined ? 'default' : text(value));
  const elapsed = (name) => {
    const ms = host.now() - own.mapGet(times, name);
    return `${name}: ${ms >= 1000 ? `${own.toFixed(ms / 1000, 3)}s` : `${own.toFixed(ms, 3)}ms`}`;
  };

  const cell = (value) => (typeof value === 'string' ? `'${value}'` : own.inspect(value, 0));
  const table = (data, only) => {
    if (data === null || typeof data !== 'object') return print(LOG, text(data));
    const columns = [], rows = [];
    let values = false;
    const row = (index, value) => {
      const cells = { __proto__: null };
      if (value !== null && typeof value === 'object') {
        const names = own.keys(value);
        for (let at = 0; at < names.length; at++) {
          const name = names[at];
          if (only && !only.includes(name)) continue;
          if (!own.hasOwn(cells, name)) cells[name] = cell(own.getOwnPropertyDescriptor(value, name).value);
          if (!columns.includes(name)) own.push(columns, name);
        }
        own.push(rows, { index, cells });
      } else {
        values = true;
        own.push(rows, { index, cells, value: cell(value) });
      }
    };
    const kind = own.objectToString(data);
    let count = 0;
    if (kind === '[object Map]') own.mapForEach(data, (value, at) => row(cell(at), value));
    else if (kind === '[object Set]') own.setForEach(data, (value) => row(`${count++}`, value));
    else {
      const names = own.keys(data);
      for (let at = 0; at < names.length && at < 1000; at++) row(names[at], own.getOwnPropertyDescriptor(data, names[at]).value);
    }
    const head = ['(index)'];
    for (let at = 0; at < columns.length; at++) own.push(head, columns[at]);
    if (values) own.push(head, 'Values');
    const grid = [head];
    for (let at = 0; at < rows.length; at++) {
      const line = [rows[at].index];
      for (let column = 0; column < columns.length; column++) own.push(line, rows[at].cells[columns[column]] ?? '');
      if (values) own.push(line, rows[at].value ?? '');
      own.push(grid, line);
    }
    const widths = [];
    for (let column = 0; column < head.length; column++) {
      let width = 0;
      for (let at = 0; at < grid.length; at++) if (grid[at][column].length > width) width = grid[at][column].length;
      own.push(widths, width);
    }
    const rule = (left, middle, right) => {
      let out = left;
      for (let column = 0; column < widths.length; column++) out += own.repeat('─', widths[column] + 2) + (column + 1 < widths.length ? middle : right);
      return out;
    };
    const line = (cells) => {
      let out = '│';
      for (let column = 0; column < cells.length; column++) out += ` ${own.padEnd(cells[column], widths[column])} │`;
      return out;
    };
    const out = [rule('┌', '┬', '┐'), line(grid[0]), rule('├', '┼', '┤')];
    for (let at = 1; at < grid.length; at++) own.push(out, line(grid[at]));
    own.push(out, rule('└', '┴', '┘'));
    return print(LOG, own.join(out, '\n'));
  };

  const group = (...values) => guarded(() => {
    if (values.length > 0) print(LOG, formatted(values));
    if (indent.length < 100) indent += '  ';
  });
  const console = {
    log: printer(LOG), info: printer(LOG), debug: printer(DEBUG), warn: printer(WARN), error: printer(ERROR),
    trace: (...values) => guarded(() => print(ERROR, `Trace: ${formatted(values)}\n${new own.Error().stack ?? ''}`)),
    assert: (condition, ...values) => guarded(() => {
      if (!condition) print(ERROR, values.length > 0 ? `Assertion failed: ${formatted(values)}` : 'Assertion failed');
    }),
    dir: (value, options) => guarded(() => {
      const depth = options === null || typeof options !== 'object' ? undefined : options.depth;
      print(LOG, own.inspect(value, depth === null ? 1000 : typeof depth === 'number' ? depth : 3));
    }),
    dirxml: printer(LOG),
    table: (data, only) => guarded(() => table(data, own.isArray(only) ? only : undefined)),
    count: (name) => guarded(() => {
      const at = label(name), count = (own.mapGet(counts, at) ?? 0) + 1;
      own.mapSet(counts, at, count);
      print(LOG, `${at}: ${count}`);
    }),
    countReset: (name) => guarded(() => own.mapDelete(counts, label(name))),
    group, groupCollapsed: group,
    groupEnd: () => { indent = own.slice(indent, 2); },
    time: (name) => guarded(() => own.mapSet(times, label(name), host.now())),
    timeLog: (name, ...values) => guarded(() => {
      const at = label(name);
      if (!own.mapHas(times, at)) return print(WARN, `Timer '${at}' does not exist`);
      return print(LOG, values.length > 0 ? `${elapsed(at)} ${formatted(values)}` : elapsed(at));
    }),
    timeEnd: (name) => guarded(() => {
      const at = label(name);
      if (!own.mapHas(times, at)) return print(WARN, `Timer '${at}' does not exist`);
      print(LOG, elapsed(at));
      return own.mapDelete(times, at);
    }),
    clear: () => { indent = ''; },
  };
  // A namespace: between it and Object.prototype lies an empty object.
  own.setPrototypeOf(console, {});
  own.tag(console, 'console');
  own.global('console', console);
})();
