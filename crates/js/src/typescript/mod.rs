//! Translates TypeScript to JavaScript by replacing types with spaces, so that the line and column of each character
//! stay the same.
//! Invariant: JavaScript is returned unchanged. A source that neither grammar accepts is also returned unchanged, and
//! the engine then reports the mistake. TypeScript syntax that would need generated code is refused with an error.

mod blank;
mod edits;
mod guard;
mod unsupported;

use std::panic::{AssertUnwindSafe, catch_unwind};

use oxc_allocator::Allocator;
use oxc_parser::{ParseOptions, Parser, ParserReturn};
use oxc_span::SourceType;
use ports::scripts::Thrown;

/// A source with more tokens is treated as JavaScript. Each token may open one level of nesting, and the recursive
/// parser needs stack for each level.
const MAX_TOKENS: usize = 64 * 1024;
/// The stack that one level of nesting needs at most, in bytes. The test `any_depth_is_survived` fails if the parser
/// needs more.
const STACK_BYTES_PER_TOKEN: usize = 2048;
const MIN_STACK_BYTES: usize = 256 * 1024;

/// Translates a source to JavaScript. A JavaScript source is returned unchanged.
pub fn to_javascript(source: &str) -> Result<String, Thrown> {
    let tokens = max_tokens(source);
    if tokens > MAX_TOKENS || u32::try_from(source.len()).is_err() || !guard::is_safe_to_parse(source) {
        return Ok(source.to_owned());
    }
    let stack_bytes = MIN_STACK_BYTES + tokens * STACK_BYTES_PER_TOKEN;
    // If the parser panics, the source is returned unchanged, and the engine's own parser reports a mistake.
    let translate = || catch_unwind(AssertUnwindSafe(|| translate(source))).unwrap_or_else(|_| Ok(source.to_owned()));
    stacker::maybe_grow(stack_bytes, stack_bytes, translate)
}

fn translate(source: &str) -> Result<String, Thrown> {
    let allocator = Allocator::default();
    let javascript = parse(&allocator, source, SourceType::unambiguous());
    if javascript.diagnostics.is_empty() {
        return blank::refuse_modules(source, &javascript.program).map(|()| source.to_owned());
    }
    let typescript = parse(&allocator, source, SourceType::unambiguous().with_typescript(true));
    if !typescript.panicked && (typescript.diagnostics.is_empty() || javascript.panicked) {
        return blank::blank_types(source, &typescript.program);
    }
    // Neither grammar accepts the source. If the TypeScript parser fails at a later position than the JavaScript
    // parser, its message is about the actual mistake, because the JavaScript parser stopped at the first type.
    // Otherwise the engine's message is better.
    match (first_error(&javascript), first_error(&typescript)) {
        (Some((javascript_at, _)), Some((typescript_at, message))) if typescript_at > javascript_at => {
            Err(unsupported::syntax_error(source, typescript_at, &message))
        }
        _ => Ok(source.to_owned()),
    }
}

fn parse<'a>(allocator: &'a Allocator, source: &'a str, kind: SourceType) -> ParserReturn<'a> {
    let options = ParseOptions { allow_return_outside_function: true, ..ParseOptions::default() };
    Parser::new(allocator, source, kind).with_options(options).parse()
}

/// Returns the position and the message of the first error. Returns `None` if the parser recovered from all errors.
fn first_error(parsed: &ParserReturn<'_>) -> Option<(usize, String)> {
    let errors = parsed.diagnostics.errors().filter(|_| parsed.panicked);
    errors.filter_map(|error| Some((error.labels.first()?.offset() as usize, error.message.to_string()))).min()
}

/// Returns an upper bound of the number of tokens. It counts each word, and each other byte that is not a space, as one
/// token.
fn max_tokens(source: &str) -> usize {
    let mut in_word = false;
    let mut count = 0;
    for byte in source.bytes() {
        let is_word_byte = byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80;
        count += usize::from(!(byte.is_ascii_whitespace() || is_word_byte && in_word));
        in_word = is_word_byte;
    }
    count
}
