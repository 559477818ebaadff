//! Parses any text to a tree. A program without mistakes is formatted to an equal program, and formatting it again
//! changes nothing.
//! Invariant: nothing panics.
#![no_main]

use base::{Diagnostic, Limits};
use lang::syntax::{format, format_text, outline, parse, parse_taught};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let limits = Limits::default();
    let _ = parse_taught(text, &limits);
    let parsed = parse(text, &limits);
    for diagnostic in &parsed.diagnostics {
        let range = diagnostic.span.start as usize..diagnostic.span.end as usize;
        assert!(text.get(range).is_some(), "{diagnostic:?}");
    }
    let _ = base::render_for_model(text, &parsed.diagnostics);
    if parsed.diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    let written = format(&parsed.program);
    let reparsed = parse(&written, &limits);
    // Formatting may make the text longer than the limit for a program, and it does not parse then.
    if written.len() > limits.program_bytes {
        return;
    }
    assert_eq!(outline(&parsed.program), outline(&reparsed.program), "{written}");
    assert_eq!(format(&reparsed.program), written);
    let Ok(with_comments) = format_text(text, &limits) else { panic!("a program without mistakes is not formatted") };
    assert_eq!(outline(&parse(&with_comments, &limits).program), outline(&parsed.program), "{with_comments}");
});
