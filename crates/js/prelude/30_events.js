// `DOMException`, `Event`, `CustomEvent`, `EventTarget`, `AbortController`, `AbortSignal`.
// Invariant: a listener that throws is reported and stops no other listener.
'use strict';
(() => {
  const host = globalThis.__host;
  const own = host.own;
  const CODES = {
    __proto__: null, IndexSizeError: 1, HierarchyRequestError: 3, WrongDocumentError: 4, InvalidCharacterError: 5,
    NoModificationAllowedError: 7, NotFoundError: 8, NotSupportedError: 9, InUseAttributeError: 10, InvalidStateError: 11,
    SyntaxError: 12, InvalidModificationError: 13, NamespaceError: 14, InvalidAccessError: 15, TypeMismatchError: 17,
    SecurityError: 18, NetworkError: 19, AbortError: 20, URLMismatchError: 21, QuotaExceededError: 22, TimeoutError: 23,
    InvalidNodeTypeError: 24, DataCloneError: 25,
  };

  class DOMException extends Error {
    #name; #message;
    constructor(message = '', options = 'Error') {
      super();
      this.#message = `${message}`;
      const given = typeof options === 'object' && options !== null ? options : { name: options };
      this.#name = given.name === undefined ? 'Error' : `${given.name}`;
      if ('cause' in given) own.defineProperty(this, 'cause', { __proto__: null, value: given.cause, writable: true, configurable: true });
    }
    get name() { return this.#name; }
    get message() { return this.#message; }
    get code() { return CODES[this.#name] ?? 0; }
  }
  own.tag(DOMException.prototype, 'DOMException');
  own.enumerable(DOMException.prototype, 'name', 'message', 'code');
  const NAMES = ['INDEX_SIZE', 'DOMSTRING_SIZE', 'HIERARCHY_REQUEST', 'WRONG_DOCUMENT', 'INVALID_CHARACTER', 'NO_DATA_ALLOWED', 'NO_MODIFICATION_ALLOWED', 'NOT_FOUND', 'NOT_SUPPORTED', 'INUSE_ATTRIBUTE', 'INVALID_STATE', 'SYNTAX', 'INVALID_MODIFICATION', 'NAMESPACE', 'INVALID_ACCESS', 'VALIDATION', 'TYPE_MISMATCH', 'SECURITY', 'NETWORK', 'ABORT', 'URL_MISMATCH', 'QUOTA_EXCEEDED', 'TIMEOUT', 'INVALID_NODE_TYPE', 'DATA_CLONE'];
  const constants = { __proto__: null };
  for (let at = 0; at < NAMES.length; at++) constants[`${NAMES[at]}_ERR`] = at + 1;
  own.constants(DOMException, constants);
  own.constants(DOMException.prototype, constants);
  own.global('DOMException', DOMException);
  own.DOMException = DOMException;

  let dispatching, trusted, isTrusted;
  class Event {
    #type; #bubbles; #cancelable; #composed; #prevented = false; #stopped = false; #immediately = false; #passive = false; #trusted = false; #now = host.now();
    #target = null; #current = null; #phase = 0;
    constructor(type, init) {
      if (arguments.length === 0) throw new own.TypeError('Event takes a type');
      this.#type = own.String(type);
      this.#bubbles = !!init?.bubbles;
      this.#cancelable = !!init?.cancelable;
      this.#composed = !!init?.composed;
      own.defineProperty(this, 'isTrusted', { __proto__: null, get: isTrusted, enumerable: true });
    }
    get type() { return this.#type; }
    get target() { return this.#target; }
    get srcElement() { return this.#target; }
    get currentTarget() { return this.#current; }
    get bubbles() { return this.#bubbles; }
    get cancelable() { return this.#cancelable; }
    get composed() { return this.#composed; }
    get defaultPrevented() { return this.#prevented; }
    get eventPhase() { return this.#phase; }
    get timeStamp() { return this.#now; }
    get returnValue() { return !this.#prevented; }
    set returnValue(value) { if (!value) this.preventDefault(); }
    get cancelBubble() { return this.#stopped; }
    set cancelBubble(stop) { if (stop) this.#stopped = true; }
    preventDefault() { if (this.#cancelable && !this.#passive) this.#prevented = true; }
    stopPropagation() { this.#stopped = true; }
    stopImmediatePropagation() { this.#stopped = this.#immediately = true; }
    initEvent(type, bubbles = false, cancelable = false) {
      if (arguments.length === 0) throw new own.TypeError('initEvent takes a type');
      if (this.#phase !== 0) return;
      this.#type = own.String(type);
      this.#bubbles = !!bubbles;
      this.#cancelable = !!cancelable;
      this.#prevented = this.#stopped = this.#immediately = false;
      this.#target = null;
    }
    composedPath() { return this.#current === null ? [] : [this.#current]; }
    static {
      isTrusted = own.getOwnPropertyDescriptor({ get isTrusted() { return this.#trusted; } }, 'isTrusted').get;
      /** What the host itself tells of. */
      trusted = (event) => { event.#trusted = true; return event; };
      dispatching = (event, target, listeners) => {
        if (event.#phase !== 0) throw new DOMException('the event is being dispatched already', 'InvalidStateError');
        event.#target = target;
        event.#current = target;
        event.#phase = 2;
        // Who stopped it before it was dispatched stopped it for this target, too.
        for (let at = 0; at < listeners.length && !event.#immediately && !(at === 0 && event.#stopped); at++) {
          event.#passive = listeners[at].passive;
          listeners[at].call(event);
        }
        event.#phase = 0;
        event.#passive = event.#stopped = event.#immediately = false;
        event.#current = null;
        return !event.#prevented;
      };
    }
  }
  own.tag(Event.prototype, 'Event');
  own.enumerable(Event.prototype, 'type', 'target', 'srcElement', 'currentTarget', 'bubbles', 'cancelable', 'composed', 'defaultPrevented', 'eventPhase', 'timeStamp', 'returnValue', 'cancelBubble', 'preventDefault', 'stopPropagation', 'stopImmediatePropagation', 'composedPath', 'initEvent');
  const PHASES = { NONE: 0, CAPTURING_PHASE: 1, AT_TARGET: 2, BUBBLING_PHASE: 3 };
  own.constants(Event, PHASES);
  own.constants(Event.prototype, PHASES);
  own.global('Event', Event);

  class CustomEvent extends Event {
    #detail;
    constructor(type, init) { super(type, init); this.#detail = init?.detail ?? null; }
    get detail() { return this.#detail; }
  }
  own.tag(CustomEvent.prototype, 'CustomEvent');
  own.enumerable(CustomEvent.prototype, 'detail');
  own.global('CustomEvent', CustomEvent);

  class EventTarget {
    #listeners = [];
    addEventListener(type, callback, options) {
      if (arguments.length < 2) throw new own.TypeError('addEventListener takes a type and a listener');
      const name = own.String(type);
      if (callback !== null && callback !== undefined && typeof callback !== 'function' && typeof callback !== 'object') throw new own.TypeError('a listener is a function or an object');
      const set = (typeof options === 'object' && options !== null) || typeof options === 'function' ? options : { __proto__: null, capture: !!options };
      const capture = !!set.capture, once = !!set.once, passive = !!set.passive, signal = set.signal;
      if (signal !== undefined && !(signal instanceof AbortSignal)) throw new own.TypeError('signal is an AbortSignal');
      if (callback === null || callback === undefined) return;
      if (signal?.aborted) return;
      const list = this.#listeners;
      for (let at = 0; at < list.length; at++)
        if (list[at].name === name && list[at].callback === callback && list[at].capture === capture) return;
      own.push(list, { __proto__: null, name, callback, capture, once, passive, removed: false });
      if (signal) signal.addEventListener('abort', () => this.removeEventListener(name, callback, { capture }), { once: true });
    }
    removeEventListener(type, callback, options) {
      const name = own.String(type);
      const capture = typeof options === 'object' && options !== null ? !!options.capture : !!options;
      const list = this.#listeners;
      for (let at = 0; at < list.length; at++) {
        const one = list[at];
        if (one.name === name && one.callback === callback && one.capture === capture) {
          one.removed = true;
          own.splice(list, at, 1);
          return;
        }
      }
    }
    dispatchEvent(event) {
      if (!(event instanceof Event)) throw new own.TypeError('dispatchEvent takes an Event');
      const calls = [], list = this.#listeners;
      for (let at = 0; at < list.length; at++) {
        const one = list[at];
        if (one.name !== event.type) continue;
        own.push(calls, { __proto__: null, passive: one.passive, call: (event) => {
          if (one.removed) return;
          if (one.once) this.removeEventListener(one.name, one.callback, { capture: one.capture });
          try {
            if (typeof one.callback === 'function') own.apply(one.callback, this, [event]);
            else one.callback.handleEvent(event);
          } catch (thrown) {
            host.print(3, `Uncaught ${own.inspect(thrown)}`);
          }
        } });
      }
      return dispatching(event, this, calls);
    }
  }
  own.tag(EventTarget.prototype, 'EventTarget');
  own.enumerable(EventTarget.prototype, 'addEventListener', 'removeEventListener', 'dispatchEvent');
  own.global('EventTarget', EventTarget);

  let make = false, abort;
  class AbortSignal extends EventTarget {
    #aborted = false; #reason = undefined; #handler = null; #dependents = []; #sources = []; #dependent = false;
    constructor() {
      if (!make) throw new own.TypeError('an AbortSignal is made by an AbortController');
      super();
    }
    get aborted() { return this.#aborted; }
    get reason() { return this.#reason; }
    get onabort() { return this.#handler; }
    set onabort(handler) {
      if (this.#handler === null) this.addEventListener('abort', (event) => {
        if (this.#handler !== null) own.apply(this.#handler, this, [event]);
      });
      this.#handler = typeof handler === 'function' ? handler : null;
    }
    throwIfAborted() { if (this.#aborted) throw this.#reason; }
    static {
      abort = (signal, reason) => {
        if (signal.#aborted) return;
        signal.#aborted = true;
        signal.#reason = reason;
        // All that depend on it are aborted before anyone is told.
        const told = [];
        for (let at = 0; at < signal.#dependents.length; at++) {
          const one = signal.#dependents[at];
          if (one.#aborted) continue;
          one.#aborted = true;
          one.#reason = reason;
          own.push(told, one);
        }
        signal.#dependents = [];
        signal.dispatchEvent(trusted(new Event('abort')));
        for (let at = 0; at < told.length; at++) told[at].dispatchEvent(trusted(new Event('abort')));
      };
    }
    static #make() {
      make = true;
      try { return new AbortSignal(); } finally { make = false; }
    }
    static abort(reason = new DOMException('This operation was aborted', 'AbortError')) {
      const signal = AbortSignal.#make();
      abort(signal, reason);
      return signal;
    }
    static timeout(ms) {
      const signal = AbortSignal.#make();
      own.then(host.call('timer', `{"ms":${own.Number(ms) >= 0 ? own.Number(ms) | 0 : 0}}`),
        () => abort(signal, new DOMException('The operation timed out', 'TimeoutError')));
      return signal;
    }
    static any(signals) {
      const result = AbortSignal.#make();
      for (const signal of signals) {
        if (signal.#aborted) { abort(result, signal.#reason); return result; }
      }
      for (const signal of signals) {
        // A signal that depends on others is looked through: what it waits for, this one waits for.
        const sources = signal.#sources.length > 0 || signal.#dependent ? signal.#sources : [signal];
        for (let at = 0; at < sources.length; at++) {
          own.push(sources[at].#dependents, result);
          own.push(result.#sources, sources[at]);
        }
      }
      result.#dependent = true;
      return result;
    }
  }
  own.tag(AbortSignal.prototype, 'AbortSignal');
  own.enumerable(AbortSignal.prototype, 'aborted', 'reason', 'onabort', 'throwIfAborted');
  own.global('AbortSignal', AbortSignal);

  class AbortController {
    #signal;
    constructor() {
      make = true;
      try { this.#signal = new AbortSignal(); } finally { make = false; }
    }
    get signal() { return this.#signal; }
    abort(reason = new DOMException('This operation was aborted', 'AbortError')) { abort(this.#signal, reason); }
  }
  own.tag(AbortController.prototype, 'AbortController');
  own.enumerable(AbortController.prototype, 'signal', 'abort');
  own.global('AbortController', AbortController);
})();
