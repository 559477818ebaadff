//! TypeScript to JavaScript by taking the types away: what is taken becomes spaces, so every line and column stays where it was.
//! Invariant: JavaScript is returned as it came. A source that neither language's grammar accepts is returned as it came too,
//! and the engine says what is wrong with it; what this file refuses has a meaning that no blank can carry.

mod blank;
mod edits;
mod guard;
mod refusal;
mod words;

use std::panic::{AssertUnwindSafe, catch_unwind};

use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_span::SourceType;
use ports::scripts::Thrown;

/// Above so many tokens a source is taken for JavaScript: each may be one level deeper, and the parser is recursive.
const MOST_TOKENS: usize = 64 * 1024;
/// What one level costs at most; `any_depth_is_survived` in `tests/it/typescript.rs` fails where it is more.
const STACK_OF_A_TOKEN: usize = 2048;
const STACK_AT_LEAST: usize = 256 * 1024;

/// The JavaScript that a source means.
pub fn plain(source: &str) -> Result<String, Thrown> {
    let tokens = tokens(source);
    if tokens > MOST_TOKENS || u32::try_from(source.len()).is_err() || !guard::is_tame(source) {
        return Ok(source.to_owned());
    }
    let stack = STACK_AT_LEAST + tokens * STACK_OF_A_TOKEN;
    // Should the parser ever panic, the engine judges the source by itself.
    let read = || catch_unwind(AssertUnwindSafe(|| read(source))).unwrap_or_else(|_| Ok(source.to_owned()));
    stacker::maybe_grow(stack, stack, read)
}

fn read(source: &str) -> Result<String, Thrown> {
    let allocator = Allocator::default();
    let script = parse(&allocator, source, SourceType::unambiguous());
    if script.diagnostics.is_empty() {
        return blank::modules(source, &script.program).map(|()| source.to_owned());
    }
    let typed = parse(&allocator, source, SourceType::unambiguous().with_typescript(true));
    if !typed.panicked && (typed.diagnostics.is_empty() || script.panicked) {
        return blank::types(source, &typed.program);
    }
    // Neither grammar has it. The engine's own message is best, unless it would only be about the first type.
    match (place(&script), place(&typed)) {
        (Some((read, _)), Some((further, message))) if further > read => Err(refusal::at(source, further, &message)),
        _ => Ok(source.to_owned()),
    }
}

fn parse<'a>(allocator: &'a Allocator, source: &'a str, kind: SourceType) -> ParserReturn<'a> {
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    Parser::new(allocator, source, kind).with_options(options).parse()
}

/// Where and why a parse failed first.
fn place(parsed: &ParserReturn<'_>) -> Option<(usize, String)> {
    let errors = parsed.diagnostics.errors().filter(|_| parsed.panicked);
    errors.filter_map(|error| Some((error.labels.first()?.offset() as usize, error.message.to_string()))).min()
}

/// At least as many as there are tokens: words, and every other byte that is not a space.
fn tokens(source: &str) -> usize {
    let mut word = false;
    let mut count = 0;
    for byte in source.bytes() {
        let continues = byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
        count += usize::from(!(byte.is_ascii_whitespace() || continues && word));
        word = continues;
    }
    count
}
