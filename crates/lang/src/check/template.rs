//! Templates: what a Jinja text names of the rows it is rendered over.
//! Invariant: a name that surely is a field of the row exists; what lies beyond a reference is attached before rendering.

use base::Span;
use catalog::Type;

use super::path::{Lost, Why};
use super::value::Home;
use super::{Cx, NodeId, RowType};
use crate::codes;
use crate::ir::{EntityOf, Expr, Path, StepKind, chains};
use crate::syntax::tree::{Heredoc, Name};

impl Cx<'_> {
    /// Inside `=>` a text with Jinja in it is a template over the row.
    pub(super) fn is_template(&self, text: &str) -> bool {
        !self.each.is_empty() && (text.contains("{{") || text.contains("{%"))
    }

    /// A template over the row at hand, where text may stand.
    pub(super) fn template_for(&mut self, home: Home<'_>, kind: &Type, source: &str, span: Span) -> Option<Expr> {
        let text = match kind {
            Type::String(_) | Type::Json | Type::Select(_) | Type::Date(_) | Type::Uuid => true,
            Type::Ref(target) => home.and_then(|h| h.entity(target)).is_none_or(|e| {
                let key: Vec<_> = e.key_fields().collect();
                matches!(key.as_slice(), [only] if matches!(only.kind, Type::String(_) | Type::Uuid))
            }),
            _ => false,
        };
        if !text {
            let message = format!("expected {}, and a template makes text; write `_.slot`", kind.describe());
            self.error(codes::WRONG_TYPE, span, message);
            return None;
        }
        let row = self.each.last().copied()?;
        let rows = self.spaces[row.space].nodes[row.input.0].rows.clone().one();
        let wanted = self.names_in(&rows, source, span, Over::Row)?;
        let at = self.attach(row.space, row.input, &wanted);
        if let Some(last) = self.each.last_mut() {
            last.input = at;
        }
        Some(Expr::Template { source: source.to_owned(), names: self.symbols_in(source) })
    }

    /// `rows <<T`: one row `{content}`.
    pub(super) fn render(&mut self, input: NodeId, block: &Heredoc) -> Option<NodeId> {
        let rows = self.rows(input).clone();
        let wanted = self.names_in(&rows, &block.body, block.span, Over::Rows)?;
        let here = self.here();
        let input = self.attach(here, input, &wanted);
        let (source, names) = (block.body.clone(), self.symbols_in(&block.body));
        Some(self.push(StepKind::Template { input: input.0, source, names }, RowType::text()))
    }

    /// Symbols that the template uses, and what they are called in the rows.
    fn symbols_in(&self, source: &str) -> Vec<(String, String)> {
        let Some(found) = chains(source) else { return Vec::new() };
        let words = found.chains.iter().flatten();
        let mut names: Vec<(String, String)> =
            words.filter_map(|w| Some(((*w).to_owned(), self.scope.slots.get(w)?.name.to_string()))).collect();
        names.sort();
        names.dedup();
        names
    }

    /// What must be attached for the paths of a template.
    fn names_in(&mut self, rows: &RowType, source: &str, span: Span, over: Over) -> Option<Vec<(Path, EntityOf)>> {
        let Some(found) = chains(source) else {
            self.error(codes::BAD_TEMPLATE, span, "the template has a `{{`, `{%` or `{#` that never closes");
            return None;
        };
        let mut wanted = Vec::new();
        let mut right = true;
        for chain in &found.chains {
            let Some((root, rest)) = chain.split_first() else { continue };
            let strict = match over {
                Over::Row => *root == "_",
                Over::Rows => found.each.contains(root),
            };
            if rest.is_empty() || (over == Over::Row && !strict) || *root == "loop" {
                continue;
            }
            let names: Vec<Name> = rest.iter().map(|text| Name { text: (*text).into(), span }).collect();
            match self.longest(rows, &names) {
                Ok(attach) => wanted.extend(attach),
                Err(lost) if strict => {
                    self.lost(rows, &names, &lost);
                    // The names have no places of their own inside the template.
                    self.found.iter_mut().rev().take(1).for_each(|report| report.fix.clear());
                    right = false;
                }
                Err(_) => {}
            }
        }
        right.then_some(wanted)
    }

    /// As far as a path leads; what Jinja does with a plain value after that is its own business.
    fn longest(&self, rows: &RowType, names: &[Name]) -> Result<Vec<(Path, EntityOf)>, Lost> {
        match self.lookup(rows, names) {
            Ok(leads) => Ok(leads.attach),
            Err(Lost { at, why: Why::Plain(_) }) if at > 0 => self.longest(rows, &names[..at]),
            Err(lost) => Err(lost),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// One row, `_`.
    Row,
    /// All of them, `rows`.
    Rows,
}
