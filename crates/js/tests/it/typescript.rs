//! TypeScript blanked in place, and JavaScript left alone.
//! Invariant: whatever comes in, every line that comes out has as many characters as it had.

use std::path::Path;

use js::typescript::plain;
use proptest::prelude::*;
use testkit::golden::{self, Case};

#[test]
fn sources_become_what_their_cases_say() {
    golden::run(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/js"), |case: &Case| shown(&case.input));
}

fn shown(source: &str) -> String {
    match plain(source) {
        Ok(plain) => {
            same_places(source, &plain);
            // Spaces at the end of a line cannot be seen in a file; that they are there was just checked.
            plain.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
        }
        Err(thrown) => format!("{}: {}\n{}", thrown.name, thrown.message, thrown.stack.trim_end()),
    }
}

fn same_places(source: &str, plain: &str) {
    let lengths = |text: &str| text.split('\n').map(|line| line.chars().count()).collect::<Vec<_>>();
    assert_eq!(lengths(source), lengths(plain), "{source}\n--\n{plain}");
}

/// Pieces of which some are types, some are code and some are neither.
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
    fn places_stay_in_any_source(pieces in prop::collection::vec(piece(), 0..14)) {
        let source = pieces.join(" ");
        if let Ok(plain) = plain(&source) {
            same_places(&source, &plain);
        }
    }

    /// What came of a source is JavaScript, or was none of our business.
    #[test]
    fn what_comes_out_goes_in_again_unchanged(pieces in prop::collection::vec(piece(), 0..14)) {
        let source = pieces.join(" ");
        if let Ok(once) = plain(&source) && once != source {
            prop_assert_eq!(plain(&once).unwrap(), once);
        }
    }
}

/// Depths around the most that is parsed, with and without their ends: a token a level is the worst a source can do.
#[test]
fn any_depth_is_survived() {
    // A thread as small as those of an asynchronous runtime.
    let small = std::thread::Builder::new().stack_size(512 * 1024);
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
    let all = move || {
        for (open, close) in kinds {
            let start = std::time::Instant::now();
            for depth in [100, 8_000, 21_000, 31_000, 65_000] {
                let opened = open.repeat(depth);
                let _ = plain(&format!("let a: number = {opened}1{};", close.repeat(depth)));
                let _ = plain(&format!("let a: number = {opened}"));
                let _ = plain(&format!("let a: {opened}"));
            }
            assert!(start.elapsed().as_secs() < 20, "{open} takes {:?}", start.elapsed());
        }
    };
    small.spawn(all).unwrap().join().unwrap();
}
