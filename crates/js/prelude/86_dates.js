// `Intl.DateTimeFormat` for en-US with the host's time zones, and `toLocaleString` of dates; the `Intl` object itself.
// Invariant: without a `timeZone` the zone is UTC, which is also what `Date` says here.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;
  const { locale, choice, whole, optionsOf, method, NumberFormat } = own.intl;
  const floor = Math.floor;
  const MONTHS = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];
  const DAYS = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
  const AMERICAN = { __proto__: null, 'America/New_York': 'E', 'America/Detroit': 'E', 'America/Chicago': 'C', 'America/Denver': 'M', 'America/Phoenix': 'M', 'America/Los_Angeles': 'P', 'US/Eastern': 'E', 'US/Central': 'C', 'US/Mountain': 'M', 'US/Pacific': 'P' };
  const STANDARD = { __proto__: null, E: -300, C: -360, M: -420, P: -480 };
  const NUMERIC = ['numeric', '2-digit'], TEXT = ['long', 'short', 'narrow'];
  const MOMENTS = { __proto__: null, getTime: own.dateTime, year: own.uncurry(Date.prototype.getUTCFullYear), month: own.uncurry(Date.prototype.getUTCMonth), day: own.uncurry(Date.prototype.getUTCDate), weekday: own.uncurry(Date.prototype.getUTCDay), hour: own.uncurry(Date.prototype.getUTCHours), minute: own.uncurry(Date.prototype.getUTCMinutes), second: own.uncurry(Date.prototype.getUTCSeconds) };

  const zoneOf = (given) => {
    const name = given === undefined ? 'UTC' : own.String(given);
    if (own.test(/^(?:utc|gmt|etc\/utc|etc\/gmt)$/i, name)) return 'UTC';
    if (own.test(/^[+-]\d{2}(?::?\d{2})?$/, name)) return name;
    const minutes = host.zone(name, 0);
    if (minutes === null || minutes === undefined) throw new own.RangeError(`the time zone ${own.inspect(name)} is not known`);
    return name;
  };
  const offset = (zone, time) => {
    if (zone === 'UTC') return 0;
    const fixed = own.exec(/^([+-])(\d{2}):?(\d{2})?$/, zone);
    if (fixed) return (fixed[1] === '-' ? -1 : 1) * (fixed[2] * 60 + +(fixed[3] ?? 0));
    return host.zone(zone, time);
  };
  const two = (number) => own.padStart(`${number}`, 2, '0');
  const shaped = (name, form) => (form === 'long' ? name : form === 'short' ? own.slice(name, 0, 3) : name[0]);

  const read = (given, kind) => {
    const o = { __proto__: null, zone: zoneOf(given.timeZone) };
    o.weekday = choice(given, 'weekday', TEXT);
    o.year = choice(given, 'year', NUMERIC);
    o.month = choice(given, 'month', ['numeric', '2-digit', 'long', 'short', 'narrow']);
    o.day = choice(given, 'day', NUMERIC);
    o.hour = choice(given, 'hour', NUMERIC);
    o.minute = choice(given, 'minute', NUMERIC);
    o.second = choice(given, 'second', NUMERIC);
    o.fraction = whole(given, 'fractionalSecondDigits', 1, 3, 0);
    o.name = choice(given, 'timeZoneName', ['short', 'shortOffset']);
    const dateStyle = choice(given, 'dateStyle', ['full', 'long', 'medium', 'short']);
    const timeStyle = choice(given, 'timeStyle', ['long', 'medium', 'short']);
    if (given.era !== undefined || given.dayPeriod !== undefined) throw new own.RangeError('era and dayPeriod are not available');
    const cycle = choice(given, 'hourCycle', ['h12', 'h23'], 'h12');
    o.twelve = given.hour12 === undefined ? cycle === 'h12' : !!given.hour12;
    o.join = ', ';
    const any = o.weekday ?? o.year ?? o.month ?? o.day ?? o.hour ?? o.minute ?? o.second ?? (o.fraction || undefined);
    if (dateStyle !== undefined || timeStyle !== undefined) {
      if (any !== undefined || o.name !== undefined) throw new own.TypeError('dateStyle and timeStyle go with no other parts');
      if (dateStyle !== undefined && kind === 'time') throw new own.TypeError('a time has no dateStyle');
      if (timeStyle !== undefined && kind === 'date') throw new own.TypeError('a date has no timeStyle');
      if (dateStyle === 'full') o.weekday = 'long';
      if (dateStyle === 'full' || dateStyle === 'long') { o.month = 'long'; o.join = ' at '; }
      if (dateStyle === 'medium') o.month = 'short';
      if (dateStyle === 'short') o.month = 'numeric';
      if (dateStyle !== undefined) { o.day = 'numeric'; o.year = dateStyle === 'short' ? '2-digit' : 'numeric'; }
      if (timeStyle !== undefined) { o.hour = 'numeric'; o.minute = '2-digit'; }
      if (timeStyle === 'medium' || timeStyle === 'long') o.second = '2-digit';
      if (timeStyle === 'long') o.name = 'short';
      return o;
    }
    const date = o.weekday ?? o.year ?? o.month ?? o.day, time = o.hour ?? o.minute ?? o.second ?? (o.fraction || undefined);
    if (kind !== 'time' && date === undefined && (kind === 'date' || kind === 'all' || time === undefined) && !(kind === 'all' && time !== undefined)) o.year = o.month = o.day = 'numeric';
    if ((kind === 'time' || kind === 'all') && time === undefined && !(kind === 'all' && date !== undefined)) { o.hour = 'numeric'; o.minute = o.second = '2-digit'; }
    if (o.month === 'long' && o.hour !== undefined) o.join = ' at ';
    return o;
  };

  const dateText = (o, at) => {
    const year = o.year === undefined ? undefined : o.year === '2-digit' ? two(((at.year % 100) + 100) % 100) : `${at.year}`;
    const day = o.day === undefined ? undefined : o.day === '2-digit' ? two(at.day) : `${at.day}`;
    const weekday = o.weekday === undefined ? undefined : shaped(DAYS[at.weekday], o.weekday);
    let text = '';
    if (o.month === 'long' || o.month === 'short' || o.month === 'narrow') {
      text = shaped(MONTHS[at.month], o.month);
      if (day !== undefined) text += ` ${day}`;
      if (year !== undefined) text += day !== undefined ? `, ${year}` : ` ${year}`;
    } else {
      const month = o.month === undefined ? undefined : o.month === '2-digit' ? two(at.month + 1) : `${at.month + 1}`;
      const parts = [];
      if (month !== undefined) own.push(parts, month);
      if (day !== undefined) own.push(parts, day);
      if (year !== undefined) own.push(parts, year);
      text = own.join(parts, '/');
      if (weekday !== undefined && month === undefined && year === undefined && day !== undefined) return `${day} ${weekday}`;
    }
    if (weekday === undefined) return text;
    return text === '' ? weekday : day === undefined ? `${text} ${weekday}` : `${weekday}, ${text}`;
  };
  const timeText = (o, at) => {
    const parts = [];
    if (o.hour !== undefined) {
      const hour = o.twelve ? at.hour % 12 || 12 : at.hour;
      own.push(parts, o.hour === '2-digit' || !o.twelve ? two(hour) : `${hour}`);
    }
    if (o.minute !== undefined) own.push(parts, o.hour === undefined && o.second === undefined ? `${at.minute}` : two(at.minute));
    if (o.second !== undefined) own.push(parts, parts.length === 0 ? `${at.second}` : two(at.second));
    let text = own.join(parts, ':');
    if (o.fraction > 0) text += `${text === '' ? '' : '.'}${own.slice(own.padStart(`${at.ms}`, 3, '0'), 0, o.fraction)}`;
    return o.hour !== undefined && o.twelve ? `${text} ${at.hour < 12 ? 'AM' : 'PM'}` : text;
  };
  const zoneText = (o, minutes) => {
    if (o.zone === 'UTC') return o.name === 'shortOffset' ? 'GMT' : 'UTC';
    const american = o.name === 'short' ? AMERICAN[o.zone] : undefined;
    if (american !== undefined) return `${american}${minutes === STANDARD[american] ? 'S' : 'D'}T`;
    if (minutes === 0) return 'GMT';
    const size = minutes < 0 ? -minutes : minutes;
    return `GMT${minutes < 0 ? '-' : '+'}${floor(size / 60)}${size % 60 === 0 ? '' : `:${two(size % 60)}`}`;
  };
  const write = (o, given) => {
    const time = given === undefined ? floor(host.now()) : typeof given === 'object' && given !== null ? own.Number(own.dateTime(given)) : own.Number(given);
    if (!(time >= -8.64e15 && time <= 8.64e15)) throw new own.RangeError('Invalid time value');
    const minutes = offset(o.zone, time);
    const local = new own.Date(time + minutes * 60000);
    const at = { __proto__: null, ms: ((time % 1000) + 1000) % 1000 | 0 };
    const names = ['year', 'month', 'day', 'weekday', 'hour', 'minute', 'second'];
    for (let n = 0; n < names.length; n++) at[names[n]] = MOMENTS[names[n]](local);
    const date = dateText(o, at), clock = timeText(o, at);
    const alone = o.weekday !== undefined && (o.year ?? o.month ?? o.day) === undefined;
    let text = date === '' ? clock : clock === '' ? date : `${date}${alone ? ' ' : o.join}${clock}`;
    if (o.name !== undefined) text += `${clock === '' ? ', ' : ' '}${zoneText(o, minutes)}`;
    return text;
  };

  class DateTimeFormat {
    #o;
    constructor(locales = undefined, options = undefined) {
      locale(locales);
      const o = read(optionsOf(options), 'any');
      this.#o = o;
      own.defineProperty(this, 'format', { __proto__: null, value: (date) => write(o, date), configurable: true, writable: true });
    }
    resolvedOptions() { return { locale: 'en-US', calendar: 'gregory', numberingSystem: 'latn', timeZone: this.#o.zone }; }
    static supportedLocalesOf(locales) { return NumberFormat.supportedLocalesOf(locales); }
  }
  own.tag(DateTimeFormat.prototype, 'Intl.DateTimeFormat');

  const local = (kind) => (date, locales, options) => {
    locale(locales);
    const o = read(optionsOf(options), kind);
    const time = own.dateTime(date);
    return time === time ? write(o, time) : 'Invalid Date';
  };
  const all = local('all'), dates = local('date'), times = local('time');
  method(Date.prototype, 'toLocaleString', ({ toLocaleString(locales = undefined, options = undefined) { return all(this, locales, options); } }).toLocaleString);
  method(Date.prototype, 'toLocaleDateString', ({ toLocaleDateString(locales = undefined, options = undefined) { return dates(this, locales, options); } }).toLocaleDateString);
  method(Date.prototype, 'toLocaleTimeString', ({ toLocaleTimeString(locales = undefined, options = undefined) { return times(this, locales, options); } }).toLocaleTimeString);

  // `Intl.NumberFormat()` without `new` is allowed.
  const called = (Format) => new Proxy(Format, { apply: (target, self, given) => new target(...given) });
  const Intl = {};
  method(Intl, 'NumberFormat', called(NumberFormat));
  method(Intl, 'DateTimeFormat', called(DateTimeFormat));
  method(Intl, 'getCanonicalLocales', function getCanonicalLocales(locales) { return locales === undefined ? [] : [locale(locales)]; });
  own.tag(Intl, 'Intl');
  own.global('Intl', Intl);
})();
