//! One YAML file to a valid catalog, or everything that is wrong with it.
//! Invariant: `raw` is only shape, `resolve` is only meaning; a catalog leaves here sealed with its digest.

mod raw;
mod resolve;

use base::{Diagnostic, LineIndex, Span};

use crate::codes;
use crate::model::Catalog;

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
            let place = index.place(d.span.start);
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
    let options = serde_saphyr::options! { with_snippet: false };
    let raw: raw::Catalog =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| rejected(vec![shape_error(&error)]))?;
    resolve::resolve(raw, text).map(Catalog::seal).map_err(rejected)
}

fn shape_error(error: &serde_saphyr::Error) -> Diagnostic {
    let span = error.location().map(place_of).unwrap_or_default();
    Diagnostic::error(codes::SHAPE, span, error.without_snippet().to_string())
}

fn place_of(location: serde_saphyr::Location) -> Span {
    let start = location.span().byte_offset().unwrap_or(0) as usize;
    Span::new(start, start + location.span().byte_len().unwrap_or(0) as usize)
}

/// The JSON Schema of the format, made from the types that read it.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(raw::Catalog).to_value()
}
