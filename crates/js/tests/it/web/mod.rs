//! Tests of the globals against their standards: the web-platform tests of URLs, which come with the crate `url`, and
//! own files. `scripts/ecmascript.sh` runs the web-platform tests of the other globals.

// why: the tests print how many cases pass.
#![allow(clippy::print_stdout)]

mod rust_reference;
mod url;
mod wpt;

use ports::scripts::{Call, Completion, Outcome};
use serde_json::{Value, json};

use crate::support::Session;

const HARNESS: &str = include_str!("harness.js");

/// Runs a test file and returns the tests that failed. Timers fire in their order, without waiting.
pub fn failures(session: &mut Session, code: &str) -> Vec<String> {
    let mut outcome = session.run(code);
    loop {
        match outcome {
            Outcome::Completed(Completion::Json(Value::Array(list))) => {
                return list.iter().map(|one| one.as_str().unwrap().to_owned()).collect();
            }
            Outcome::Waiting { owed: calls } => {
                let timers = calls.iter().filter_map(|call| match call.call {
                    Call::Timer { ms } => Some((ms, call.id)),
                    _ => None,
                });
                let (_, id) = timers.min().unwrap();
                outcome = session.settle(vec![(id, Ok(json!(null)))]);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn assert_passes(text: &str) {
    let mut session = Session::new();
    session.surroundings.fetch = true;
    session.run(HARNESS);
    let failures = failures(&mut session, text);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn text_and_base64() {
    assert_passes(include_str!("text.js"));
}

#[test]
fn structured_clone() {
    assert_passes(include_str!("clone.js"));
}

#[test]
fn events_and_abort() {
    assert_passes(include_str!("events.js"));
}

#[test]
fn headers_requests_responses() {
    assert_passes(include_str!("fetch.js"));
}

#[test]
fn timers_crypto_urls() {
    assert_passes(include_str!("others.js"));
}

#[test]
fn console() {
    let mut session = Session::new();
    session.run(
        "console.log('%s is %d years and %i, %f, %j %o %% %c.', 'x', '42', 4.7, '1.5', {a: 1}, [1], 'color: red', 'rest', 5);
         console.log('%s'); console.log('100%', 1); console.log({a: {b: {c: {d: 1}}}}, [1, 'x'], new Map([[1, {}]]), null, undefined, -0, 1n, Symbol('s'));
         console.info('i'); console.debug('d'); console.warn('w'); console.error('e');
         console.assert(true, 'no'); console.assert(false); console.assert(0, 'why %s', 'so');
         console.count(); console.count('x'); console.count(); console.countReset(); console.count();
         console.group('g'); console.log('in\\nside'); console.group(); console.log('deeper'); console.groupEnd(); console.groupEnd(); console.log('out');
         console.timeLog('never'); console.table([{a: 1, b: 'x'}, {a: 2}]); console.table(5);",
    );
    let lines: Vec<_> = session.console().lines().collect();
    assert_eq!(
        lines,
        [
            "x is 42 years and 4, 1.5, {\"a\":1} [ 1 ] % . rest 5",
            "%s",
            "100% 1",
            "{ a: { b: { c: { d: 1 } } } } [ 1, 'x' ] Map(1) { 1 => {} } null undefined -0 1n Symbol(s)",
            "i",
            "d",
            "w",
            "e",
            "Assertion failed",
            "Assertion failed: why so",
            "default: 1",
            "x: 1",
            "default: 2",
            "default: 1",
            "g",
            "  in",
            "  side",
            "    deeper",
            "out",
            "Timer 'never' does not exist",
            "┌─────────┬───┬─────┐",
            "│ (index) │ a │ b   │",
            "├─────────┼───┼─────┤",
            "│ 0       │ 1 │ 'x' │",
            "│ 1       │ 2 │     │",
            "└─────────┴───┴─────┘",
            "5",
        ]
    );
}
