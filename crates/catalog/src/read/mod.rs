//! One YAML file to a valid catalog, or everything that is wrong with it.
//! Invariant: `raw` is only shape, `resolve` is only meaning; a catalog leaves here sealed with its digest. No text costs more
//! than its length is worth: aliases, depth and size are bounded.

mod places;
pub mod raw;
mod resolve;
mod shape;

pub use resolve::is_reserved_header;

use base::{Diagnostic, LineIndex, Span};

use crate::codes;
use crate::model::Catalog;

/// The largest real specifications make catalogs of a few megabytes.
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// Each level costs stack, and a named type starts again at the top.
const MAX_DEPTH: usize = 24;

/// A file that is not a catalog, and why.
#[derive(Debug, thiserror::Error)]
#[error("{file} is not a valid catalog:\n{}", self.lines())]
pub struct Rejected {
    pub file: String,
    pub text: String,
    pub diagnostics: Vec<Diagnostic>,
}

impl Rejected {
    /// `file:line:column: E0503 what is wrong; write: …`
    pub fn lines(&self) -> String {
        let index = LineIndex::new(&self.text);
        let line = |d: &Diagnostic| {
            let place = index.location(d.span.start);
            let copy = d.copy.as_ref().map(|c| format!("; write: {c}")).unwrap_or_default();
            let any = if d.alternatives.is_empty() {
                String::new()
            } else {
                format!("; one of: {}", d.alternatives.join(" | "))
            };
            format!("{}:{}:{}: {} {}{any}{copy}", self.file, place.line, place.column, d.code, d.message)
        };
        self.diagnostics.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

/// Reads one catalog. `file` is only its name for messages.
pub fn read(file: &str, text: &str) -> Result<Catalog, Box<Rejected>> {
    let rejected = |diagnostics| Box::new(Rejected { file: file.to_owned(), text: text.to_owned(), diagnostics });
    if text.len() > MAX_BYTES {
        let message = format!("this is {} bytes long; a catalog has at most {MAX_BYTES}", text.len());
        return Err(rejected(vec![Diagnostic::error(codes::SHAPE, Span::default(), message)]));
    }
    let raw: raw::Catalog = serde_saphyr::from_str_with_options(text, options())
        .map_err(|error| rejected(vec![shape::diagnose(text, &error)]))?;
    resolve::resolve(&raw, text).map(Catalog::seal).map_err(rejected)
}

/// Room for the largest specifications, and none for a few lines that unfold to millions.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        with_snippet: false,
        strict_booleans: true,
        budget: serde_saphyr::budget! { max_events: 6_000_000, max_nodes: 3_000_000, max_documents: 1, max_depth: MAX_DEPTH },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 200_000 },
    }
}

fn place_of(location: serde_saphyr::Location) -> Span {
    let start = location.span().byte_offset().unwrap_or(0) as usize;
    Span::new(start, start + location.span().byte_len().unwrap_or(0) as usize)
}

/// The JSON Schema of the format, made from the types that read it.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(raw::Catalog).to_value()
}
