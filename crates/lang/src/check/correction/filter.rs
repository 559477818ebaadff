//! Corrects filters that the API does not have: they are moved behind the read.
//! Invariant: a filter is moved with its operator and its value. The filters that stay keep their place.

use base::{Edit, Span};

use super::super::Checker;
use crate::ir::ComparisonOp;
use crate::scope::ExposedEntity;
use crate::syntax::tree::Pred;

/// The filters of a source or a relation, and the place of their braces.
#[derive(Debug, Clone, Copy)]
pub(in crate::check) struct WrittenFilters<'p> {
    pub preds: &'p [Pred],
    /// The offset behind the name or the text that the braces belong to.
    pub start: u32,
    /// The offset behind the closing brace. Without braces it is `start`.
    pub end: u32,
}

impl WrittenFilters<'_> {
    /// Returns the edit that adds filters to those that were written.
    pub fn add(self, more: &str) -> Edit {
        match self.preds.last() {
            Some(last) => Edit::insert(last.value.span.end, format!(", {more}")),
            None => Edit::replace(Span { start: self.start, end: self.end }, format!("{{{more}}}")),
        }
    }

    /// Returns the edits that move some of the filters to a `.filter{…}` behind the source. `moves` says which.
    pub fn move_to_rows(self, moves: &[bool]) -> Vec<Edit> {
        let count = self.preds.len();
        let stays = |at: &usize| !moves.get(*at).copied().unwrap_or(false);
        let kept: Vec<usize> = (0..count).filter(stays).collect();
        let mut edits = Vec::new();
        if kept.is_empty() {
            edits.push(Edit::delete(Span { start: self.start, end: self.end }));
        }
        let span = |at: usize| self.preds.get(at).map(Pred::span).unwrap_or_default();
        let mut at = 0;
        // Each run of moved filters is one deletion, so that exactly one comma stays between two filters that are kept.
        while at < count && !kept.is_empty() {
            if stays(&at) {
                at += 1;
                continue;
            }
            let next = kept.iter().copied().find(|k| *k > at);
            let last = next.map_or(count, |next| next) - 1;
            edits.push(Edit::delete(match (at.checked_sub(1), next) {
                (Some(before), _) => Span { start: span(before).end, end: span(last).end },
                (None, Some(next)) => Span { start: span(at).start, end: span(next).start },
                (None, None) => Span { start: self.start, end: self.end },
            }));
            at = last + 1;
        }
        let mut filter = Edit::insert(self.end, ".filter{");
        for (n, moved) in (0..count).filter(|at| !stays(at)).enumerate() {
            filter = if n > 0 { filter.append(", ") } else { filter };
            filter = filter.append_original(span(moved));
        }
        edits.push(filter.append("}"));
        edits
    }
}

impl Checker<'_> {
    /// Returns whether rows of this entity, once read, can be filtered in this way.
    pub(in crate::check) fn can_filter_rows(&mut self, exposed: &ExposedEntity, pred: &Pred) -> bool {
        let rows = self.entity_rows(&exposed.catalog, &exposed.entity, true);
        let resolved = self.lookup_path(&rows, &pred.path.names).ok();
        resolved.is_some_and(|resolved| ComparisonOp::from(pred.op).applies_to(&resolved.kind))
    }
}
