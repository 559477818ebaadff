//! The formatter: what it writes parses to the same tree, and writing it again changes nothing.
//! Invariant: every golden program that parses is tried.

use std::path::Path;

use base::{Diagnostic, Limits};
use lang::syntax::{format, format_text, outline, parse};
use testkit::golden::{self, Case};

#[test]
fn programs_are_written_as_their_cases_say() {
    let found = |case: &Case| format_text(&case.input, &Limits::default()).unwrap().trim_end().to_owned();
    golden::run(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lang/format"), found);
}

#[test]
fn every_golden_program_is_written_back_as_itself() {
    let mut tried = 0;
    for folder in ["syntax", "check", "plan", "format"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/lang").join(folder);
        for entry in std::fs::read_dir(folder).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            for case in text.split("\n=== ") {
                let body = case.split_once('\n').map_or("", |(_, body)| body);
                let input: Vec<&str> =
                    body.lines().take_while(|l| *l != "---").filter(|l| !l.starts_with("#!")).collect();
                tried += usize::from(same(&input.join("\n")));
            }
        }
    }
    assert!(tried > 300, "{tried}");
}

/// Whether the program parses; if so, what is written is the same program.
fn same(text: &str) -> bool {
    let limits = Limits::default();
    let first = parse(text, &limits);
    let nothing = first.program.bindings.is_empty() && first.program.roots.is_empty();
    if nothing || first.diagnostics.iter().any(Diagnostic::is_error) {
        return false;
    }
    let written = format(&first.program);
    let second = parse(&written, &limits);
    assert_eq!(outline(&first.program), outline(&second.program), "{text}\n--\n{written}");
    assert_eq!(format(&second.program), written, "{text}");
    let kept = format_text(text, &limits).unwrap();
    assert_eq!(outline(&parse(&kept, &limits).program), outline(&first.program), "{text}\n--\n{kept}");
    assert_eq!(format_text(&kept, &limits).unwrap(), kept, "{text}");
    true
}
