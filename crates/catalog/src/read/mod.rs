//! The reader: makes a valid catalog from one YAML file, or reports every mistake in the file.
//! Invariants: the module `raw` checks the shape of the YAML, and the module `resolve` checks the meaning. A catalog
//! that `read` returns has its digest. The size, the depth and the aliases of a text are limited, so a short text
//! cannot use much time or memory.

pub mod raw;
mod resolve;
mod spans;
mod yaml_errors;

pub use resolve::is_reserved_header;

use base::{Diagnostic, LineIndex, Span};

use crate::codes;
use crate::model::Catalog;

/// The maximum size of a catalog's text in bytes. The largest real specifications become catalogs of a few megabytes.
const MAX_TEXT_BYTES: usize = 32 * 1024 * 1024;

/// The maximum nesting depth of the YAML. Parsing each level uses a part of the call stack. An author can describe
/// deeper values with named types, because each named type begins at the top level.
const MAX_YAML_DEPTH: usize = 24;

/// A text that is not a valid catalog, and its mistakes.
#[derive(Debug, thiserror::Error)]
#[error("{file} is not a valid catalog:\n{}", self.lines())]
pub struct Rejected {
    /// The name of the file, as the caller gave it.
    pub file: String,
    /// The whole text, to which the positions of the diagnostics refer.
    pub text: String,
    /// The mistakes in the order of their positions, at least one.
    pub diagnostics: Vec<Diagnostic>,
}

impl Rejected {
    /// Returns one line for each mistake: `file:line:column: E0503 what is wrong; write: …`.
    pub fn lines(&self) -> String {
        let index = LineIndex::new(&self.text);
        let line = |d: &Diagnostic| {
            let location = index.location(d.span.start);
            let copy = d.copy.as_ref().map(|c| format!("; write: {c}")).unwrap_or_default();
            let alternatives = if d.alternatives.is_empty() {
                String::new()
            } else {
                format!("; one of: {}", d.alternatives.join(" | "))
            };
            format!("{}:{}:{}: {} {}{alternatives}{copy}", self.file, location.line, location.column, d.code, d.message)
        };
        self.diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Reads one catalog from its text. `file` is the name of the file for messages.
pub fn read(file: &str, text: &str) -> Result<Catalog, Box<Rejected>> {
    let rejected = |diagnostics| Box::new(Rejected { file: file.to_owned(), text: text.to_owned(), diagnostics });
    if text.len() > MAX_TEXT_BYTES {
        let message = format!("this is {} bytes long; a catalog has at most {MAX_TEXT_BYTES}", text.len());
        return Err(rejected(vec![Diagnostic::error(codes::SHAPE, Span::default(), message)]));
    }
    let raw: raw::Catalog = serde_saphyr::from_str_with_options(text, yaml_options())
        .map_err(|error| rejected(vec![yaml_errors::diagnose(text, &error)]))?;
    resolve::resolve(&raw, text).map(Catalog::seal).map_err(rejected)
}

/// Returns the limits of the YAML parser. The limits allow the largest real specifications. They refuse a few lines
/// of aliases that would expand to millions of values.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_events: 6_000_000, max_nodes: 3_000_000, max_documents: 1, max_depth: MAX_YAML_DEPTH },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 200_000 },
    }
}

fn span_of(location: serde_saphyr::Location) -> Span {
    let start = location.span().byte_offset().unwrap_or(0) as usize;
    Span::new(start, start + location.span().byte_len().unwrap_or(0) as usize)
}

/// Returns the JSON Schema of the YAML format, which is generated from the types in `raw`.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(raw::Catalog).to_value()
}
