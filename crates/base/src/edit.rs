//! What would correct a text: places of it, and what to write there instead.
//! Invariant: an edit keeps what the author wrote by naming its place, never by spelling it again.

use crate::span::Span;

/// Write `right` in place of `wrong`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub wrong: Span,
    pub right: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    New(String),
    /// What the author wrote at this place.
    Kept(Span),
}

impl Edit {
    pub fn replace(wrong: Span, right: impl Into<String>) -> Self {
        Self { wrong, right: vec![Piece::New(right.into())] }
    }

    pub fn insert(at: u32, right: impl Into<String>) -> Self {
        Self::replace(Span { start: at, end: at }, right)
    }

    pub fn delete(wrong: Span) -> Self {
        Self { wrong, right: Vec::new() }
    }

    pub fn write(mut self, new: impl Into<String>) -> Self {
        self.right.push(Piece::New(new.into()));
        self
    }

    pub fn keep(mut self, place: Span) -> Self {
        self.right.push(Piece::Kept(place));
        self
    }

    /// What is written instead, in this text.
    pub fn text(&self, text: &str) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::New(new) => new.clone(),
            Piece::Kept(place) => place.of(text).to_owned(),
        };
        self.right.iter().map(piece).collect()
    }

    /// Whether both can be made: they touch no common place.
    pub fn beside(&self, other: &Edit) -> bool {
        self.wrong.start >= other.wrong.end || self.wrong.end <= other.wrong.start
    }
}

/// The part of a text from `from` to `to` with edits that stand beside each other. Of two at one place the first comes first.
pub fn edited<'e>(text: &str, (from, to): (usize, usize), edits: impl IntoIterator<Item = &'e Edit>) -> String {
    let mut ordered: Vec<&Edit> = edits.into_iter().collect();
    ordered.sort_by_key(|edit| (edit.wrong.start, edit.wrong.end));
    let mut out = String::new();
    let mut at = from;
    for edit in ordered {
        out.push_str(text.get(at..edit.wrong.start as usize).unwrap_or(""));
        out.push_str(&edit.text(text));
        at = edit.wrong.end as usize;
    }
    out.push_str(text.get(at..to).unwrap_or(""));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_author_wrote_moves_along() {
        let text = "e1{p9=3}[p9]";
        let moved = Edit::insert(8, ".filter{").keep(Span::new(3, 7)).write("}");
        let gone = Edit::delete(Span::new(2, 8));
        assert!(moved.beside(&gone));
        assert_eq!(edited(text, (0, text.len()), [&moved, &gone]), "e1.filter{p9=3}[p9]");
    }

    #[test]
    fn edits_that_do_not_fit_the_text_break_nothing() {
        let edit = Edit::replace(Span::new(1, 2), "x").keep(Span::new(7, 9));
        assert_eq!(edited("é", (0, 2), [&edit]), "x");
    }
}
