// `Intl.NumberFormat` for en-US, and `toLocaleString` of numbers.
// Invariant: another locale is a RangeError: a number in the wrong form is worse than none.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;
  const Math_min = Math.min, Math_max = Math.max, floor = Math.floor;

  const locale = (given) => {
    const list = given === undefined ? [] : own.isArray(given) ? given : [given];
    for (let at = 0; at < list.length; at++) {
      if (typeof list[at] !== 'string' && typeof list[at] !== 'object') throw new own.TypeError('a locale is a text');
      const name = own.String(list[at]);
      if (!own.test(/^en(?:-us)?$/i, name)) throw new own.RangeError(`the locale ${own.inspect(name)} is not available; en-US is`);
    }
    return 'en-US';
  };
  const choice = (options, name, values, usual) => {
    const value = options[name];
    if (value === undefined) return usual;
    const text = own.String(value);
    if (!values.includes(text)) throw new own.RangeError(`${name} is ${own.inspect(text)}; ${own.join(values, ', ')} are available`);
    return text;
  };
  const whole = (options, name, least, most, usual) => {
    const value = options[name];
    if (value === undefined) return usual;
    const number = own.Number(value);
    if (!(number >= least && number <= most)) throw new own.RangeError(`${name} is ${own.String(value)}; it goes from ${least} to ${most}`);
    return number | 0;
  };
  const optionsOf = (given) => {
    if (given === null) throw new own.TypeError('options are an object');
    return given === undefined ? { __proto__: null } : Object(given);
  };
  own.intl = { __proto__: null, locale, choice, whole, optionsOf };

  const SYMBOLS = { __proto__: null, USD: '$', EUR: '€', GBP: '£', JPY: '¥', INR: '₹', CNY: 'CN¥', KRW: '₩', AUD: 'A$', CAD: 'CA$', MXN: 'MX$', BRL: 'R$', NZD: 'NZ$', HKD: 'HK$', TWD: 'NT$', ILS: '₪', VND: '₫', XAF: 'FCFA', XOF: 'F\u202fCFA', XPF: 'CFPF', XCD: 'EC$', PHP: '₱' };
  const NO_CENTS = ['BIF', 'CLP', 'DJF', 'GNF', 'ISK', 'JPY', 'KMF', 'KRW', 'PYG', 'RWF', 'UGX', 'UYI', 'VND', 'VUV', 'XAF', 'XOF', 'XPF'];
  const MILLS = ['BHD', 'IQD', 'JOD', 'KWD', 'LYD', 'OMR', 'TND'];

  /** The shortest digits of a magnitude, as 0.DIGITS times ten to the power of `point`: what a person would round. */
  const decimal = (value) => {
    const text = typeof value === 'bigint' ? own.bigintToString(value) : own.String(value);
    const e = own.indexOf(text, 'e');
    const mantissa = e < 0 ? text : own.slice(text, 0, e);
    const dot = own.indexOf(mantissa, '.');
    const all = own.replace(mantissa, '.', '');
    const digits = own.replace(all, /^0+/, '');
    const point = (dot < 0 ? mantissa.length : dot) - (all.length - digits.length) + (e < 0 ? 0 : +own.slice(text, e + 1));
    return { __proto__: null, digits, point: digits === '' ? 0 : point };
  };
  /** With only the first so many digits left; half is rounded up. */
  const rounded = (number, keep) => {
    const { digits, point } = number;
    if (keep >= digits.length) return number;
    if (keep < 0) return { __proto__: null, digits: '', point: 0 };
    const up = digits[keep] >= '5';
    let head = own.slice(digits, 0, keep);
    if (!up) return { __proto__: null, digits: head, point };
    let at = keep - 1;
    while (at >= 0 && head[at] === '9') at--;
    if (at < 0) return { __proto__: null, digits: '1', point: point + 1 };
    head = own.slice(head, 0, at) + own.fromCharCode(own.charCodeAt(head, at) + 1);
    return { __proto__: null, digits: head, point };
  };
  /** Written out, with at least so many digits behind the point. */
  const written = ({ digits, point }, least) => {
    const bare = own.replace(digits, /0+$/, '');
    const before = point <= 0 ? '0' : own.padEnd(own.slice(bare, 0, point), point, '0');
    const behind = own.padEnd(point < 0 ? (bare === '' ? '' : own.repeat('0', -point) + bare) : own.slice(bare, point), least, '0');
    return behind === '' ? before : `${before}.${behind}`;
  };
  const grouped = (text, from) => {
    const point = own.indexOf(text, '.');
    const head = point < 0 ? text : own.slice(text, 0, point);
    if (head.length < from) return text;
    let out = '';
    for (let at = 0; at < head.length; at++) out += (at > 0 && (head.length - at) % 3 === 0 ? ',' : '') + head[at];
    return out + (point < 0 ? '' : own.slice(text, point));
  };

  class NumberFormat {
    #o;
    constructor(locales = undefined, options = undefined) {
      locale(locales);
      const given = optionsOf(options);
      const o = { __proto__: null };
      o.style = choice(given, 'style', ['decimal', 'percent', 'currency'], 'decimal');
      if (given.currency !== undefined) {
        o.currency = own.toUpperCase(own.String(given.currency));
        if (!own.test(/^[A-Z]{3}$/, o.currency)) throw new own.RangeError(`${own.inspect(given.currency)} is not a currency`);
      } else if (o.style === 'currency') throw new own.TypeError('a currency must be named');
      o.display = choice(given, 'currencyDisplay', ['symbol', 'code', 'narrowSymbol'], 'symbol');
      o.accounting = choice(given, 'currencySign', ['standard', 'accounting'], 'standard') === 'accounting';
      o.compact = choice(given, 'notation', ['standard', 'compact'], 'standard') === 'compact';
      choice(given, 'compactDisplay', ['short'], 'short');
      o.sign = choice(given, 'signDisplay', ['auto', 'never', 'always', 'exceptZero', 'negative'], 'auto');
      const grouping = given.useGrouping;
      o.group = grouping === undefined || grouping === true || grouping === 'auto' || grouping === 'always' || grouping === 'true' ? (o.compact && grouping !== 'always' ? 'min2' : 'auto') : grouping === 'min2' ? 'min2' : 'no';
      o.integers = whole(given, 'minimumIntegerDigits', 1, 21, 1);
      const cents = o.style === 'currency' ? (NO_CENTS.includes(o.currency) ? 0 : MILLS.includes(o.currency) ? 3 : 2) : 0;
      const least = whole(given, 'minimumFractionDigits', 0, 100, undefined);
      const most = whole(given, 'maximumFractionDigits', 0, 100, undefined);
      const compactly = o.compact && least === undefined && most === undefined;
      const usualLeast = o.style === 'currency' && !compactly ? cents : 0;
      const usualMost = compactly || o.style === 'percent' ? 0 : o.style === 'currency' ? cents : 3;
      if (least !== undefined && most !== undefined && least > most) throw new own.RangeError('minimumFractionDigits is more than maximumFractionDigits');
      o.least = least ?? Math_min(usualLeast, most ?? usualLeast);
      o.most = most ?? Math_max(usualMost, o.least);
      const leastSignificant = whole(given, 'minimumSignificantDigits', 1, 21, undefined);
      const mostSignificant = whole(given, 'maximumSignificantDigits', leastSignificant ?? 1, 21, undefined);
      o.significant = leastSignificant !== undefined || mostSignificant !== undefined;
      o.leastSignificant = leastSignificant ?? 1;
      o.mostSignificant = mostSignificant ?? 21;
      o.rounds = compactly && !o.significant;
      this.#o = o;
      own.defineProperty(this, 'format', { __proto__: null, value: (value) => write(o, value), configurable: true, writable: true });
    }
    resolvedOptions() {
      const o = this.#o;
      const out = { locale: 'en-US', numberingSystem: 'latn', style: o.style };
      if (o.style === 'currency') out.currency = o.currency;
      out.minimumIntegerDigits = o.integers;
      if (o.significant) { out.minimumSignificantDigits = o.leastSignificant; out.maximumSignificantDigits = o.mostSignificant; }
      else { out.minimumFractionDigits = o.least; out.maximumFractionDigits = o.most; }
      out.useGrouping = o.group === 'no' ? false : o.group;
      out.notation = o.compact ? 'compact' : 'standard';
      out.signDisplay = o.sign;
      return out;
    }
    static supportedLocalesOf(locales) {
      const list = own.isArray(locales) ? locales : locales === undefined ? [] : [locales], out = [];
      for (let at = 0; at < list.length; at++) if (own.test(/^en(?:-us)?$/i, own.String(list[at]))) own.push(out, own.String(list[at]));
      return out;
    }
  }
  own.tag(NumberFormat.prototype, 'Intl.NumberFormat');

  const magnitude = (o, number) => {
    if (!o.significant) return written(rounded(number, number.point + o.most), o.least);
    const short = rounded(number, o.mostSignificant);
    return written(short, Math_max(0, o.leastSignificant - (short.digits === '' ? 1 : short.point)));
  };

  const UNITS = ['', 'K', 'M', 'B', 'T'];
  const compacted = (o, number) => {
    const round = (number) => (o.rounds ? rounded(number, Math_max(2, number.point)) : o.significant ? rounded(number, o.mostSignificant) : rounded(number, number.point + o.most));
    // 999,999 is a million: how large it is shows only once it is rounded.
    const unitOf = (number) => Math_max(0, Math_min(4, floor((number.point - 1) / 3)));
    const down = (number, unit) => ({ __proto__: null, digits: number.digits, point: number.point - 3 * unit });
    let unit = unitOf(number);
    if (round(down(number, unit)).point > 3 && unit < 4) unit++;
    const small = down(number, unit);
    return { text: o.rounds ? written(round(small), 0) : magnitude(o, small), unit: UNITS[unit] };
  };

  const write = (o, given) => {
    let value = typeof given === 'bigint' ? given : own.Number(given);
    let negative = typeof value === 'bigint' ? value < 0n : value < 0 || (value === 0 && 1 / value < 0);
    if (negative) value = -value;
    let text, unit = '';
    if (value !== value) { text = 'NaN'; negative = false; }
    else if (value === Infinity) text = '∞';
    else {
      const number = decimal(value);
      if (o.style === 'percent' && number.digits !== '') number.point += 2;
      if (o.compact) ({ text, unit } = compacted(o, number));
      else text = magnitude(o, number);
      const point = own.indexOf(text, '.'), head = point < 0 ? text.length : point;
      if (head < o.integers) text = own.repeat('0', o.integers - head) + text;
    }
    const zero = !own.test(/[1-9∞N]/, text);
    if (o.group !== 'no' && text !== '∞') text = grouped(text, o.group === 'min2' ? 5 : 4);
    let out = text + unit;
    if (o.style === 'percent') out += '%';
    if (o.style === 'currency') {
      const symbol = o.display === 'code' ? o.currency : o.display === 'narrowSymbol' ? own.replace(SYMBOLS[o.currency] ?? o.currency, /^[A-Z]+(?=[$¥])/, '') : SYMBOLS[o.currency] ?? o.currency;
      out = `${symbol}${own.test(/[A-Za-z]$/, symbol) ? '\u00a0' : ''}${out}`;
    }
    const minus = negative && (o.sign === 'auto' || o.sign === 'always' ? true : o.sign !== 'never' && !zero);
    if (minus) return o.accounting && o.style === 'currency' ? `(${out})` : `-${out}`;
    return !negative && (o.sign === 'always' || (o.sign === 'exceptZero' && !zero && value === value)) ? `+${out}` : out;
  };

  own.intl.NumberFormat = NumberFormat;
  const method = (prototype, name, work) => own.defineProperty(prototype, name, { __proto__: null, value: work, writable: true, configurable: true });
  own.intl.method = method;
  method(Number.prototype, 'toLocaleString', ({ toLocaleString(locales = undefined, options = undefined) { return new NumberFormat(locales, options).format(own.numberValue(this)); } }).toLocaleString);
  method(BigInt.prototype, 'toLocaleString', ({ toLocaleString(locales = undefined, options = undefined) { return new NumberFormat(locales, options).format(own.bigintValue(this)); } }).toLocaleString);
})();
