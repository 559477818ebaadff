//! Corrections of a text: each edit has a span and the text that replaces it.
//! Invariant: an edit refers to the author's words by their span and contains no copy of them.

use std::ops::Range;

use crate::span::Span;

/// Replaces the text of `span` by `replacement`. An empty span inserts, an empty replacement deletes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// The part of the text that is replaced.
    pub span: Span,
    /// The parts of the new text, in their order.
    pub replacement: Vec<ReplacementPart>,
}

/// A part of a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplacementPart {
    /// New text.
    New(String),
    /// The author's text at this span, taken over unchanged.
    Original(Span),
}

impl Edit {
    /// Returns an edit that puts `text` in the place of `span`.
    pub fn replace(span: Span, text: impl Into<String>) -> Self {
        Self { span, replacement: vec![ReplacementPart::New(text.into())] }
    }

    /// Returns an edit that puts `text` before the byte `offset`.
    pub fn insert(offset: u32, text: impl Into<String>) -> Self {
        Self::replace(Span { start: offset, end: offset }, text)
    }

    /// Returns an edit that removes the text of `span`.
    pub fn delete(span: Span) -> Self {
        Self { span, replacement: Vec::new() }
    }

    /// Adds new text to the end of the replacement.
    pub fn append(mut self, text: impl Into<String>) -> Self {
        self.replacement.push(ReplacementPart::New(text.into()));
        self
    }

    /// Adds the author's text at `span` to the end of the replacement.
    pub fn append_original(mut self, span: Span) -> Self {
        self.replacement.push(ReplacementPart::Original(span));
        self
    }

    /// Returns the replacement, with the author's words taken from `text`.
    pub fn replacement_in(&self, text: &str) -> String {
        let part_text = |part: &ReplacementPart| match part {
            ReplacementPart::New(new) => new.clone(),
            ReplacementPart::Original(span) => span.of(text).to_owned(),
        };
        self.replacement.iter().map(part_text).collect()
    }

    /// Returns whether the spans of two edits do not overlap, so that both edits can be applied.
    pub fn is_disjoint_from(&self, other: &Edit) -> bool {
        self.span.start >= other.span.end || self.span.end <= other.span.start
    }
}

/// Returns the part `range` of a text after the edits are applied. The edits must be disjoint. Edits at the same
/// position keep their order.
pub fn apply_edits<'e>(text: &str, range: Range<usize>, edits: impl IntoIterator<Item = &'e Edit>) -> String {
    let mut ordered: Vec<&Edit> = edits.into_iter().collect();
    // The sort is stable, which keeps the order of insertions at one position.
    ordered.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let mut out = String::new();
    let mut copied_to = range.start;
    for edit in ordered {
        // `get` instead of an index: a span that does not fit the text must not panic.
        out.push_str(text.get(copied_to..edit.span.start as usize).unwrap_or(""));
        out.push_str(&edit.replacement_in(text));
        copied_to = edit.span.end as usize;
    }
    out.push_str(text.get(copied_to..range.end).unwrap_or(""));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_authors_words_move_with_an_edit() {
        let text = "e1{p9=3}[p9]";
        let insertion = Edit::insert(8, ".filter{").append_original(Span::new(3, 7)).append("}");
        let deletion = Edit::delete(Span::new(2, 8));
        assert!(insertion.is_disjoint_from(&deletion));
        assert_eq!(apply_edits(text, 0..text.len(), [&insertion, &deletion]), "e1.filter{p9=3}[p9]");
    }

    #[test]
    fn edits_that_do_not_fit_the_text_do_not_panic() {
        let edit = Edit::replace(Span::new(1, 2), "x").append_original(Span::new(7, 9));
        assert_eq!(apply_edits("é", 0..2, [&edit]), "x");
    }
}
