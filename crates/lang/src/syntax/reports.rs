//! Collects what is wrong with a text while it is read.
//! Invariant: one error per place, at most `MOST` in all, and each costs a bounded look at the text around it.

use std::collections::HashSet;

use base::{Code, Diagnostic, Edit, LineIndex, Severity, Span};

use crate::copy_lines::{LINE, add_copy_lines};

/// More than this helps nobody: the first ones explain the rest.
const MOST: usize = 20;

pub(super) struct Reports<'t> {
    text: &'t str,
    list: Vec<Diagnostic>,
    /// Whether it is an error, and where it starts.
    places: HashSet<(bool, u32)>,
    lines: Option<LineIndex<'t>>,
}

impl<'t> Reports<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, list: Vec::new(), places: HashSet::new(), lines: None }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether an error at this place would be kept: ask before building a costly one.
    pub(super) fn accepts(&self, span: Span) -> bool {
        (self.list.len() < MOST || self.last_note().is_some()) && !self.places.contains(&(true, span.start))
    }

    pub(super) fn add(&mut self, diagnostic: Diagnostic) {
        self.put(diagnostic);
    }

    pub(super) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.add(Diagnostic::error(code, span, message));
    }

    /// An error whose correction is to write `right` in place of `wrong`.
    pub(super) fn fix(&mut self, diagnostic: Diagnostic, wrong: Span, right: &str) {
        let copied = right.len() <= LINE && !right.contains('\n');
        self.put(diagnostic.with_fix(copied.then(|| Edit::replace(wrong, right))));
    }

    fn put(&mut self, diagnostic: Diagnostic) {
        let key = (diagnostic.severity == Severity::Error, diagnostic.span.start);
        // Twenty notes must not hide an error: the program would pass for a right one.
        let crowded = self.list.len() >= MOST;
        let note = if crowded && key.0 { self.last_note() } else { None };
        if (!crowded || note.is_some()) && self.places.insert(key) {
            if let Some(note) = note {
                self.list.remove(note);
            }
            self.list.push(diagnostic);
        }
    }

    fn last_note(&self) -> Option<usize> {
        self.list.iter().rposition(|report| report.severity != Severity::Error)
    }

    /// `3:14`
    pub(super) fn place(&mut self, offset: u32) -> String {
        let place = self.lines.get_or_insert_with(|| LineIndex::new(self.text)).location(offset);
        format!("{}:{}", place.line, place.column)
    }

    /// All of them in the order of their places, with their lines to copy.
    pub(super) fn finish(self) -> Vec<Diagnostic> {
        add_copy_lines(self.text, self.list)
    }
}

/// `"text"` as the language writes it, on one line.
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

/// A piece of the text for a message: short, on one line.
pub(super) fn shown(text: &str) -> String {
    let line: String = text.chars().take_while(|c| *c != '\n').filter(|c| !c.is_control()).take(40).collect();
    if line.len() < text.trim_end().len() { format!("{line}…") } else { line }
}
