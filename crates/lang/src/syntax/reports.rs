//! Collects the diagnostics of a text during lexing and parsing.
//! Invariant: there is at most one error for each position and at most `MAX_REPORTS` diagnostics in total. Each
//! diagnostic reads a bounded piece of text around its position.

use std::collections::HashSet;

use base::{Code, Diagnostic, Edit, LineIndex, Severity, Span};

use crate::copy_lines::{MAX_COPIED_LINE_BYTES, add_copy_lines};

/// The most diagnostics for one text. The first ones usually explain the others.
const MAX_REPORTS: usize = 20;

/// The diagnostics that the lexer, the layout and the parser have reported so far.
pub(super) struct Reports<'t> {
    text: &'t str,
    /// The diagnostics, in the order in which they were reported.
    diagnostics: Vec<Diagnostic>,
    /// The severity (true for an error) and the start offset of each reported diagnostic. It prevents duplicates.
    reported_at: HashSet<(bool, u32)>,
    /// The offsets of all lines. The index is built when a message first mentions a position.
    lines: Option<LineIndex<'t>>,
}

impl<'t> Reports<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, diagnostics: Vec::new(), reported_at: HashSet::new(), lines: None }
    }

    /// Returns the number of diagnostics so far.
    pub(super) fn len(&self) -> usize {
        self.diagnostics.len()
    }

    /// Returns whether an error at this position would be kept. Callers ask this before they build an expensive
    /// message.
    pub(super) fn would_keep_error(&self, span: Span) -> bool {
        (self.diagnostics.len() < MAX_REPORTS || self.last_note().is_some())
            && !self.reported_at.contains(&(true, span.start))
    }

    /// Adds a diagnostic, unless its position has one or the list is full.
    pub(super) fn add(&mut self, diagnostic: Diagnostic) {
        self.insert(diagnostic);
    }

    pub(super) fn add_error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.add(Diagnostic::error(code, span, message));
    }

    /// Adds an error with a correction that replaces `wrong` by `right`.
    pub(super) fn add_with_fix(&mut self, diagnostic: Diagnostic, wrong: Span, right: &str) {
        let fits_in_copy = right.len() <= MAX_COPIED_LINE_BYTES && !right.contains('\n');
        self.insert(diagnostic.with_fix(fits_in_copy.then(|| Edit::replace(wrong, right))));
    }

    fn insert(&mut self, diagnostic: Diagnostic) {
        let key = (diagnostic.severity == Severity::Error, diagnostic.span.start);
        // If the list is full, an error replaces a note. If notes could displace an error, an invalid program would be
        // accepted.
        let is_full = self.diagnostics.len() >= MAX_REPORTS;
        let replaced_note = if is_full && key.0 { self.last_note() } else { None };
        if (!is_full || replaced_note.is_some()) && self.reported_at.insert(key) {
            if let Some(replaced_note) = replaced_note {
                self.diagnostics.remove(replaced_note);
            }
            self.diagnostics.push(diagnostic);
        }
    }

    /// Returns the index of the last note, which an error may replace.
    fn last_note(&self) -> Option<usize> {
        self.diagnostics.iter().rposition(|report| report.severity != Severity::Error)
    }

    /// Returns the line and column of an offset in the form of messages, such as `3:14`.
    pub(super) fn position(&mut self, offset: u32) -> String {
        let position = self.lines.get_or_insert_with(|| LineIndex::new(self.text)).location(offset);
        format!("{}:{}", position.line, position.column)
    }

    /// Returns the diagnostics in the order of their positions, including their lines to copy.
    pub(super) fn finish(self) -> Vec<Diagnostic> {
        add_copy_lines(self.text, self.diagnostics)
    }
}

/// Returns a text as a string literal of the language, on one line.
pub(super) fn quote_as_literal(text: &str) -> String {
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

/// Shortens a piece of text for a message to its first line and at most 40 characters.
pub(super) fn shorten_for_message(text: &str) -> String {
    let line: String = text.chars().take_while(|c| *c != '\n').filter(|c| !c.is_control()).take(40).collect();
    if line.len() < text.trim_end().len() { format!("{line}…") } else { line }
}
