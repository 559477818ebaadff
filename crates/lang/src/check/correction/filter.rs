//! Corrects filters that the API does not have: the correction moves them into a `.filter{…}` behind the read.
//! Invariant: a filter is moved with its operator and its value. The other filters keep their place.

use base::{Edit, Span};

use super::super::Checker;
use crate::ir::ComparisonOp;
use crate::scope::ExposedEntity;
use crate::syntax::tree::Pred;

/// The filters that the author wrote for a source or a relation, and the position of their braces.
#[derive(Debug, Clone, Copy)]
pub(in crate::check) struct WrittenFilters<'p> {
    pub preds: &'p [Pred],
    /// The offset behind the name or the search text that the braces follow.
    pub start: u32,
    /// The offset behind the closing brace. If there are no braces, it equals `start`.
    pub end: u32,
}

impl WrittenFilters<'_> {
    /// Returns the edit that adds the filters `more` behind the written filters.
    pub fn addition_edit(self, more: &str) -> Edit {
        match self.preds.last() {
            Some(last) => Edit::insert(last.value.span.end, format!(", {more}")),
            None => Edit::replace(Span { start: self.start, end: self.end }, format!("{{{more}}}")),
        }
    }

    /// Returns the edits that move filters to a `.filter{…}` behind the source. `is_moved[i]` tells whether filter `i` is
    /// moved.
    pub fn move_edits(self, is_moved: &[bool]) -> Vec<Edit> {
        let count = self.preds.len();
        let stays = |index: &usize| !is_moved.get(*index).copied().unwrap_or(false);
        let kept: Vec<usize> = (0..count).filter(stays).collect();
        let mut edits = Vec::new();
        if kept.is_empty() {
            edits.push(Edit::delete(Span { start: self.start, end: self.end }));
        }
        let span = |index: usize| self.preds.get(index).map(Pred::span).unwrap_or_default();
        let mut index = 0;
        // One deletion removes each sequence of neighbouring moved filters. Exactly one comma stays between two kept
        // filters.
        while index < count && !kept.is_empty() {
            if stays(&index) {
                index += 1;
                continue;
            }
            let next = kept.iter().copied().find(|k| *k > index);
            let last = next.map_or(count, |next| next) - 1;
            edits.push(Edit::delete(match (index.checked_sub(1), next) {
                (Some(before), _) => Span { start: span(before).end, end: span(last).end },
                (None, Some(next)) => Span { start: span(index).start, end: span(next).start },
                (None, None) => Span { start: self.start, end: self.end },
            }));
            index = last + 1;
        }
        let mut filter = Edit::insert(self.end, ".filter{");
        for (n, moved) in (0..count).filter(|index| !stays(index)).enumerate() {
            filter = if n > 0 { filter.append(", ") } else { filter };
            filter = filter.append_original(span(moved));
        }
        edits.push(filter.append("}"));
        edits
    }
}

impl Checker<'_> {
    /// Returns whether rows of the entity can be filtered by this filter after they were read.
    pub(in crate::check) fn can_filter_rows(&mut self, exposed: &ExposedEntity, pred: &Pred) -> bool {
        let rows = self.row_type_of_entity(&exposed.catalog, &exposed.entity, true);
        let resolved = self.lookup_path(&rows, &pred.path.names).ok();
        resolved.is_some_and(|resolved| ComparisonOp::from(pred.op).applies_to(&resolved.kind))
    }
}
