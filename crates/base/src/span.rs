//! Positions in a text: byte ranges, and their lines and columns.
//! Invariant: a span is two byte offsets with `start <= end`. Every offset has a location, even an offset past the
//! end or inside a character.

use serde::{Deserialize, Serialize};

/// A range of bytes in a text, without the byte at `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
pub struct Span {
    /// The offset of the first byte.
    pub start: u32,
    /// The offset after the last byte.
    pub end: u32,
}

impl Span {
    /// Returns the span of these offsets. If `end` is before `start`, the span is empty. An offset above the 32-bit
    /// maximum becomes that maximum. So no input causes a panic.
    pub fn new(start: usize, end: usize) -> Self {
        let start = u32::try_from(start).unwrap_or(u32::MAX);
        let end = u32::try_from(end).unwrap_or(u32::MAX);
        Self { start, end: end.max(start) }
    }

    /// Returns the smallest span that contains this span and `other`.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the part of `text` that the span covers, or the empty text if the span does not fit.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

/// A line and a column, both counted from 1. A column counts characters, not bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLocation {
    pub line: u32,
    pub column: u32,
}

/// Converts byte offsets of one text to lines and columns.
#[derive(Debug)]
pub struct LineIndex<'a> {
    text: &'a str,
    /// The offset of each line's first byte, computed once because a text may have many diagnostics.
    line_starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    pub fn new(text: &'a str) -> Self {
        let line_starts = std::iter::once(0).chain(text.match_indices('\n').map(|(newline, _)| newline + 1)).collect();
        Self { text, line_starts }
    }

    /// Returns the location of an offset. An offset past the end gets the location of the end.
    pub fn location(&self, offset: u32) -> SourceLocation {
        let offset = (offset as usize).min(self.text.len());
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let start = self.line_starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let before = self.text.as_bytes().get(start..offset).unwrap_or_default();
        // Continuation bytes of UTF-8 begin with the bits 10, so the number of other bytes is the number of
        // characters. Counting bytes instead of slicing text cannot panic at an offset inside a character.
        let column = before.iter().filter(|byte| (**byte & 0xC0) != 0x80).count() + 1;
        SourceLocation { line: line as u32, column: column as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_every_offset_has_a_location() {
        let index = LineIndex::new("aé\nb");
        let at = |offset| (index.location(offset).line, index.location(offset).column);
        assert_eq!([at(0), at(1), at(3), at(4), at(99)], [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]);
        assert_eq!(at(2), (1, 3), "inside a character is after it");
    }

    #[test]
    fn a_span_that_does_not_fit_covers_no_text() {
        assert_eq!(Span::new(1, 2).of("é"), "");
        assert_eq!(Span::new(5, 9).of("abc"), "");
        assert_eq!(Span::new(3, 1), Span { start: 3, end: 3 });
    }
}
