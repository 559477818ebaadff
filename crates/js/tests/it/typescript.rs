//! Tests of the translation from TypeScript: types are blanked, and JavaScript stays unchanged.
//! Invariant: for any source, every line of the result has as many characters as before.

use std::path::Path;

use js::typescript::to_javascript;
use proptest::prelude::*;
use testkit::golden::{self, Case};

#[test]
fn golden_typescript() {
    golden::run(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/js"), |case: &Case| shown(&case.input));
}

fn shown(source: &str) -> String {
    match to_javascript(source) {
        Ok(plain) => {
            assert_same_lengths(source, &plain);
            // Spaces at the end of a line are invisible in a golden file. Their number was checked above.
            plain.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
        }
        Err(thrown) => format!("{}: {}\n{}", thrown.name, thrown.message, thrown.stack.trim_end()),
    }
}

fn assert_same_lengths(source: &str, plain: &str) {
    let lengths = |text: &str| text.split('\n').map(|line| line.chars().count()).collect::<Vec<_>>();
    assert_eq!(lengths(source), lengths(plain), "{source}\n--\n{plain}");
}

/// Generates a piece of a source: a type, code, or neither.
fn piece() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "let a: number = 1",
        "\n",
        ";",
        "type A = 'ü'",
        "x as any",
        "(y)",
        "[1]",
        "<T>",
        "`z${",
        "}`",
        "{",
        "}",
        "(",
        ")",
        "class B implements C",
        "x!",
        "function f(a?: 1): void",
        "=>",
        "async",
        "return",
        "interface D",
        "private x = 1",
        "enum E { F }",
        "import g from 'h'",
        "export",
        "await i",
        "/*",
        "*/",
        "//",
        "'",
        "/",
        "+",
        "😀",
        "\u{2028}",
        "\r\n",
        "abstract",
        "declare",
        "satisfies",
        "get: 1",
        "?",
        ":",
        "<",
        ">",
        ",",
        "if (j)",
        "else",
        "for (const k of l)",
        "@m",
    ])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn positions_stay_in_any_source(pieces in prop::collection::vec(piece(), 0..14)) {
        let source = pieces.join(" ");
        if let Ok(plain) = to_javascript(&source) {
            assert_same_lengths(&source, &plain);
        }
    }

    /// The result is JavaScript, which stays unchanged.
    #[test]
    fn a_result_is_translated_to_itself(pieces in prop::collection::vec(piece(), 0..14)) {
        let source = pieces.join(" ");
        if let Ok(once) = to_javascript(&source) && once != source {
            prop_assert_eq!(to_javascript(&once).unwrap(), once);
        }
    }
}

/// Tests depths around the largest that is parsed, with and without closing brackets. One token for each level is the
/// worst case.
#[test]
fn any_depth_is_survived() {
    // The stack is smaller than that of a thread of an asynchronous runtime.
    let small_stack = std::thread::Builder::new().stack_size(512 * 1024);
    let kinds = [
        ("(", ")"),
        ("[", "]"),
        ("{a:", "}"),
        ("!", ""),
        ("a=>", ""),
        ("a?b:", ""),
        ("`${", "}`"),
        ("1+", ""),
        ("await ", ""),
        ("class{x=", "}"),
        ("<T>", ""),
        ("(a:", ")=>1"),
        ("(a=", ")=>1"),
        ("f<", ">"),
        ("a.b(", ")"),
        ("function(){if(1)", "}"),
        ("new ", ""),
        ("1 as ", ""),
        ("{[", "]:1}"),
        ("async(", ")"),
        ("(a,b=", ")"),
        ("[a=", "]"),
        ("{", "}"),
        ("<", ">"),
        ("(a=b<", ")"),
        ("({a=b<", ")"),
        ("(a=b<')'+", ")"),
        ("(a=b</)/+", ")"),
        ("(a=b<`${1})`+", ")"),
        ("a=1/(b=c<1)/d,(a=b<", ")"),
    ];
    let all_kinds = move || {
        for (open, close) in kinds {
            let start = std::time::Instant::now();
            for depth in [100, 8_000, 21_000, 31_000, 65_000] {
                let opened = open.repeat(depth);
                let _ = to_javascript(&format!("let a: number = {opened}1{};", close.repeat(depth)));
                let _ = to_javascript(&format!("let a: number = {opened}"));
                let _ = to_javascript(&format!("let a: {opened}"));
            }
            assert!(start.elapsed().as_secs() < 20, "{open} takes {:?}", start.elapsed());
        }
    };
    small_stack.spawn(all_kinds).unwrap().join().unwrap();
}
