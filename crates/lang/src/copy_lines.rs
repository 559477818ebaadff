//! Adds a line to copy to each diagnostic: the author's line with all its corrections applied.
//! Invariant: a line to copy is a single line, and only the first diagnostic that corrects the line shows it. Each
//! diagnostic reads a bounded piece of the text around its edits.

use std::ops::Range;

use base::{Diagnostic, Edit, Span, apply_edits};

/// The longest line in bytes that a correction repeats. For a longer line, only the corrected piece is shown.
pub(crate) const MAX_COPIED_LINE_BYTES: usize = 320;

/// Sorts the diagnostics by position and adds their lines to copy. All corrections of one line are applied together,
/// so that no line to copy contains a mistake that another diagnostic reports. The first diagnostic of the line shows
/// the result.
pub(crate) fn add_copy_lines(text: &str, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    set_copy_lines(text, diagnostics, |range, edits| corrected_line(text, range, edits))
}

/// Adds lines to copy as [`add_copy_lines`] does, but takes them from `corrected_program`, which may contain more
/// corrections than the diagnostics.
pub(crate) fn add_copy_lines_from(
    text: &str,
    diagnostics: Vec<Diagnostic>,
    corrected_program: &str,
) -> Vec<Diagnostic> {
    let lines: Vec<&str> = corrected_program.lines().collect();
    let line_count = text.lines().count();
    set_copy_lines(text, diagnostics, |range, edits| {
        let number = text.get(..range.start)?.matches('\n').count();
        let spans_lines = text.get(range.clone())?.contains('\n');
        match lines.get(number) {
            // Line numbers of the two texts correspond only if both have the same number of lines.
            Some(line) if lines.len() == line_count && !spans_lines => {
                Some(line.trim().to_owned()).filter(|l| fits_in_copy(l))
            }
            _ => corrected_line(text, range, edits),
        }
    })
}

/// Sorts the diagnostics and sets the `copy` of each. `line` returns the line to copy for the range of a line and its
/// edits.
fn set_copy_lines(
    text: &str,
    mut diagnostics: Vec<Diagnostic>,
    line: impl Fn(Range<usize>, &[Edit]) -> Option<String>,
) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.code));
    let mut corrected: Vec<CorrectedLine> = Vec::new();
    for (diagnostic_index, diagnostic) in diagnostics.iter_mut().enumerate() {
        let Some(range) = line_range_around(text, &diagnostic.fix) else {
            // The line is too long to repeat, so a single edit is shown by its replacement alone.
            if let [only] = diagnostic.fix.as_slice() {
                diagnostic.copy = Some(only.replacement_in(text)).filter(|piece| fits_in_copy(piece));
            }
            continue;
        };
        let known_line = corrected.iter_mut().find(|known_line| known_line.range == range);
        match known_line {
            Some(known_line) if known_line.can_add(&diagnostic.fix) => {
                known_line.edits.extend(diagnostic.fix.iter().cloned())
            }
            Some(_) => diagnostic.copy = line(range, &diagnostic.fix),
            None => corrected.push(CorrectedLine { range, diagnostic_index, edits: diagnostic.fix.clone() }),
        }
    }
    for CorrectedLine { range, diagnostic_index, edits } in corrected {
        if let Some(diagnostic) = diagnostics.get_mut(diagnostic_index) {
            diagnostic.copy = line(range, &edits);
        }
    }
    diagnostics
}

/// A line of the text that has corrections.
struct CorrectedLine {
    /// The range of the line in the text, in bytes, without the line break.
    range: Range<usize>,
    /// The index of the first diagnostic that corrects the line. That diagnostic shows the corrected line.
    diagnostic_index: usize,
    /// The edits of all diagnostics on this line, without overlaps.
    edits: Vec<Edit>,
}

impl CorrectedLine {
    /// Returns whether no new edit overlaps an edit of the line.
    fn can_add(&self, edits: &[Edit]) -> bool {
        edits.iter().all(|edit| self.edits.iter().all(|other| edit.is_disjoint_from(other)))
    }
}

/// Returns the line with the edits applied, or `None` if the result is too long to copy.
fn corrected_line(text: &str, range: Range<usize>, edits: &[Edit]) -> Option<String> {
    let line = apply_edits(text, range, edits);
    let line = line.trim_start_matches('\u{feff}').trim();
    // A correction that spans lines is joined into one line. The lines stay separate if the text contains a heredoc, a
    // comment or an open string, where line breaks have a meaning.
    let can_be_joined = !["<<", ";;"].iter().any(|sign| line.contains(sign)) && line.matches('"').count() % 2 == 0;
    if line.contains('\n') && can_be_joined {
        let joined: Vec<&str> = line.lines().map(str::trim).collect();
        return Some(joined.join(" ")).filter(|joined| fits_in_copy(joined));
    }
    fits_in_copy(line).then(|| line.to_owned())
}

/// Returns whether a text is one line and short enough to be shown. A correction may lengthen a line, so the limit is
/// twice `MAX_COPIED_LINE_BYTES`.
fn fits_in_copy(line: &str) -> bool {
    line.len() <= 2 * MAX_COPIED_LINE_BYTES && !line.contains('\n')
}

/// Returns the byte range of the lines that contain all edits. Reads at most `MAX_COPIED_LINE_BYTES` on either side, and
/// returns `None` if the lines are longer.
fn line_range_around(text: &str, edits: &[Edit]) -> Option<Range<usize>> {
    let span = edits.iter().map(|edit| edit.span).reduce(Span::to)?;
    let start = span.start as usize;
    let end = span.end as usize;
    let before = text.get(..start)?;
    let after = text.get(end..)?;
    let text_before_start = before.floor_char_boundary(before.len().saturating_sub(MAX_COPIED_LINE_BYTES));
    let text_before = before.get(text_before_start..)?;
    let text_after = after.get(..after.floor_char_boundary(MAX_COPIED_LINE_BYTES.min(after.len())))?;
    let line_start = match text_before.rfind('\n') {
        Some(at) => text_before_start + at + 1,
        None if text_before_start == 0 => 0,
        None => return None,
    };
    let line_end = match text_after.find('\n') {
        Some(at) => end + at,
        None if text_after.len() == after.len() => text.len(),
        None => return None,
    };
    (line_end - line_start <= MAX_COPIED_LINE_BYTES).then_some(line_start..line_end)
}
