//! Filters that the API does not have, moved behind the read; and rows that cannot be read as they were asked for.
//! Invariant: a filter is moved with its operator and its value; those that stay keep their place.

use base::{Edit, Span};

use super::super::Checker;
use crate::ir::ComparisonOp;
use crate::scope::ExposedEntity;
use crate::syntax::tree::Pred;

/// Where the filters of a source or a relation stand.
#[derive(Debug, Clone, Copy)]
pub(in crate::check) struct BraceSpan {
    /// After the name or the text that they belong to.
    pub head: u32,
    /// After the closing brace, if there is one.
    pub end: u32,
}

impl BraceSpan {
    /// With these filters in them as well.
    pub fn with_filters(self, preds: &[Pred], more: &str) -> Edit {
        match preds.last() {
            Some(last) => Edit::insert(last.value.span.end, format!(", {more}")),
            None => Edit::replace(Span { start: self.head, end: self.end }, format!("{{{more}}}")),
        }
    }

    /// These of the filters in a `.filter{…}` after the source.
    pub fn move_to_rows(self, preds: &[Pred], moves: &[bool]) -> Vec<Edit> {
        let stays = |at: &usize| !moves.get(*at).copied().unwrap_or(false);
        let kept: Vec<usize> = (0..preds.len()).filter(stays).collect();
        let mut edits = Vec::new();
        if kept.is_empty() {
            edits.push(Edit::delete(Span { start: self.head, end: self.end }));
        }
        let span = |at: usize| preds.get(at).map(Pred::span).unwrap_or_default();
        let mut at = 0;
        while at < preds.len() && !kept.is_empty() {
            if stays(&at) {
                at += 1;
                continue;
            }
            let next = kept.iter().copied().find(|k| *k > at);
            let last = next.map_or(preds.len(), |next| next) - 1;
            edits.push(Edit::delete(match (at.checked_sub(1), next) {
                (Some(before), _) => Span { start: span(before).end, end: span(last).end },
                (None, Some(next)) => Span { start: span(at).start, end: span(next).start },
                (None, None) => Span { start: self.head, end: self.end },
            }));
            at = last + 1;
        }
        let mut filter = Edit::insert(self.end, ".filter{");
        for (n, moved) in (0..preds.len()).filter(|at| !stays(at)).enumerate() {
            filter = if n > 0 { filter.append(", ") } else { filter };
            filter = filter.append_original(span(moved));
        }
        edits.push(filter.append("}"));
        edits
    }
}

impl Checker<'_> {
    /// Whether rows of this entity, once read, can be filtered so.
    pub(in crate::check) fn can_filter_rows(&mut self, exposed: &ExposedEntity, pred: &Pred) -> bool {
        let rows = self.entity_rows(&exposed.catalog, &exposed.entity, true);
        let resolved = self.lookup_path(&rows, &pred.path.names).ok();
        resolved.is_some_and(|resolved| ComparisonOp::from(pred.op).applies_to(&resolved.kind))
    }
}
