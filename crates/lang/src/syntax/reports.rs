//! Collects what is wrong with a text while it is read.
//! Invariant: one error per place, at most `MOST` in all, and each costs a bounded look at the text around it.

use std::collections::HashSet;
use std::ops::Range;

use base::{Code, Diagnostic, LineIndex, Severity, Span};

/// More than this helps nobody: the first ones explain the rest.
const MOST: usize = 20;
/// A line longer than this is not repeated in a correction; the corrected piece alone is.
const LINE: usize = 160;

pub(super) struct Reports<'t> {
    text: &'t str,
    list: Vec<Report>,
    /// Whether it is an error, and where it starts.
    places: HashSet<(bool, u32)>,
    lines: Option<LineIndex<'t>>,
}

struct Report {
    diagnostic: Diagnostic,
    edit: Option<Edit>,
}

/// What would correct the text.
#[derive(Clone)]
struct Edit {
    wrong: Span,
    right: String,
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
        self.put(diagnostic, None);
    }

    pub(super) fn error(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.add(Diagnostic::error(code, span, message));
    }

    /// An error whose correction is to write `right` in place of `wrong`.
    pub(super) fn fix(&mut self, diagnostic: Diagnostic, wrong: Span, right: &str) {
        let copied = right.len() <= LINE && !right.contains('\n');
        self.put(diagnostic, copied.then(|| Edit { wrong, right: right.to_owned() }));
    }

    fn put(&mut self, diagnostic: Diagnostic, edit: Option<Edit>) {
        let key = (diagnostic.severity == Severity::Error, diagnostic.span.start);
        // Twenty notes must not hide an error: the program would pass for a right one.
        let crowded = self.list.len() >= MOST;
        let note = if crowded && key.0 { self.last_note() } else { None };
        if (!crowded || note.is_some()) && self.places.insert(key) {
            if let Some(note) = note {
                self.list.remove(note);
            }
            self.list.push(Report { diagnostic, edit });
        }
    }

    fn last_note(&self) -> Option<usize> {
        self.list.iter().rposition(|report| report.diagnostic.severity != Severity::Error)
    }

    /// `3:14`
    pub(super) fn place(&mut self, offset: u32) -> String {
        let place = self.lines.get_or_insert_with(|| LineIndex::new(self.text)).place(offset);
        format!("{}:{}", place.line, place.column)
    }

    /// All of them in the order of their places. A line's corrections are made together and stand with its first report,
    /// so that no line to copy is still wrong where another report says so.
    pub(super) fn finish(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|report| (report.diagnostic.span.start, report.diagnostic.code));
        let mut corrected: Vec<Line> = Vec::new();
        let mut out: Vec<Diagnostic> = Vec::new();
        for Report { diagnostic, edit } in self.list {
            let Some(edit) = edit else {
                out.push(diagnostic);
                continue;
            };
            let range = line_around(self.text, edit.wrong);
            let known = corrected.iter_mut().find(|line| Some(&line.range) == range.as_ref());
            match (range, known) {
                (None, _) => out.push(diagnostic.with_copy(edit.right)),
                (Some(_), Some(line)) if line.takes(&edit) => {
                    line.edits.push(edit);
                    out.push(diagnostic);
                }
                (Some(_), Some(_)) => out.push(diagnostic.with_copy(edit.right)),
                (Some(range), None) => {
                    corrected.push(Line { range, report: out.len(), edits: vec![edit] });
                    out.push(diagnostic);
                }
            }
        }
        for line in corrected {
            if let Some(diagnostic) = out.get_mut(line.report) {
                diagnostic.copy = Some(line.corrected(self.text));
            }
        }
        out
    }
}

/// A line of the text and its corrections.
struct Line {
    range: Range<usize>,
    /// Which report shows it.
    report: usize,
    edits: Vec<Edit>,
}

impl Line {
    fn takes(&self, edit: &Edit) -> bool {
        self.edits.iter().all(|other| edit.wrong.start >= other.wrong.end || edit.wrong.end <= other.wrong.start)
    }

    fn corrected(mut self, text: &str) -> String {
        self.edits.sort_by_key(|edit| (edit.wrong.start, edit.wrong.end));
        let mut out = String::new();
        let mut at = self.range.start;
        for edit in &self.edits {
            out.push_str(text.get(at..edit.wrong.start as usize).unwrap_or(""));
            out.push_str(&edit.right);
            at = edit.wrong.end as usize;
        }
        out.push_str(text.get(at..self.range.end).unwrap_or(""));
        out.trim_start_matches('\u{feff}').trim().to_owned()
    }
}

/// The line that holds all of `span`, unless it is long.
fn line_around(text: &str, span: Span) -> Option<Range<usize>> {
    let (start, end) = (span.start as usize, span.end as usize);
    let (before, after) = (text.get(..start)?, text.get(end..)?);
    let head_from = before.floor_char_boundary(before.len().saturating_sub(LINE));
    let head = before.get(head_from..)?;
    let tail = after.get(..after.floor_char_boundary(LINE.min(after.len())))?;
    let first = match head.rfind('\n') {
        Some(at) => head_from + at + 1,
        None if head_from == 0 => 0,
        None => return None,
    };
    let last = match tail.find('\n') {
        Some(at) => end + at,
        None if tail.len() == after.len() => text.len(),
        None => return None,
    };
    (last - first <= LINE && !span.of(text).contains('\n')).then_some(first..last)
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
