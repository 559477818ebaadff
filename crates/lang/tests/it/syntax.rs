//! Golden cases of the parser: `tests/lang/syntax/*.case`.
//! Invariant: a case shows the whole tree and every diagnostic, so nothing changes unseen.

use std::path::Path;

use base::Limits;
use lang::syntax;
use testkit::golden::{self, Case};

#[test]
fn programs_parse_as_their_cases_say() {
    golden::run(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lang/syntax"), answer);
}

/// Attributes: `mode = taught`, `eol = crlf`, `bom = yes`, `show = tokens`, and limits.
fn answer(case: &Case) -> String {
    let mut text = case.input.clone();
    if case.attribute("eol") == Some("crlf") {
        text = text.replace('\n', "\r\n");
    }
    if case.attribute("bom").is_some() {
        text.insert(0, '\u{feff}');
    }
    if case.attribute("show") == Some("tokens") {
        let tokens = syntax::tokens(&text).into_iter();
        let lines: Vec<String> = tokens.map(|token| format!("{} {:?}", token.kind, token.span.of(&text))).collect();
        return lines.join("\n");
    }
    let number = |name: &str, otherwise| case.attribute(name).map_or(otherwise, |value| value.parse().unwrap_or(0));
    let standard = Limits::default();
    let limits = Limits {
        program_bytes: number("bytes", standard.program_bytes),
        statements: number("statements", standard.statements),
        nesting: number("nesting", standard.nesting),
        ..standard
    };
    let parsed = match case.attribute("mode") {
        Some("taught") => syntax::parse_taught(&text, &limits),
        _ => syntax::parse(&text, &limits),
    };
    let diagnostics = base::render_for_model(&text, &parsed.diagnostics);
    format!("{}{diagnostics}", syntax::outline(&parsed.program))
}
