//! Collects the diagnostics of a text while it is lexed and parsed.
//! Invariant: there is at most one error per position and at most `MAX_REPORTS` in all, and each costs a bounded look
//! at the text around it.

use std::collections::HashSet;

use base::{Code, Diagnostic, Edit, LineIndex, Severity, Span};

use crate::copy_lines::{MAX_LINE_BYTES, add_copy_lines};

/// The most diagnostics of one text. The first ones usually explain the rest.
const MAX_REPORTS: usize = 20;

/// The diagnostics that the lexer, the layout and the parser have reported so far.
pub(super) struct Reports<'t> {
    text: &'t str,
    /// The diagnostics in the order in which they were reported.
    list: Vec<Diagnostic>,
    /// For each reported diagnostic: whether it is an error, and the offset at which it starts.
    reported_at: HashSet<(bool, u32)>,
    /// The index of line starts, which is built when a message first names a position.
    lines: Option<LineIndex<'t>>,
}

impl<'t> Reports<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, list: Vec::new(), reported_at: HashSet::new(), lines: None }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Returns whether an error at this position would be kept. Callers ask before they build a costly message.
    pub(super) fn accepts(&self, span: Span) -> bool {
        (self.list.len() < MAX_REPORTS || self.last_note().is_some()) && !self.reported_at.contains(&(true, span.start))
    }

    pub(super) fn add(&mut self, diagnostic: Diagnostic) {
        self.insert(diagnostic);
    }

    pub(super) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.add(Diagnostic::error(code, span, message));
    }

    /// Adds an error that is corrected by writing `right` in place of `wrong`.
    pub(super) fn fix(&mut self, diagnostic: Diagnostic, wrong: Span, right: &str) {
        let fits_in_copy = right.len() <= MAX_LINE_BYTES && !right.contains('\n');
        self.insert(diagnostic.with_fix(fits_in_copy.then(|| Edit::replace(wrong, right))));
    }

    fn insert(&mut self, diagnostic: Diagnostic) {
        let key = (diagnostic.severity == Severity::Error, diagnostic.span.start);
        // When the list is full, an error takes the place of a note. If notes could keep an error out, a wrong program
        // would pass as valid.
        let is_full = self.list.len() >= MAX_REPORTS;
        let replaced_note = if is_full && key.0 { self.last_note() } else { None };
        if (!is_full || replaced_note.is_some()) && self.reported_at.insert(key) {
            if let Some(replaced_note) = replaced_note {
                self.list.remove(replaced_note);
            }
            self.list.push(diagnostic);
        }
    }

    fn last_note(&self) -> Option<usize> {
        self.list.iter().rposition(|report| report.severity != Severity::Error)
    }

    /// Returns the line and column of an offset as messages show them: `3:14`.
    pub(super) fn position(&mut self, offset: u32) -> String {
        let position = self.lines.get_or_insert_with(|| LineIndex::new(self.text)).location(offset);
        format!("{}:{}", position.line, position.column)
    }

    /// Returns the diagnostics in the order of their positions, with their lines to copy.
    pub(super) fn finish(self) -> Vec<Diagnostic> {
        add_copy_lines(self.text, self.list)
    }
}

/// Writes a text as a string literal of the language, on one line.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Shortens a piece of the text for a message: its first line, at most 40 characters.
pub(super) fn shown(text: &str) -> String {
    let line: String = text.chars().take_while(|c| *c != '\n').filter(|c| !c.is_control()).take(40).collect();
    if line.len() < text.trim_end().len() { format!("{line}…") } else { line }
}
