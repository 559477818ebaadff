//! The global names of a heap, with their kinds, previews, sizes and digests.

use std::collections::BTreeMap;

use ports::Scripts;
use ports::scripts::Global;

use crate::support::{Session, wait};

fn globals(session: &Session) -> BTreeMap<String, Global> {
    let globals = wait(session.engine.globals(session.head.unwrap())).unwrap();
    globals.into_iter().map(|global| (global.name.clone(), global)).collect()
}

#[test]
fn every_kind_of_binding_is_listed_and_no_name_of_the_engine() {
    let mut session = Session::new();
    session.run(
        "let a = 1; const b = 'text'; class C {} function f() {} var v = [1, 2, 3]; globalThis.g = new Map([[1, 2]])",
    );
    let globals = globals(&session);
    let kinds: Vec<_> = globals.values().map(|global| (global.name.as_str(), global.kind.as_str())).collect();
    assert_eq!(
        kinds,
        [("C", "class"), ("a", "number"), ("b", "string"), ("f", "function"), ("g", "map"), ("v", "array")]
    );
    assert_eq!((globals["a"].preview.as_str(), globals["b"].preview.as_str()), ("1", "text"));
    assert_eq!((globals["v"].preview.as_str(), globals["g"].preview.as_str()), ("3 items", "1 entries"));
}

#[test]
fn digests_depend_on_the_content_only() {
    let mut session = Session::new();
    session.run("let rows = [{a: 1, b: 'x'}], twin = [{a: 1, b: 'x'}], other = [{a: 1, b: 'y'}]; const loop = {}; loop.self = loop");
    let first = globals(&session);
    assert_eq!(first["rows"].digest, first["twin"].digest);
    assert_ne!(first["rows"].digest, first["other"].digest);
    let mut other_session = Session::new();
    other_session.run("for (let i = 0; i < 1000; i++) [i]");
    other_session.run("const junk = 'x'.repeat(5000); const rows = []; rows.push({a: 1}); rows[0].b = 'x'; const loop = {}; loop.self = loop");
    let second = globals(&other_session);
    assert_eq!(first["rows"].digest, second["rows"].digest);
    assert_eq!(first["loop"].digest, second["loop"].digest);
    session.run("rows[0].b = 'z'");
    assert_ne!(globals(&session)["rows"].digest, first["rows"].digest);
    assert_eq!(globals(&session)["twin"].digest, first["twin"].digest);
}

#[test]
fn listing_globals_runs_no_code_and_changes_no_heap() {
    let mut session = Session::new();
    session.run("let ran = 0; const trap = new Proxy({}, {get() { ran++ }, ownKeys() { ran++; return [] }}); const got = {get x() { ran++ }}; class P { #secret = 1; bump() { this.#secret++ } } const p = new P()");
    let first = globals(&session);
    assert_eq!(globals(&session)["p"].digest, first["p"].digest);
    assert_eq!(session.json("ran"), serde_json::json!(0));
    session.run("p.bump()");
    assert_ne!(globals(&session)["p"].digest, first["p"].digest, "private fields count");
}

#[test]
fn the_size_covers_everything_reachable_from_a_name() {
    let mut session = Session::new();
    session.run("const small = [1]; const large = Array.from({length: 1000}, (_, i) => ({i, text: 'abc'})); let deep = null; for (let i = 0; i < 200000; i++) deep = {deep}");
    let globals = globals(&session);
    assert!(globals["large"].size > 20_000 && globals["large"].size < 1_000_000, "{}", globals["large"].size);
    assert!(globals["small"].size < 500, "{}", globals["small"].size);
    assert!(globals["deep"].size > 1_000_000, "{}", globals["deep"].size);
}
