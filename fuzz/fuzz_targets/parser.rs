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
    for diagnostic in &parsed.diagnostics {
        assert!(text.get(diagnostic.span.start as usize..diagnostic.span.end as usize).is_some(), "{diagnostic:?}");
    }
    let _ = base::render_for_model(text, &parsed.diagnostics);
    if parsed.diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    let formatted = format(&parsed.program);
    let reparsed = parse(&formatted, &limits);
    // Formatting can make a program longer than the limit, so that it cannot be parsed.
    if formatted.len() > limits.program_bytes {
        return;
    }
    assert_eq!(outline(&parsed.program), outline(&reparsed.program), "{formatted}");
    assert_eq!(format(&reparsed.program), formatted);
    let Ok(formatted) = format_text(text, &limits) else { panic!("a program without mistakes is not formatted") };
    assert_eq!(outline(&parse(&formatted, &limits).program), outline(&parsed.program), "{formatted}");
});
