//! Declarations in several runs of a session, as at a prompt.

use serde_json::json;

use crate::support::Session;

#[test]
fn names_persist_and_may_be_declared_again() {
    let mut session = Session::new();
    session.run("let a = 1; const b = 2; class C { who() { return 'first' } } function f() { return 'f1' } var v = 3; globalThis.g = 4");
    assert_eq!(session.json("[a, b, new C().who(), f(), v, g]"), json!([1, 2, "first", "f1", 3, 4]));
    session
        .run("let a = 10; const b = 20; class C { who() { return 'second' } } function f() { return 'f2' } var v = 30");
    assert_eq!(session.json("[a, b, new C().who(), f(), v]"), json!([10, 20, "second", "f2", 30]));
    session.run("const a = 100; let b = 200; let f = () => 'f3'; let v = 300");
    assert_eq!(session.json("[a, b, f(), v]"), json!([100, 200, "f3", 300]));
    session.run("function b() { return 'fb' } var a = 7");
    assert_eq!(session.json("[a, b()]"), json!([7, "fb"]));
}

#[test]
fn the_newest_declaration_decides_whether_a_name_may_be_assigned() {
    let mut session = Session::new();
    session.run("const a = 1; let b = 1");
    assert_eq!(session.threw("a = 2").name, "TypeError");
    session.run("let a = 3; const b = 3");
    assert_eq!(session.json("a = 4"), json!(4));
    assert_eq!(session.threw("b = 4").name, "TypeError");
}

#[test]
fn old_closures_see_the_new_binding() {
    let mut session = Session::new();
    session.run("let n = 1; const read = () => n; const write = (m) => { n = m }");
    session.run("let n = 2");
    assert_eq!(session.json("read()"), json!(2));
    assert_eq!(session.json("write(3); n"), json!(3));
}

#[test]
fn a_name_declared_twice_in_one_script_is_an_error() {
    let mut session = Session::new();
    assert_eq!(session.threw("let a = 1; let a = 2").name, "SyntaxError");
    assert_eq!(session.threw("let undefined = 1").name, "SyntaxError");
}

#[test]
fn a_failed_run_leaves_its_heap_unchanged() {
    let mut session = Session::new();
    session.run("let a = 1");
    let before = session.head;
    session.threw("a = 2; throw 0");
    session.head = before;
    assert_eq!(session.json("a"), json!(1));
}

#[test]
fn the_same_script_on_the_same_heap_makes_the_same_heap() {
    let mut session = Session::new();
    session.run("let rows = []; for (let i = 0; i < 1000; i++) rows.push({i, text: 'row ' + i})");
    let parent = session.head;
    session.run("rows[500].text = 'changed'; rows.length");
    let from_live_guest = session.head;
    session.head = parent;
    session.run("rows[500].text = 'changed'; rows.length");
    assert_eq!(session.head, from_live_guest, "from the image");
    session.head = parent;
    session.move_to_new_engine();
    session.run("rows[500].text = 'changed'; rows.length");
    assert_eq!(session.head, from_live_guest, "from the objects, in another engine");
}
