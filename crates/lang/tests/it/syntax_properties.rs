//! Tests properties of the parser for random texts: it always returns a tree, and all spans are inside the text.
//! Invariant: random cases are small, so that a failure shrinks to a readable text.

use base::{Limits, Severity, Span};
use lang::syntax::{self, ParseOutput, TokenKind};
use proptest::prelude::*;
use serde_json::Value;

/// Pieces of text that random programs are composed of.
const TEXT_PIECES: &[&str] = &[
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

/// Valid programs that the tests damage in random places.
const VALID_PROGRAMS: &[&str] = &[
    "open = e1{p3=\"open\", p4>=3}\nhot = open.sort(p4, desc).limit(5)[p1, p13.p27]\nhot, open.group_by(p4, n=count)",
    "rows => e1(p1=_.p1, p2=_.p2).m1(p5=<<T\nHi {{ _.p13 }}\nT\n)[p2]",
    "report = rows[p9] <<TAG\n{% for r in rows %}{{ r.p9 }}\n{% endfor %}\nTAG\ne2.m1(Circle{r=[1, {k: null}]})",
    "page(s0_pg1, limit=50), e1~\"raft\"{p7=\"Rust\"}.filter{p5=true}.first().r1{}.^tracker:Ticket",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_yields_a_tree(text in any::<String>()) {
        check_parse(&text)?;
    }

    #[test]
    fn any_sequence_of_tokens_yields_a_tree(words in prop::collection::vec(prop::sample::select(TEXT_PIECES), 0..60)) {
        check_parse(&words.concat())?;
    }

    #[test]
    fn any_damaged_program_yields_a_tree(
        program in prop::sample::select(VALID_PROGRAMS),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(TEXT_PIECES), any::<bool>()), 1..4),
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
        check_parse(&text)?;
    }

    #[test]
    fn blank_lines_and_comments_keep_the_tree(program in prop::sample::select(VALID_PROGRAMS), crlf in any::<bool>()) {
        let plain = syntax::parse(program, &Limits::default());
        prop_assert!(plain.diagnostics.is_empty(), "{:?}", plain.diagnostics);
        let ending = if crlf { "\r\n" } else { "\n" };
        let text = format!(";; first{ending}{ending}{program}  ;; last{ending}\t{ending}");
        let blank = syntax::parse(&text, &Limits::default());
        prop_assert!(blank.diagnostics.is_empty(), "{:?}", blank.diagnostics);
        prop_assert_eq!(syntax::outline(&plain.program), syntax::outline(&blank.program));
    }
}

/// Checks the diagnostics, the spans and the formatting of a text, both as a program and as a taught line.
fn check_parse(text: &str) -> Result<(), TestCaseError> {
    let limits = Limits { nesting: 6, statements: 20, ..Limits::default() };
    for (taught, parsed) in [(false, syntax::parse(text, &limits)), (true, syntax::parse_taught(text, &limits))] {
        let ParseOutput { program, diagnostics } = &parsed;
        prop_assert!(diagnostics.len() <= 20);
        prop_assert!(diagnostics.is_sorted_by_key(|diagnostic| diagnostic.span.start));
        for diagnostic in diagnostics {
            check_span(text, diagnostic.span)?;
            prop_assert!(!diagnostic.message.contains('\n'), "{}", diagnostic.message);
            prop_assert!(diagnostic.copy.as_ref().is_none_or(|copy| !copy.contains('\n')), "{:?}", diagnostic.copy);
        }
        let error_starts: Vec<u32> = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.severity == Severity::Error)
            .map(|diagnostic| diagnostic.span.start)
            .collect();
        prop_assert!(error_starts.is_sorted_by(|a, b| a < b), "one error per place: {diagnostics:?}");
        let tree = serde_json::to_value(program).map_err(|error| TestCaseError::fail(error.to_string()))?;
        visit_spans(&tree, &mut |span| check_span(text, span))?;
        // Taught lines are not formatted, because a heredoc in them may have no body.
        if !taught && !diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error) {
            let written = syntax::format(program);
            let reparsed = syntax::parse(&written, &limits);
            prop_assert_eq!(syntax::outline(program), syntax::outline(&reparsed.program), "{} -- {}", text, written);
        }
        let _ = base::render_for_people("program", text, diagnostics, false);
    }
    check_tokens(text)
}

fn check_tokens(text: &str) -> Result<(), TestCaseError> {
    let mut end = 0;
    for token in syntax::tokens(text) {
        check_span(text, token.span)?;
        prop_assert!(token.span.start >= end, "tokens overlap");
        prop_assert!(token.kind != TokenKind::End && !token.span.of(text).is_empty());
        end = token.span.end;
    }
    Ok(())
}

fn check_span(text: &str, span: Span) -> Result<(), TestCaseError> {
    let range = span.start as usize..span.end as usize;
    prop_assert!(text.get(range).is_some(), "{span:?} does not fit {text:?}");
    Ok(())
}

/// Calls `visit` with every span of a tree.
fn visit_spans(value: &Value, visit: &mut impl FnMut(Span) -> Result<(), TestCaseError>) -> Result<(), TestCaseError> {
    match value {
        Value::Object(fields) => {
            let number = |name| fields.get(name).and_then(Value::as_u64);
            if let (Some(start), Some(end)) = (number("start"), number("end")) {
                visit(Span { start: start as u32, end: end as u32 })?;
            }
            fields.values().try_for_each(|field| visit_spans(field, visit))
        }
        Value::Array(items) => items.iter().try_for_each(|item| visit_spans(item, visit)),
        _ => Ok(()),
    }
}
