//! The reader: one YAML file to a valid catalog, or to every mistake in it.
//! Invariants: `raw` knows only the shape of the format, and `resolve` checks its meaning. A catalog leaves here sealed with
//! its digest. The size, the depth and the aliases of a text are bounded, so a short text cannot take long or use much
//! memory.

pub mod raw;
mod resolve;
mod spans;
mod yaml_errors;

pub use resolve::is_reserved_header;

use base::{Diagnostic, LineIndex, Span};

use crate::codes;
use crate::model::Catalog;

/// The largest text. The largest real specifications become catalogs of a few megabytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// The deepest nesting, because each level uses stack. A named type begins at the top level again, so authors can nest
/// further.
const MAX_DEPTH: usize = 24;

/// A text that is not a valid catalog, and its mistakes.
#[derive(Debug, thiserror::Error)]
#[error("{file} is not a valid catalog:\n{}", self.lines())]
pub struct Rejected {
    /// The name of the file, as the caller gave it.
    pub file: String,
    /// The whole text, in which the diagnostics have their positions.
    pub text: String,
    /// The mistakes in the order of their positions. There is at least one.
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

/// Reads one catalog. `file` is used only as the file's name in messages.
pub fn read(file: &str, text: &str) -> Result<Catalog, Box<Rejected>> {
    let rejected = |diagnostics| Box::new(Rejected { file: file.to_owned(), text: text.to_owned(), diagnostics });
    if text.len() > MAX_BYTES {
        let message = format!("this is {} bytes long; a catalog has at most {MAX_BYTES}", text.len());
        return Err(rejected(vec![Diagnostic::error(codes::SHAPE, Span::default(), message)]));
    }
    let raw: raw::Catalog = serde_saphyr::from_str_with_options(text, options())
        .map_err(|error| rejected(vec![yaml_errors::diagnose(text, &error)]))?;
    resolve::resolve(&raw, text).map(Catalog::seal).map_err(rejected)
}

/// Returns the limits of the YAML parser. They are large enough for the largest specifications, and they stop a few lines of
/// aliases that would expand to millions of values.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_events: 6_000_000, max_nodes: 3_000_000, max_documents: 1, max_depth: MAX_DEPTH },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 200_000 },
    }
}

fn span_of(location: serde_saphyr::Location) -> Span {
    let start = location.span().byte_offset().unwrap_or(0) as usize;
    Span::new(start, start + location.span().byte_len().unwrap_or(0) as usize)
}

/// Returns the JSON Schema of the format, which is made from the types that read it.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(raw::Catalog).to_value()
}
