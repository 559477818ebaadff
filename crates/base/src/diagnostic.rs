//! A user's mistake as data, and its two renderings: one line for a model, a picture for a person.
//! Invariant: a diagnostic has a stable code; code branches on the code, never on the words.

use std::borrow::Cow;
use std::fmt;

use ariadne::{Config, IndexType, Label, Report, ReportKind, Source};
use serde::Serialize;

use crate::edit::Edit;
use crate::span::{LineIndex, Span};

/// A stable number with a page in `docs/errors/`: `E0204`.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The program is refused.
    Error,
    /// A certain fix was applied; the program goes on.
    Note,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    pub code: Code,
    pub severity: Severity,
    pub span: Span,
    /// One sentence, in the alphabet the author used.
    pub message: String,
    /// What would be legal here, near names first, at most five.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<String>,
    /// One line the author may copy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copy: Option<String>,
    /// What would correct the text; the line to copy is made of it where the text is at hand.
    #[serde(skip)]
    pub fix: Vec<Edit>,
}

impl Diagnostic {
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, severity: Severity::Error, span, message, alternatives: Vec::new(), copy: None, fix: Vec::new() }
    }

    pub fn note(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Note, ..Self::error(code, span, message) }
    }

    pub fn with_alternatives(mut self, alternatives: impl IntoIterator<Item = String>) -> Self {
        self.alternatives = alternatives.into_iter().take(5).collect();
        self
    }

    pub fn with_copy(mut self, line: impl Into<String>) -> Self {
        self.copy = Some(line.into());
        self
    }

    pub fn with_fix(mut self, fix: impl IntoIterator<Item = Edit>) -> Self {
        self.fix.extend(fix);
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// One line each, `E0204 1:4 message; one of: a | b; write: line`, in the order of their places.
pub fn render_for_model(text: &str, diagnostics: &[Diagnostic]) -> String {
    let index = LineIndex::new(text);
    let mut ordered: Vec<&Diagnostic> = diagnostics.iter().collect();
    ordered.sort_by_key(|d| (d.span.start, d.code));
    let lines: Vec<String> = ordered.into_iter().map(|d| model_line(&index, d)).collect();
    lines.join("\n")
}

fn model_line(index: &LineIndex<'_>, diagnostic: &Diagnostic) -> String {
    let place = index.place(diagnostic.span.start);
    let note = if diagnostic.is_error() { "" } else { "note: " };
    let message = clipped(&diagnostic.message, 400);
    let mut line = format!("{} {}:{} {note}{message}", diagnostic.code, place.line, place.column);
    if !diagnostic.alternatives.is_empty() {
        let names: Vec<_> = diagnostic.alternatives.iter().map(|name| clipped(name, 100)).collect();
        line.push_str("; one of: ");
        line.push_str(&names.join(" | "));
    }
    // A line that is too long to copy helps nobody.
    if let Some(copy) = diagnostic.copy.as_ref().filter(|copy| copy.len() <= 2_000) {
        line.push_str("; write: ");
        line.push_str(copy);
    }
    line
}

/// What the author wrote may be in a message; a name of 60,000 letters need not come back whole.
fn clipped(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
    }
}

/// The program's lines with the places underlined. `name` is what the text is called (a file, `program`).
pub fn render_for_people(name: &str, text: &str, diagnostics: &[Diagnostic], colour: bool) -> String {
    let mut out = Vec::new();
    for diagnostic in diagnostics {
        let report = people_report(name, text, diagnostic, colour);
        // Writing into a Vec cannot fail; should the renderer refuse a span, the model's line still says it all.
        if report.write((name, Source::from(text)), &mut out).is_err() {
            out.extend_from_slice(model_line(&LineIndex::new(text), diagnostic).as_bytes());
            out.push(b'\n');
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

fn people_report<'a>(
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
    fn a_model_reads_one_line() {
        let line = render_for_model("e1{statuz=\"open\"}", &[sample()]);
        assert_eq!(line, "E0204 1:4 no filter `statuz` on Ticket; one of: state | number; write: e1{state=\"open\"}");
    }

    #[test]
    fn a_person_sees_the_place() {
        let picture = render_for_people("program", "e1{statuz=\"open\"}", &[sample()], false);
        assert!(picture.contains("E0204") && picture.contains("statuz") && picture.contains("write:"), "{picture}");
        assert!(!picture.contains('\u{1b}'), "no colour was asked for");
    }

    #[test]
    fn any_span_renders() {
        for span in [Span::new(0, 0), Span::new(7, 9), Span::new(1, 2), Span::new(1000, 2000)] {
            let d = Diagnostic::error(Code(1), span, "x");
            for text in ["", "é", "é\n\n", "abc"] {
                assert!(render_for_model(text, std::slice::from_ref(&d)).starts_with("E0001"));
                assert!(render_for_people("p", text, std::slice::from_ref(&d), true).contains("E0001"));
            }
        }
    }

    #[test]
    fn diagnostics_come_in_the_order_of_their_places() {
        let late = Diagnostic::error(Code(1), Span::new(5, 6), "late");
        let early = Diagnostic::note(Code(2), Span::new(0, 1), "early");
        let text = render_for_model("ab\ncdef", &[late, early]);
        assert_eq!(text, "E0002 1:1 note: early\nE0001 2:3 late");
    }
}
