//! Diagnostics: the mistakes in a program or a catalog as data, with two renderings: one line for a model, and the
//! underlined text for a person.
//! Invariant: each kind of diagnostic has a stable code. Software branches on this code, never on the text of the
//! message.

use std::borrow::Cow;
use std::fmt;

use ariadne::{Config, IndexType, Label, Report, ReportKind, Source};
use serde::Serialize;

use crate::edit::Edit;
use crate::span::{LineIndex, Span};

/// The stable number of a kind of mistake, such as `E0204`. Each code has a page in `docs/errors/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(pub u16);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "E{:04}", self.0)
    }
}

impl Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The effect of a diagnostic on the text: refusal or a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The text is refused.
    Error,
    /// A correction that can only be right was applied, and the text is accepted.
    Note,
}

/// One mistake or note about a text, with a correction where one is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// The kind of mistake, by which software branches.
    pub code: Code,
    pub severity: Severity,
    /// The part of the text that the message is about.
    pub span: Span,
    /// One sentence about the mistake. The sentence writes symbols or names, whichever the author wrote.
    pub message: String,
    /// The names that are legal at this span: at most five, the most similar first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
    /// A corrected line, which the author can copy without a change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<String>,
    /// Edits that correct the text. The checker makes `copy` from these edits if it has the whole text.
    #[serde(skip)]
    pub fix: Vec<Edit>,
}

impl Diagnostic {
    /// Returns a mistake, which refuses the text.
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            span,
            message: message.into(),
            alternatives: Vec::new(),
            copy: None,
            fix: Vec::new(),
        }
    }

    /// Returns a note about a correction that was applied.
    pub fn note(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(code, span, message) }
    }

    /// Adds legal names for the span. Only the first five are stored, so the caller passes the most similar name
    /// first.
    pub fn with_alternatives(mut self, alternatives: impl IntoIterator<Item = String>) -> Self {
        self.alternatives = alternatives.into_iter().take(5).collect();
        self
    }

    /// Adds a corrected line, which the author can copy without a change.
    pub fn with_copy(mut self, line: impl Into<String>) -> Self {
        self.copy = Some(line.into());
        self
    }

    /// Adds edits that correct the text.
    pub fn with_fix(mut self, fix: impl IntoIterator<Item = Edit>) -> Self {
        self.fix.extend(fix);
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// Renders one line per diagnostic, ordered by position: `E0204 1:4 message; one of: a | b; write: line`.
pub fn render_for_model(text: &str, diagnostics: &[Diagnostic]) -> String {
    let index = LineIndex::new(text);
    let mut ordered: Vec<&Diagnostic> = diagnostics.iter().collect();
    ordered.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.code));
    let lines: Vec<String> = ordered.into_iter().map(|diagnostic| render_model_line(&index, diagnostic)).collect();
    lines.join("\n")
}

fn render_model_line(index: &LineIndex<'_>, diagnostic: &Diagnostic) -> String {
    let location = index.location(diagnostic.span.start);
    let note = if diagnostic.is_error() { "" } else { "note: " };
    let message = shortened(&diagnostic.message, 400);
    let mut line = format!("{} {}:{} {note}{message}", diagnostic.code, location.line, location.column);
    if !diagnostic.alternatives.is_empty() {
        let names: Vec<_> = diagnostic.alternatives.iter().map(|name| shortened(name, 100)).collect();
        line.push_str("; one of: ");
        line.push_str(&names.join(" | "));
    }
    // A model spends fewer tokens on a new line than on a copy of a line longer than this.
    if let Some(copy) = diagnostic.copy.as_ref().filter(|copy| copy.len() <= 2_000) {
        line.push_str("; write: ");
        line.push_str(copy);
    }
    line
}

/// Shortens a text to `max_chars` characters. A message may quote the author's input, which can have 60,000
/// characters.
fn shortened(text: &str, max_chars: usize) -> Cow<'_, str> {
    match text.char_indices().nth(max_chars) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// Renders the lines of a text with the mistakes underlined. `name` is printed as the name of the text: a file name,
/// or `program`.
pub fn render_for_people(name: &str, text: &str, diagnostics: &[Diagnostic], colour: bool) -> String {
    let mut out = Vec::new();
    for diagnostic in diagnostics {
        let report = build_report(name, text, diagnostic, colour);
        // Writing into a `Vec` cannot fail. If the renderer refuses a span, the line for models is printed instead,
        // which has the same facts.
        if report.write((name, Source::from(text)), &mut out).is_err() {
            out.extend_from_slice(render_model_line(&LineIndex::new(text), diagnostic).as_bytes());
            out.push(b'\n');
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn build_report<'a>(
    name: &'a str,
    text: &str,
    diagnostic: &Diagnostic,
    colour: bool,
) -> Report<'a, (&'a str, std::ops::Range<usize>)> {
    // The renderer slices the text at these offsets, so they must lie between characters.
    let clamp = |offset: u32| text.floor_char_boundary(offset as usize);
    let range = clamp(diagnostic.span.start)..clamp(diagnostic.span.end);
    let kind = if diagnostic.is_error() { ReportKind::Error } else { ReportKind::Advice };
    let config = Config::default().with_color(colour).with_index_type(IndexType::Byte);
    let mut report = Report::build(kind, (name, range.clone()))
        .with_config(config)
        .with_code(diagnostic.code)
        .with_message(&diagnostic.message)
        .with_label(Label::new((name, range)).with_message("here"));
    if !diagnostic.alternatives.is_empty() {
        report = report.with_note(format!("one of: {}", diagnostic.alternatives.join(" | ")));
    }
    if let Some(copy) = &diagnostic.copy {
        report = report.with_help(format!("write: {copy}"));
    }
    report.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Diagnostic {
        Diagnostic::error(Code(204), Span::new(3, 9), "no filter `statuz` on Ticket")
            .with_alternatives(["state".to_owned(), "number".to_owned()])
            .with_copy("e1{state=\"open\"}")
    }

    #[test]
    fn the_rendering_for_models_is_one_line() {
        let line = render_for_model("e1{statuz=\"open\"}", &[sample()]);
        assert_eq!(line, "E0204 1:4 no filter `statuz` on Ticket; one of: state | number; write: e1{state=\"open\"}");
    }

    #[test]
    fn the_rendering_for_people_underlines_the_span() {
        let picture = render_for_people("program", "e1{statuz=\"open\"}", &[sample()], false);
        assert!(picture.contains("E0204") && picture.contains("statuz") && picture.contains("write:"), "{picture}");
        assert!(!picture.contains('\u{1b}'), "the caller requested no colour");
    }

    #[test]
    fn a_span_outside_the_text_renders_without_a_panic() {
        for span in [Span::new(0, 0), Span::new(7, 9), Span::new(1, 2), Span::new(1000, 2000)] {
            let diagnostic = Diagnostic::error(Code(1), span, "x");
            for text in ["", "é", "é\n\n", "abc"] {
                assert!(render_for_model(text, std::slice::from_ref(&diagnostic)).starts_with("E0001"));
                assert!(render_for_people("p", text, std::slice::from_ref(&diagnostic), true).contains("E0001"));
            }
        }
    }

    #[test]
    fn diagnostics_are_rendered_in_order_of_position() {
        let late = Diagnostic::error(Code(1), Span::new(5, 6), "late");
        let early = Diagnostic::note(Code(2), Span::new(0, 1), "early");
        let text = render_for_model("ab\ncdef", &[late, early]);
        assert_eq!(text, "E0002 1:1 note: early\nE0001 2:3 late");
    }
}
