//! Corrections as lines to copy: the author's own line with everything on it corrected.
//! Invariant: a line to copy is one line; it stands with the first report that corrects it, and each costs a bounded look at
//! the text around it.

use std::ops::Range;

use base::{Diagnostic, Edit, Span, edited};

/// A line longer than this is not repeated in a correction; the corrected piece alone is.
pub(crate) const LINE: usize = 320;

/// Reports in the order of their places, with their lines to copy. A line's corrections are made together and stand with its
/// first report, so that no line to copy is still wrong where another report says so.
pub(crate) fn with_lines(text: &str, mut found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    found.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.code));
    let mut corrected: Vec<Line> = Vec::new();
    for (report, diagnostic) in found.iter_mut().enumerate() {
        let Some(range) = line_around(text, &diagnostic.fix) else {
            // The piece alone, where it is one.
            if let [only] = diagnostic.fix.as_slice() {
                diagnostic.copy = Some(only.text(text)).filter(|piece| copies(piece));
            }
            continue;
        };
        let known = corrected.iter_mut().find(|line| line.range == range);
        match known {
            Some(line) if line.takes(&diagnostic.fix) => line.edits.extend(diagnostic.fix.iter().cloned()),
            Some(_) => diagnostic.copy = alone(text, range, &diagnostic.fix),
            None => corrected.push(Line { range, report, edits: diagnostic.fix.clone() }),
        }
    }
    for line in corrected {
        if let Some(diagnostic) = found.get_mut(line.report) {
            diagnostic.copy = alone(text, line.range, &line.edits);
        }
    }
    found
}

/// A line of the text and its corrections.
struct Line {
    range: Range<usize>,
    /// Which report shows it.
    report: usize,
    edits: Vec<Edit>,
}

impl Line {
    fn takes(&self, edits: &[Edit]) -> bool {
        edits.iter().all(|edit| self.edits.iter().all(|other| edit.beside(other)))
    }
}

fn alone(text: &str, range: Range<usize>, edits: &[Edit]) -> Option<String> {
    let line = edited(text, (range.start, range.end), edits);
    let line = line.trim_start_matches('\u{feff}').trim();
    copies(line).then(|| line.to_owned())
}

fn copies(line: &str) -> bool {
    line.len() <= 2 * LINE && !line.contains('\n')
}

/// The line that holds all of the edits, unless it is long.
fn line_around(text: &str, edits: &[Edit]) -> Option<Range<usize>> {
    let span = edits.iter().map(|edit| edit.wrong).reduce(Span::to)?;
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
