//! Adds a line to copy to each diagnostic: the author's own line with all its corrections applied.
//! Invariant: a line to copy is one line and stands with the first diagnostic that corrects it. Each costs a bounded
//! look at the text around it.

use std::ops::Range;

use base::{Diagnostic, Edit, Span, apply_edits};

/// A line of more bytes than this is not repeated in a correction. The corrected piece alone is.
pub(crate) const MAX_LINE_BYTES: usize = 320;

/// Sorts the diagnostics by position and adds their lines to copy. All corrections of one line are applied together and
/// shown with its first diagnostic, so that no line to copy contains a mistake that another diagnostic reports.
pub(crate) fn add_copy_lines(text: &str, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    add_lines(text, diagnostics, |range, edits| corrected_line(text, range, edits))
}

/// Does the same as [`add_copy_lines`], but takes the lines from `corrected_program`, which may contain more
/// corrections than the diagnostics do.
pub(crate) fn add_copy_lines_from(
    text: &str,
    diagnostics: Vec<Diagnostic>,
    corrected_program: &str,
) -> Vec<Diagnostic> {
    let lines: Vec<&str> = corrected_program.lines().collect();
    let line_count = text.lines().count();
    add_lines(text, diagnostics, |range, edits| {
        let number = text.get(..range.start)?.matches('\n').count();
        let spans_lines = text.get(range.clone())?.contains('\n');
        match lines.get(number) {
            // Only equal line counts make the line numbers of both texts correspond.
            Some(line) if lines.len() == line_count && !spans_lines => {
                Some(line.trim().to_owned()).filter(|l| fits_in_copy(l))
            }
            _ => corrected_line(text, range, edits),
        }
    })
}

/// Sorts the diagnostics and sets `copy` in each. `line` makes the line to copy from the range of a line and its edits.
fn add_lines(
    text: &str,
    mut diagnostics: Vec<Diagnostic>,
    line: impl Fn(Range<usize>, &[Edit]) -> Option<String>,
) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.code));
    let mut corrected: Vec<CorrectedLine> = Vec::new();
    for (report, diagnostic) in diagnostics.iter_mut().enumerate() {
        let Some(range) = line_around(text, &diagnostic.fix) else {
            // The line is too long to repeat, so a single edit is shown as its replacement alone.
            if let [only] = diagnostic.fix.as_slice() {
                diagnostic.copy = Some(only.replacement_in(text)).filter(|piece| fits_in_copy(piece));
            }
            continue;
        };
        let known = corrected.iter_mut().find(|known| known.range == range);
        match known {
            Some(known) if known.can_add(&diagnostic.fix) => known.edits.extend(diagnostic.fix.iter().cloned()),
            Some(_) => diagnostic.copy = line(range, &diagnostic.fix),
            None => corrected.push(CorrectedLine { range, report, edits: diagnostic.fix.clone() }),
        }
    }
    for CorrectedLine { range, report, edits } in corrected {
        if let Some(diagnostic) = diagnostics.get_mut(report) {
            diagnostic.copy = line(range, &edits);
        }
    }
    diagnostics
}

/// A line of the text that is corrected.
struct CorrectedLine {
    /// The bytes of the line in the text, without the line break.
    range: Range<usize>,
    /// The index of the first diagnostic that corrects the line, which shows it.
    report: usize,
    /// The edits of all diagnostics on this line that do not overlap.
    edits: Vec<Edit>,
}

impl CorrectedLine {
    /// Returns whether none of the edits overlaps an edit that the line already has.
    fn can_add(&self, edits: &[Edit]) -> bool {
        edits.iter().all(|edit| self.edits.iter().all(|other| edit.is_disjoint_from(other)))
    }
}

/// Returns the line with the edits applied, or `None` if the result does not fit in a copy.
fn corrected_line(text: &str, range: Range<usize>, edits: &[Edit]) -> Option<String> {
    let line = apply_edits(text, range, edits);
    let line = line.trim_start_matches('\u{feff}').trim();
    // A correction that spans lines is joined to one line, except when a heredoc, a comment or an open string gives the
    // line breaks a meaning.
    let plain = !["<<", ";;"].iter().any(|sign| line.contains(sign)) && line.matches('"').count() % 2 == 0;
    if line.contains('\n') && plain {
        let joined: Vec<&str> = line.lines().map(str::trim).collect();
        return Some(joined.join(" ")).filter(|joined| fits_in_copy(joined));
    }
    fits_in_copy(line).then(|| line.to_owned())
}

/// Returns whether a text is one line and short enough to be shown. Corrections may make a line longer than
/// `MAX_LINE_BYTES`, so twice as much is accepted.
fn fits_in_copy(line: &str) -> bool {
    line.len() <= 2 * MAX_LINE_BYTES && !line.contains('\n')
}

/// Returns the range of the lines that hold all edits. Looks at most `MAX_LINE_BYTES` to either side, and returns
/// `None` if the lines are longer.
fn line_around(text: &str, edits: &[Edit]) -> Option<Range<usize>> {
    let span = edits.iter().map(|edit| edit.span).reduce(Span::to)?;
    let start = span.start as usize;
    let end = span.end as usize;
    let before = text.get(..start)?;
    let after = text.get(end..)?;
    let head_from = before.floor_char_boundary(before.len().saturating_sub(MAX_LINE_BYTES));
    let head = before.get(head_from..)?;
    let tail = after.get(..after.floor_char_boundary(MAX_LINE_BYTES.min(after.len())))?;
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
    (last - first <= MAX_LINE_BYTES).then_some(first..last)
}
