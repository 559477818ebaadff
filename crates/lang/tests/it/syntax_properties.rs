//! What holds for any text whatever: the parser answers, and its places fit the text.
//! Invariant: cases are bounded and small, so a failure shrinks to something a person can read.

use base::{Limits, Severity, Span};
use lang::syntax::{self, ParseOutput, TokenKind};
use proptest::prelude::*;
use serde_json::Value;

const WORDS: &[&str] = &[
    "e1",
    "x",
    "rows",
    "_",
    "p1",
    "limit",
    "sort",
    "filter",
    "group_by",
    "aggregate",
    "count",
    "sum",
    "first",
    "page",
    "and",
    "or",
    "true",
    "null",
    "now",
    "let",
    "7",
    "-3",
    "1.5",
    "2026-01-01",
    "\"text\"",
    "\"",
    "'q'",
    "$",
    "<<T",
    "<<T\nx\nT",
    "\nT\n",
    "T",
    ".",
    ".^",
    ",",
    "=",
    "==",
    "!=",
    "<",
    ">=",
    "~",
    "=>",
    ":",
    ";",
    ";;",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "\n",
    "\r\n",
    " ",
    "  ",
    "é",
    "@",
    "/",
    "#",
    "|",
    "+",
    "-",
    "*",
    "```",
    "\\",
    "plasm://s",
    "\u{feff}",
    "“",
];

const PROGRAMS: &[&str] = &[
    "open = e1{p3=\"open\", p4>=3}\nhot = open.sort(p4, desc).limit(5)[p1, p13.p27]\nhot, open.group_by(p4, n=count)",
    "rows => e1(p1=_.p1, p2=_.p2).m1(p5=<<T\nHi {{ _.p13 }}\nT\n)[p2]",
    "report = rows[p9] <<TAG\n{% for r in rows %}{{ r.p9 }}\n{% endfor %}\nTAG\ne2.m1(Circle{r=[1, {k: null}]})",
    "page(s0_pg1, limit=50), e1~\"raft\"{p7=\"Rust\"}.filter{p5=true}.first().r1{}.^tracker:Ticket",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn any_soup_of_tokens_is_answered(words in prop::collection::vec(prop::sample::select(WORDS), 0..60)) {
        check(&words.concat())?;
    }

    #[test]
    fn any_damaged_program_is_answered(
        program in prop::sample::select(PROGRAMS),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(WORDS), any::<bool>()), 1..4),
    ) {
        let mut text = program.to_owned();
        for (at, word, removes) in cuts {
            let at = text.floor_char_boundary(at.index(text.len() + 1));
            if removes && at < text.len() {
                text.remove(at);
            } else {
                text.insert_str(at, word);
            }
        }
        check(&text)?;
    }

    #[test]
    fn blank_lines_and_comments_change_nothing(program in prop::sample::select(PROGRAMS), crlf in any::<bool>()) {
        let plain = syntax::parse(program, &Limits::default());
        prop_assert!(plain.diagnostics.is_empty(), "{:?}", plain.diagnostics);
        let ending = if crlf { "\r\n" } else { "\n" };
        let text = format!(";; first{ending}{ending}{program}  ;; last{ending}\t{ending}");
        let blank = syntax::parse(&text, &Limits::default());
        prop_assert!(blank.diagnostics.is_empty(), "{:?}", blank.diagnostics);
        prop_assert_eq!(syntax::outline(&plain.program), syntax::outline(&blank.program));
    }
}

fn check(text: &str) -> Result<(), TestCaseError> {
    let limits = Limits { nesting: 6, statements: 20, ..Limits::default() };
    for (taught, parsed) in [(false, syntax::parse(text, &limits)), (true, syntax::parse_taught(text, &limits))] {
        let ParseOutput { program, diagnostics } = &parsed;
        prop_assert!(diagnostics.len() <= 20);
        prop_assert!(diagnostics.is_sorted_by_key(|found| found.span.start));
        for found in diagnostics {
            fits(text, found.span)?;
            prop_assert!(!found.message.contains('\n'), "{}", found.message);
            prop_assert!(found.copy.as_ref().is_none_or(|copy| !copy.contains('\n')), "{:?}", found.copy);
        }
        let places: Vec<u32> = diagnostics
            .iter()
            .filter(|found| found.severity == Severity::Error)
            .map(|found| found.span.start)
            .collect();
        prop_assert!(places.is_sorted_by(|a, b| a < b), "one error per place: {diagnostics:?}");
        let tree = serde_json::to_value(program).map_err(|error| TestCaseError::fail(error.to_string()))?;
        spans(&tree, &mut |span| fits(text, span))?;
        // A place to fill may stand only in a taught line, where a block may lack its body.
        if !taught && !diagnostics.iter().any(|found| found.severity == Severity::Error) {
            let written = syntax::format(program);
            let again = syntax::parse(&written, &limits);
            prop_assert_eq!(syntax::outline(program), syntax::outline(&again.program), "{} -- {}", text, written);
        }
        let _ = base::render_for_people("program", text, diagnostics, false);
    }
    tokens_fit(text)
}

fn tokens_fit(text: &str) -> Result<(), TestCaseError> {
    let mut end = 0;
    for token in syntax::tokens(text) {
        fits(text, token.span)?;
        prop_assert!(token.span.start >= end, "tokens overlap");
        prop_assert!(token.kind != TokenKind::End && !token.span.of(text).is_empty());
        end = token.span.end;
    }
    Ok(())
}

fn fits(text: &str, span: Span) -> Result<(), TestCaseError> {
    let range = span.start as usize..span.end as usize;
    prop_assert!(text.get(range).is_some(), "{span:?} does not fit {text:?}");
    Ok(())
}

/// Calls `visit` with every span in a tree.
fn spans(value: &Value, visit: &mut impl FnMut(Span) -> Result<(), TestCaseError>) -> Result<(), TestCaseError> {
    match value {
        Value::Object(fields) => {
            let number = |name| fields.get(name).and_then(Value::as_u64);
            if let (Some(start), Some(end)) = (number("start"), number("end")) {
                visit(Span { start: start as u32, end: end as u32 })?;
            }
            fields.values().try_for_each(|field| spans(field, visit))
        }
        Value::Array(items) => items.iter().try_for_each(|item| spans(item, visit)),
        _ => Ok(()),
    }
}
