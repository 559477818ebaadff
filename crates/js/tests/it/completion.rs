//! The results of scripts: completion values, errors, console output.

use ports::scripts::{Completion, Outcome};
use serde_json::json;

use crate::support::Session;

fn completed(code: &str) -> Completion {
    match Session::new().run(code) {
        Outcome::Completed(completion) => completion,
        other => panic!("{code} ended with {other:?}"),
    }
}

fn inspected(code: &str) -> String {
    match completed(code) {
        Completion::Inspected(text) => text,
        other => panic!("{code} ended with {other:?}"),
    }
}

#[test]
fn a_completion_value_that_json_can_represent_is_json() {
    for (code, value) in [
        ("1 + 1", json!(2)),
        ("({a: [1, 'x', null, true]})", json!({"a": [1, "x", null, true]})),
        ("if (true) 'yes'; else 'no'", json!("yes")),
        ("null", json!(null)),
        ("new Date(0)", json!("1970-01-01T00:00:00.000Z")),
        ("({toJSON() { return 'mine' }})", json!("mine")),
        ("'\\ud83d'", json!("\u{fffd}")),
        ("await 5", json!(5)),
        ("Promise.resolve(6)", json!(6)),
        ("(async () => { await null; return Promise.resolve(7) })()", json!(7)),
        ("let x = 3; x * 2", json!(6)),
        ("2 ** 40", json!(1_099_511_627_776_u64)),
    ] {
        assert_eq!(completed(code), Completion::Json(value), "{code}");
    }
    assert_eq!(completed("undefined"), Completion::Undefined);
    assert_eq!(completed("let y = 1"), Completion::Undefined);
    assert_eq!(completed("function f() {}"), Completion::Undefined);
}

#[test]
fn a_value_that_json_cannot_represent_is_inspected() {
    for code in ["NaN", "10n", "new Map([[1, 2]])", "() => 1", "Symbol('s')", "new Error('e')"] {
        assert!(!inspected(code).is_empty(), "{code}");
    }
    assert!(!inspected("const a = {}; a.a = a; a").is_empty());
    assert!(!inspected("({get x() { throw 1 }})").is_empty());
    assert!(!inspected("({toJSON() { throw 1 }})").is_empty());
    assert!(!inspected("[{a: 1n}]").is_empty());
}

#[test]
fn replaced_built_ins_do_not_change_a_completion_value() {
    let mut session = Session::new();
    session.run("Object.prototype.then = function (done) { done('hijacked') }; 0");
    assert_eq!(session.json("40 + 2"), json!(42));
    session.run("delete Object.prototype.then; Object.defineProperty(Object.prototype, 'value', {set() {}, configurable: true}); 0");
    assert_eq!(session.json("43"), json!(43));
    session.run("delete Object.prototype.value; Promise.prototype.then = () => { throw 1 }; JSON.stringify = null; 0");
    assert_eq!(session.json("[44]"), json!([44]));
    session.run("globalThis.Promise = null; Array.prototype[Symbol.iterator] = null; 0");
    assert_eq!(session.json("await 45"), json!(45));
}

#[test]
fn an_error_has_name_message_and_the_lines_of_the_source() {
    let mut session = Session::new();
    let thrown = session.threw("\n\nfunction deep() {\n  throw new TypeError('not that')\n}\ndeep()");
    assert_eq!((thrown.name.as_str(), thrown.message.as_str()), ("TypeError", "not that"));
    assert!(thrown.stack.contains("deep (run.js:4:"), "{}", thrown.stack);
    assert!(thrown.stack.contains("run.js:6:"), "{}", thrown.stack);
    let syntax = session.threw("let a = 1;\nlet = = 2");
    assert_eq!(syntax.name, "SyntaxError");
    assert!(syntax.stack.contains("run.js:2:"), "{}", syntax.stack);
    let later = session.threw("await null;\n\nmissing");
    assert_eq!(later.name, "ReferenceError");
    assert!(later.stack.contains("run.js:3:"), "{}", later.stack);
    assert_eq!(session.threw("throw {odd: 1}").name, "Uncaught");
    assert_eq!(
        session.threw("throw Object.defineProperty(new Error('x'), 'message', {get() { throw 2 }})").message,
        ""
    );
}

#[test]
fn console_output_belongs_to_its_step_and_is_cut_at_the_limit() {
    let mut session = Session::new();
    session.run("console.log('one', 2); console.error('three')");
    assert_eq!(session.console(), "one 2\nthree\n");
    session.run("1");
    assert_eq!(session.console(), "");
    session.limits.output_bytes = 10;
    session.run("console.log('äääää'); console.log('more')");
    let last = session.last.as_ref().unwrap();
    assert_eq!((last.console.as_str(), last.console_dropped), ("äääää", 6));
    session.limits.output_bytes = 9;
    session.run("console.log('äääää')");
    assert_eq!(session.console(), "ääää");
}

#[test]
fn an_unhandled_rejection_is_printed_and_does_not_end_the_run() {
    let mut session = Session::new();
    assert_eq!(
        session.json("Promise.reject(new Error('lost')); const kept = Promise.reject(2); kept.catch(() => 0); 1"),
        json!(1)
    );
    assert!(session.console().starts_with("Uncaught (in promise) "), "{}", session.console());
    assert!(session.console().contains("lost"), "{}", session.console());
    assert_eq!(session.console().matches("Uncaught").count(), 1);
    session.threw("throw 1");
    assert_eq!(session.console(), "");
}

#[test]
fn surroundings_belong_to_the_step_and_not_to_the_heap() {
    let mut session = Session::new();
    session.surroundings.headers.insert("x-mcp-user".into(), "ada".into());
    session.run("const seen = () => [mcp.headers['x-mcp-user'], typeof plasm, typeof fetch]");
    assert_eq!(session.json("seen()"), json!(["ada", "function", "undefined"]));
    session.surroundings.headers.insert("x-mcp-user".into(), "grace".into());
    session.surroundings.programs = false;
    session.surroundings.fetch = true;
    assert_eq!(session.json("seen()"), json!(["grace", "undefined", "function"]));
    session.surroundings.headers.clear();
    assert_eq!(session.json("seen()"), json!([null, "undefined", "function"]));
}

#[test]
fn zones_and_digests_come_from_the_host() {
    let mut session = Session::new();
    let digest = session.json("[...new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode('abc')))].map((b) => b.toString(16).padStart(2, '0')).join('')");
    assert_eq!(digest, json!(base::Digest::of(b"abc").to_string()));
    let time = session.json("new Date(0).toLocaleTimeString('en-US', {timeZone: 'Asia/Kolkata'})");
    assert_eq!(time.as_str().map(|time| time.replace('\u{202f}', " ")), Some("5:30:00 AM".to_owned()));
}
