"""The content of heaps in other processes: made in one process, used in a second, and again in a third.

Invariant: a heap never changes, so the third process sees what the second one saw.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import pytest

from lib.server import TOKAMAK, copy_compiled_engine

# Each kind of state: its name, the code that makes it, the code that uses it in another process, and the answer.
STATE = [
    ("closures", "const add = ((n) => () => ++n)(10); add()", "[add(), add()]", [12, 13]),
    ("classes with private fields", "class A { #p = 5; static #made = 0; static { A.#made = 7 } pay(n) { return this.#p -= n } static made() { return A.#made++ } } const a = new A(); a.pay(1); A.made()", "[a.pay(1), A.made(), new A().pay(0)]", [3, 8, 5]),
    ("Map", "const map = new Map([['k', {v: 1}], [NaN, 2], [0, 'zero']]); map.delete(0)", "[map.get('k').v, map.get(NaN), map.size, [...map.keys()].length]", [1, 2, 2, 2]),
    ("Set", "const set = new Set([1, 'a', 1])", "[...set]", [1, "a"]),
    ("WeakMap, WeakSet, WeakRef", "const key = {}, weak = new WeakMap([[key, 'w']]), held = new WeakSet([key]), ref = new WeakRef(key)", "[weak.get(key), held.has(key), ref.deref() === key]", ["w", True, True]),
    ("Symbol keys", "const s = Symbol('mine'), keyed = {[s]: 1, [Symbol.for('shared')]: 2, [Symbol.iterator]: function* () { yield 3 }}", "[keyed[s], keyed[Symbol.for('shared')], ...keyed]", [1, 2, 3]),
    ("Date", "const date = new Date(86400000); date.setUTCHours(5)", "date.toISOString()", "1970-01-02T05:00:00.000Z"),
    ("BigInt", "const big = 2n ** 70n, bigs = new BigInt64Array([-5n])", "[String(big + 1n), String(bigs[0])]", ["1180591620717411303425", "-5"]),
    ("RegExp with lastIndex", "const re = /a(?<x>.)/gd; re.exec('ab ac')", "[re.lastIndex, re.exec('ab ac').groups.x, re.lastIndex]", [2, "c", 5]),
    ("typed arrays and their buffer", "const u8 = new Uint8Array([1, 2, 3, 4]), u16 = new Uint16Array(u8.buffer), view = new DataView(u8.buffer, 1), grown = new ArrayBuffer(4, {maxByteLength: 8}), floats = new Float64Array([0.5, NaN])", "[u16[1], view.getUint8(0), (grown.resize(8), grown.byteLength), floats[0], Number.isNaN(floats[1]), (u8[2] = 9, u16[1])]", [1027, 2, 8, 0.5, True, 1033]),
    ("getters and setters", "const got = {n: 20, get twice() { return this.n * 2 }, set half(v) { this.n = v * 2 }}", "[(got.half = 21, got.twice), Object.keys(got)]", [84, ["n", "twice", "half"]]),
    ("frozen, sealed and fixed objects", "const frozen = Object.freeze({f: 1}), sealed = Object.seal({s: 1}), fixed = Object.preventExtensions({e: 1})", "frozen.f = 2; sealed.s = 2; delete sealed.s; fixed.x = 1; [frozen.f, sealed.s, fixed.x === undefined, Object.isFrozen(frozen), Object.isSealed(sealed), Object.isExtensible(fixed)]", [1, 2, True, True, True, False]),
    ("rings of objects", "const ring = {name: 'r', list: []}; ring.self = ring; ring.list.push(ring, ring.list)", "[ring.self === ring, ring.list[1] === ring.list, ring.list[0].name]", [True, True, "r"]),
    ("suspended generators", "function* count() { let i = 0; try { for (;;) i += (yield i) ?? 1 } finally { i = 'closed' } } const gen = count(); gen.next(); gen.next(5)", "[gen.next(10).value, gen.return('r').value, gen.next().done]", [15, "r", True]),
    ("delegating generators and iterators", "function* inner() { yield 1; yield 2 } function* outer() { yield* inner(); yield 3 } const it = outer(); it.next(); const lazy = [1, 2, 3, 4].values().filter((x) => x % 2 === 0).map((x) => x * 10); const halfway = new Map([[1, 2], [3, 4]]).entries(); halfway.next()", "[it.next().value, it.next().value, lazy.next().value, lazy.next().value, halfway.next().value]", [2, 3, 20, 40, [3, 4]]),
    ("async generators", "async function* ticks() { let n = 0; while (true) { const more = yield n++; if (more) n += more } } const ag = ticks(); await ag.next(); await ag.next()", "[(await ag.next(10)).value, (await ag.next()).value, (await ag.return(0)).done]", [12, 13, True]),
    ("pending promises that settle later", "let settle, refuse; const later = new Promise((done) => { settle = done }).then((v) => v + '!'); const never = new Promise((_, no) => { refuse = no }); const both = Promise.allSettled([later, never])", "settle('later'); refuse(new Error('no')); [await later, (await both)[1].reason.message]", ["later!", "no"]),
    ("async functions in the middle of an await", "let go; const gate = new Promise((done) => { go = done }); const seen = []; const running = (async () => { for (let i = 0; i < 2; i++) { seen.push(i); seen.push(await gate) } return seen.length })()", "go('open'); [await running, seen]", [4, [0, "open", 1, "open"]]),
    ("proxies", "const log = []; const proxy = new Proxy({}, {get: (_, name) => { log.push(name); return name.length }})", "[proxy.abc, log]", [3, ["abc"]]),
    ("bound functions, arguments, templates", "const bound = Math.max.bind(null, 5); const args = (function () { return arguments })(1, 2); const tag = (s) => s; const tagged = () => tag`x`; const first = tagged()", "[bound(3), args.length, tagged() === first]", [5, 2, True]),
    ("errors with their cause and stack", "const error = new RangeError('far', {cause: {n: 1}}); const many = new AggregateError([error], 'all')", "[error.cause.n, error.stack.includes('make.js') || error.stack.includes('run.js'), many.errors[0] === error, error instanceof RangeError]", [1, True, True, True]),
    ("sparse arrays and holes", "const sparse = [1, , 3]; sparse.length = 10; sparse.name = 'x'", "[sparse.length, 1 in sparse, sparse.name, Object.keys(sparse)]", [10, False, "x", ["0", "2", "name"]]),
    ("inherited prototypes", "const base = {hi() { return 'hi ' + this.n }}; const child = Object.create(base, {n: {value: 5}}); class B extends Array { sum() { return this.reduce((a, b) => a + b, 0) } } const b = B.from([1, 2])", "[child.hi(), b.sum(), b.map((x) => x * 2).sum(), b instanceof Array]", ["hi 5", 3, 6, True]),
    ("web objects", "const url = new URL('https://h/?a=1'), params = url.searchParams, decoder = new TextDecoder(), controller = new AbortController(); let aborted = 0; controller.signal.addEventListener('abort', () => aborted++); const part = decoder.decode(new Uint8Array([0xe2, 0x82]), {stream: true}); const headers = new Headers({a: 'b'})", "params.append('b', '2'); controller.abort(); [url.href, decoder.decode(new Uint8Array([0xac])), aborted, headers.get('A')]", ["https://h/?a=1&b=2", "€", 1, "b"]),
    ("text of every kind", "const text = 'ü'.repeat(1000) + '\\u{1f600}', half = '\\ud83d', rope = 'a'.repeat(5000) + 'b'.repeat(5000)", "[text.length, half.charCodeAt(0), rope.length, rope[5000], text.at(-1) === '\\ude00']", [1002, 55357, 10000, "b", True]),
    ("registries of what is finalised", "let finalised = []; const registry = new FinalizationRegistry((v) => finalised.push(v)); (() => { const o = {}; o.o = o; registry.register(o, 'gone') })()", "(() => { for (let i = 0; i < 3e5; i++) { const o = {}; o.o = o } })(); await null; await null; finalised", ["gone"]),
]


@pytest.fixture(scope="module")
def answers():
    """The answers of the second and of the third process."""
    data = tempfile.mkdtemp(prefix="data-")
    copy_compiled_engine(data)
    folder = Path(tempfile.mkdtemp(prefix="state-"))
    (folder / "make.js").write_text("\n".join(f"{make};" for _, make, _, _ in STATE) + "\n'made'")
    uses = ",\n".join(f"{json.dumps(name)}: (async () => {{ {returning(use)} }})" for name, _, use, _ in STATE)
    collect = "const answers = {}; for (const name of Object.keys(uses)) answers[name] = await uses[name](); answers"
    (folder / "use.js").write_text("const uses = {" + uses + "}; " + collect)
    made = run_file(data, folder / "make.js")
    return [run_file(data, folder / "use.js", "--heap", made["heap"])["result"] for _ in range(2)]


def run_file(data, *arguments):
    """Runs files in a process of their own and returns the answer of the last one."""
    command = [TOKAMAK, "--json", "js", *map(str, arguments), "--data", data]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr or ended.stdout
    return json.loads(ended.stdout)[-1]


def returning(code):
    """The same statements, with the value of the last one returned."""
    *before, last = code.split("; ")
    return "; ".join([*before, f"return {last}"])


@pytest.mark.parametrize("name, wanted", [(name, wanted) for name, _, _, wanted in STATE])
def test_state_survives_in_other_processes(answers, name, wanted):
    second, third = answers
    assert second.get(name) == wanted, f"{second.get(name)} instead of {wanted}"
    assert third.get(name) == wanted, f"the third process has {third.get(name)}"
