//! Parses any text to a tree. A program without mistakes is formatted to an equal program, and formatting it again changes nothing.
//! Invariant: nothing panics.
#![no_main]

use base::{Diagnostic, Limits};
use lang::syntax::{format, format_text, outline, parse, parse_taught};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let limits = Limits::default();
    let _ = parse_taught(text, &limits);
    let parsed = parse(text, &limits);
    for found in &parsed.diagnostics {
        assert!(text.get(found.span.start as usize..found.span.end as usize).is_some(), "{found:?}");
    }
    let _ = base::render_for_model(text, &parsed.diagnostics);
    if parsed.diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    let written = format(&parsed.program);
    let again = parse(&written, &limits);
    // The formatted text may be longer than a program may be.
    if written.len() > limits.program_bytes {
        return;
    }
    assert_eq!(outline(&parsed.program), outline(&again.program), "{written}");
    assert_eq!(format(&again.program), written);
    let Ok(kept) = format_text(text, &limits) else { panic!("a program without mistakes is not formatted") };
    assert_eq!(outline(&parse(&kept, &limits).program), outline(&parsed.program), "{kept}");
});
