//! Runs the golden cases of the parser (`tests/lang/syntax/*.case`) and of the formatter (`tests/lang/format/*.case`).
//! Invariant: a case of the parser contains the whole tree and every diagnostic. Every golden program that parses is
//! also formatted.

use std::path::Path;

use base::{Diagnostic, Limits};
use lang::syntax::{self, format, format_text, outline, parse};
use testkit::golden::{self, Case};

#[test]
fn parser_output_matches_the_golden_cases() {
    golden::run(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lang/syntax"), parse_case);
}

/// Parses the input of a case. The attributes are `mode = taught`, `eol = crlf`, `bom = yes`, `show = tokens`, and
/// limits.
fn parse_case(case: &Case) -> String {
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

#[test]
fn formatter_output_matches_the_golden_cases() {
    let formatted = |case: &Case| format_text(&case.input, &Limits::default()).unwrap().trim_end().to_owned();
    golden::run(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lang/format"), formatted);
}

#[test]
fn every_golden_program_parses_to_the_same_tree_after_formatting() {
    let mut parsed_count = 0;
    for folder in ["syntax", "check", "plan", "format"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lang").join(folder);
        for entry in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for case in text.split("\n=== ") {
                let body = case.split_once('\n').map_or("", |(_, body)| body);
                let input: Vec<&str> =
                    body.lines().take_while(|l| *l != "---").filter(|l| !l.starts_with("#!")).collect();
                parsed_count += usize::from(check_formatting_keeps_program(&input.join("\n")));
            }
        }
    }
    assert!(parsed_count > 300, "{parsed_count}");
}

/// Returns whether the program parses. Asserts that both formatting functions keep the program unchanged, and that
/// formatting twice has the same result as formatting once.
fn check_formatting_keeps_program(text: &str) -> bool {
    let limits = Limits::default();
    let first = parse(text, &limits);
    let is_empty = first.program.bindings.is_empty() && first.program.roots.is_empty();
    if is_empty || first.diagnostics.iter().any(Diagnostic::is_error) {
        return false;
    }
    let written = format(&first.program);
    let second = parse(&written, &limits);
    assert_eq!(outline(&first.program), outline(&second.program), "{text}\n--\n{written}");
    assert_eq!(format(&second.program), written, "{text}");
    let with_comments = format_text(text, &limits).unwrap();
    assert_eq!(
        outline(&parse(&with_comments, &limits).program),
        outline(&first.program),
        "{text}\n--\n{with_comments}"
    );
    assert_eq!(format_text(&with_comments, &limits).unwrap(), with_comments, "{text}");
    true
}
