//! Splits any text into tokens. They are in order, do not overlap, and begin and end between characters.
//! Invariant: nothing panics.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let mut end = 0;
    for token in lang::syntax::tokens(text) {
        assert!(token.span.start >= end, "tokens overlap");
        assert!(text.get(token.span.start as usize..token.span.end as usize).is_some_and(|t| !t.is_empty()));
        end = token.span.end;
    }
});
