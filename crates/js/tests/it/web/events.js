// Events, event targets and abort controllers of the DOM Standard, and `DOMException` of Web IDL.
test('the properties of a new event', () => {
  const event = new Event('x', {bubbles: 1, cancelable: true});
  eq([event.type, event.bubbles, event.cancelable, event.composed, event.defaultPrevented, event.eventPhase, event.target, event.currentTarget, event.isTrusted], ['x', true, true, false, false, 0, null, null, false]);
  eq([Event.NONE, Event.CAPTURING_PHASE, Event.AT_TARGET, event.BUBBLING_PHASE], [0, 1, 2, 3]);
  throws('TypeError', () => new Event());
  eq(new Event(undefined).type, 'undefined');
  eq(new CustomEvent('c', {detail: 5}).detail, 5);
  eq(new CustomEvent('c').detail, null);
});
test('listeners are called in order, once each, with the target as this', () => {
  const target = new EventTarget(), seen = [];
  const one = function (event) { seen.push(['one', this === target, event.eventPhase, event.target === target, event.currentTarget === target]) };
  target.addEventListener('x', one);
  target.addEventListener('x', one);
  target.addEventListener('x', {handleEvent() { seen.push('object') }});
  target.addEventListener('y', () => seen.push('never'));
  const event = new Event('x');
  eq(target.dispatchEvent(event), true);
  eq(seen, [['one', true, 2, true, true], 'object']);
  eq([event.target === target, event.currentTarget, event.eventPhase], [true, null, 0]);
  target.removeEventListener('x', one);
  target.dispatchEvent(new Event('x'));
  eq(seen.length, 3);
});
test('preventDefault', () => {
  const target = new EventTarget();
  target.addEventListener('x', (event) => event.preventDefault());
  eq([target.dispatchEvent(new Event('x')), target.dispatchEvent(new Event('x', {cancelable: true}))], [true, false]);
  const passive = new EventTarget();
  passive.addEventListener('x', (event) => event.preventDefault(), {passive: true});
  eq(passive.dispatchEvent(new Event('x', {cancelable: true})), true, 'a passive listener prevents nothing;');
  const before = new Event('x', {cancelable: true});
  before.preventDefault();
  eq(before.defaultPrevented, true, 'before it is dispatched;');
});
test('once, signal, and listeners that are added and removed during a dispatch', () => {
  const target = new EventTarget(), seen = [];
  target.addEventListener('x', () => seen.push('once'), {once: true});
  const controller = new AbortController();
  target.addEventListener('x', () => seen.push('signal'), {signal: controller.signal});
  const late = () => seen.push('late'), gone = () => seen.push('gone');
  target.addEventListener('x', () => { target.addEventListener('x', late); target.removeEventListener('x', gone) }, {once: true});
  target.addEventListener('x', gone);
  target.dispatchEvent(new Event('x'));
  eq(seen, ['once', 'signal']);
  controller.abort();
  target.dispatchEvent(new Event('x'));
  eq(seen, ['once', 'signal', 'late']);
  target.addEventListener('x', () => seen.push('no'), {signal: AbortSignal.abort()});
  target.dispatchEvent(new Event('x'));
  eq(seen.at(-1), 'late');
});
test('stopImmediatePropagation, and a dispatch inside a dispatch', () => {
  const target = new EventTarget(), seen = [];
  target.addEventListener('x', (event) => { seen.push(1); event.stopImmediatePropagation() });
  target.addEventListener('x', () => seen.push(2));
  target.dispatchEvent(new Event('x'));
  eq(seen, [1]);
  const other = new EventTarget(), calls = [];
  other.addEventListener('x', (event) => { event.stopPropagation(); calls.push(1) });
  other.addEventListener('x', () => calls.push(2));
  other.dispatchEvent(new Event('x'));
  eq(calls, [1, 2], 'stopPropagation stops other targets, not other listeners;');
  const ring = new EventTarget();
  ring.addEventListener('x', (event) => { eq(throws('InvalidStateError', () => ring.dispatchEvent(event)).code, 11); calls.push('refused') });
  ring.dispatchEvent(new Event('x'));
  eq(calls.at(-1), 'refused');
  throws('TypeError', () => ring.dispatchEvent({type: 'x'}));
});
test('the other listeners are called after one has thrown', () => {
  const target = new EventTarget(), seen = [];
  target.addEventListener('x', () => { throw new Error('told on the console') });
  target.addEventListener('x', () => seen.push(1));
  eq(target.dispatchEvent(new Event('x')), true);
  eq(seen, [1]);
});
test('a subclass of EventTarget', () => {
  class Bell extends EventTarget { ring() { return this.dispatchEvent(new CustomEvent('ring', {detail: 3})) } }
  const bell = new Bell();
  let heard;
  bell.addEventListener('ring', (event) => { heard = event.detail });
  bell.ring();
  eq(heard, 3);
});
test('a controller and its signal', () => {
  const controller = new AbortController(), {signal} = controller, seen = [];
  eq([signal.aborted, signal.reason, signal instanceof EventTarget, controller.signal === signal], [false, undefined, true, true]);
  signal.onabort = (event) => seen.push(event.type);
  signal.addEventListener('abort', () => seen.push(signal.aborted));
  controller.abort();
  controller.abort('again');
  eq([signal.aborted, signal.reason.name, signal.reason.code, seen], [true, 'AbortError', 20, ['abort', true]]);
  throws('AbortError', () => signal.throwIfAborted());
  const other = new AbortController();
  other.abort('why');
  eq(other.signal.reason, 'why');
  throws('TypeError', () => new AbortSignal());
  eq(AbortSignal.abort('r').reason, 'r');
});
test('any of several signals', () => {
  const one = new AbortController(), two = new AbortController();
  const either = AbortSignal.any([one.signal, two.signal]), both = AbortSignal.any([either]);
  let fired = 0;
  either.addEventListener('abort', () => { fired++; eq(both.aborted, true, 'those that depend on it are aborted first;') });
  two.abort('two');
  one.abort('one');
  eq([either.reason, both.reason, fired], ['two', 'two', 1]);
  eq(AbortSignal.any([AbortSignal.abort('done'), one.signal]).reason, 'done');
  eq(AbortSignal.any([]).aborted, false);
});
test('AbortSignal.timeout', async () => {
  const signal = AbortSignal.timeout(1);
  eq(signal.aborted, false);
  await new Promise((done) => signal.addEventListener('abort', done));
  eq([signal.reason.name, signal.reason.code], ['TimeoutError', 23]);
});
test('DOMException', () => {
  const error = new DOMException('m', 'NotFoundError');
  eq([error.name, error.message, error.code, error instanceof Error, String(error), Object.prototype.toString.call(error)], ['NotFoundError', 'm', 8, true, 'NotFoundError: m', '[object DOMException]']);
  eq([new DOMException().name, new DOMException().message, new DOMException('', 'Mine').code], ['Error', '', 0]);
  eq([DOMException.ABORT_ERR, DOMException.DATA_CLONE_ERR, error.INDEX_SIZE_ERR, DOMException.QUOTA_EXCEEDED_ERR], [20, 25, 1, 22]);
  eq(typeof error.stack, 'string');
});
failures();
