//! Corrections as lines to copy: the author's own line with everything on it corrected.
//! Invariant: a line to copy is one line; it stands with the first report that corrects it, and each costs a bounded look at
//! the text around it.

use std::ops::Range;

use base::{Diagnostic, Edit, Span, apply_edits};

/// A line longer than this is not repeated in a correction; the corrected piece alone is.
pub(crate) const LINE: usize = 320;

/// Reports in the order of their places, with their lines to copy. A line's corrections are made together and stand with its
/// first report, so that no line to copy is still wrong where another report says so.
pub(crate) fn add_copy_lines(text: &str, found: Vec<Diagnostic>) -> Vec<Diagnostic> {
    copied(text, found, |range, edits| alone(text, range, edits))
}

/// The same with the lines of the program that it becomes, which may need more than these corrections.
pub(crate) fn add_copy_lines_of(text: &str, found: Vec<Diagnostic>, settled: &str) -> Vec<Diagnostic> {
    let (lines, before): (Vec<&str>, usize) = (settled.lines().collect(), text.lines().count());
    copied(text, found, |range, edits| {
        let number = text.get(..range.start)?.matches('\n').count();
        let spans_lines = text.get(range.clone())?.contains('\n');
        match lines.get(number) {
            Some(line) if lines.len() == before && !spans_lines => Some(line.trim().to_owned()).filter(|l| copies(l)),
            _ => alone(text, range, edits),
        }
    })
}

fn copied(
    text: &str,
    mut found: Vec<Diagnostic>,
    line: impl Fn(Range<usize>, &[Edit]) -> Option<String>,
) -> Vec<Diagnostic> {
    found.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.code));
    let mut corrected: Vec<Line> = Vec::new();
    for (report, diagnostic) in found.iter_mut().enumerate() {
        let Some(range) = line_around(text, &diagnostic.fix) else {
            // The piece alone, where it is one.
            if let [only] = diagnostic.fix.as_slice() {
                diagnostic.copy = Some(only.replacement_in(text)).filter(|piece| copies(piece));
            }
            continue;
        };
        let known = corrected.iter_mut().find(|known| known.range == range);
        match known {
            Some(known) if known.takes(&diagnostic.fix) => known.edits.extend(diagnostic.fix.iter().cloned()),
            Some(_) => diagnostic.copy = line(range, &diagnostic.fix),
            None => corrected.push(Line { range, report, edits: diagnostic.fix.clone() }),
        }
    }
    for Line { range, report, edits } in corrected {
        if let Some(diagnostic) = found.get_mut(report) {
            diagnostic.copy = line(range, &edits);
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
        edits.iter().all(|edit| self.edits.iter().all(|other| edit.is_disjoint_from(other)))
    }
}

fn alone(text: &str, range: Range<usize>, edits: &[Edit]) -> Option<String> {
    let line = apply_edits(text, range, edits);
    let line = line.trim_start_matches('\u{feff}').trim();
    // Several lines are one where nothing in them depends on the line it stands in.
    let plain = !["<<", ";;"].iter().any(|sign| line.contains(sign)) && line.matches('"').count() % 2 == 0;
    if line.contains('\n') && plain {
        let joined: Vec<&str> = line.lines().map(str::trim).collect();
        return Some(joined.join(" ")).filter(|joined| copies(joined));
    }
    copies(line).then(|| line.to_owned())
}

fn copies(line: &str) -> bool {
    line.len() <= 2 * LINE && !line.contains('\n')
}

/// The line, or lines, that hold all of the edits, unless they are long.
fn line_around(text: &str, edits: &[Edit]) -> Option<Range<usize>> {
    let span = edits.iter().map(|edit| edit.span).reduce(Span::to)?;
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
    (last - first <= LINE).then_some(first..last)
}
