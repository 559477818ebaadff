//! Corrections of a text, as spans and the text to write there instead.
//! Invariant: an edit refers to the author's words by their span and never repeats them.

use std::ops::Range;

use crate::span::Span;

/// Replaces the text of `span` by `replacement`. An empty span inserts, an empty replacement deletes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub span: Span,
    pub replacement: Vec<Piece>,
}

/// A part of a replacement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    New(String),
    /// The author's own text at this span.
    Original(Span),
}

impl Edit {
    pub fn replace(span: Span, text: impl Into<String>) -> Self {
        Self { span, replacement: vec![Piece::New(text.into())] }
    }

    pub fn insert(at: u32, text: impl Into<String>) -> Self {
        Self::replace(Span { start: at, end: at }, text)
    }

    pub fn delete(span: Span) -> Self {
        Self { span, replacement: Vec::new() }
    }

    /// Adds new text to the end of the replacement.
    pub fn append(mut self, text: impl Into<String>) -> Self {
        self.replacement.push(Piece::New(text.into()));
        self
    }

    /// Adds the author's text at `span` to the end of the replacement.
    pub fn append_original(mut self, span: Span) -> Self {
        self.replacement.push(Piece::Original(span));
        self
    }

    /// The replacement, with the author's words taken from `text`.
    pub fn replacement_in(&self, text: &str) -> String {
        let piece_text = |piece: &Piece| match piece {
            Piece::New(new) => new.clone(),
            Piece::Original(span) => span.of(text).to_owned(),
        };
        self.replacement.iter().map(piece_text).collect()
    }

    /// Whether both edits can be applied: their spans do not overlap.
    pub fn is_disjoint_from(&self, other: &Edit) -> bool {
        self.span.start >= other.span.end || self.span.end <= other.span.start
    }
}

/// Returns the part `range` of a text with disjoint edits applied. Edits at the same position keep their order.
pub fn apply_edits<'e>(text: &str, range: Range<usize>, edits: impl IntoIterator<Item = &'e Edit>) -> String {
    let mut ordered: Vec<&Edit> = edits.into_iter().collect();
    ordered.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let mut out = String::new();
    let mut copied_to = range.start;
    for edit in ordered {
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
