//! Templates: what a Jinja text names of the rows it is rendered over.
//! Invariant: a name that surely is a field of the row exists; what lies beyond a reference is attached before rendering.

use base::Span;
use catalog::Type;

use super::path::{PathError, PathErrorKind};
use super::value::RefCatalog;
use super::{Checker, NodeId, RowType};
use crate::codes;
use crate::ir::{EntityRef, Expr, Path, StepKind, template_names};
use crate::syntax::tree::{Heredoc, Name};

impl Checker<'_> {
    /// Inside `=>` a text with Jinja in it is a template over the row.
    pub(super) fn is_template(&self, text: &str) -> bool {
        !self.row_scopes.is_empty() && (text.contains("{{") || text.contains("{%"))
    }

    /// A template over the row at hand, where text may stand.
    pub(super) fn template_for(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        kind: &Type,
        source: &str,
        span: Span,
    ) -> Option<Expr> {
        let text = match kind {
            Type::String(_) | Type::Json | Type::Select(_) | Type::Date(_) | Type::Uuid => true,
            Type::Ref(target) => ref_catalog.and_then(|h| h.entity(target)).is_none_or(|e| {
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
        let row = self.row_scopes.last().copied()?;
        let rows = self.spaces[row.space].nodes[row.input.0].rows.clone().single_row();
        let attachments = self.template_references(&rows, source, span, TemplateScope::Row)?;
        let at = self.attach(row.space, row.input, &attachments);
        if let Some(last) = self.row_scopes.last_mut() {
            last.input = at;
        }
        Some(Expr::Template { source: source.to_owned(), names: self.template_symbols(source) })
    }

    /// `rows <<T`: one row `{content}`.
    pub(super) fn render(&mut self, input: NodeId, block: &Heredoc) -> Option<NodeId> {
        let rows = self.rows(input).clone();
        let attachments = self.template_references(&rows, &block.body, block.span, TemplateScope::Rows)?;
        let here = self.current_space();
        let input = self.attach(here, input, &attachments);
        let (source, names) = (block.body.clone(), self.template_symbols(&block.body));
        Some(self.add_node(StepKind::Template { input: input.0, source, names }, RowType::text()))
    }

    /// Symbols that the template uses, and what they are called in the rows.
    fn template_symbols(&self, source: &str) -> Vec<(String, String)> {
        let Some(found) = template_names(source) else { return Vec::new() };
        let words = found.chains.iter().flatten();
        let mut names: Vec<(String, String)> =
            words.filter_map(|w| Some(((*w).to_owned(), self.scope.slots.get(w)?.name.to_string()))).collect();
        names.sort();
        names.dedup();
        names
    }

    /// What must be attached for the paths of a template.
    fn template_references(
        &mut self,
        rows: &RowType,
        source: &str,
        span: Span,
        over: TemplateScope,
    ) -> Option<Vec<(Path, EntityRef)>> {
        let Some(found) = template_names(source) else {
            self.error(codes::BAD_TEMPLATE, span, "the template has a `{{`, `{%` or `{#` that never closes");
            return None;
        };
        let mut attachments = Vec::new();
        let mut is_valid = true;
        for chain in &found.chains {
            let Some((root, rest)) = chain.split_first() else { continue };
            let strict = match over {
                TemplateScope::Row => *root == "_",
                TemplateScope::Rows => found.row_names.contains(root),
            };
            if rest.is_empty() || (over == TemplateScope::Row && !strict) || *root == "loop" {
                continue;
            }
            let names: Vec<Name> = rest.iter().map(|text| Name { text: (*text).into(), span }).collect();
            match self.longest_path(rows, &names) {
                Ok(attach) => attachments.extend(attach),
                Err(lost) if strict => {
                    self.report_path_error(rows, &names, &lost);
                    // The names have no places of their own inside the template.
                    self.diagnostics.iter_mut().rev().take(1).for_each(|report| report.fix.clear());
                    is_valid = false;
                }
                Err(_) => {}
            }
        }
        is_valid.then_some(attachments)
    }

    /// As far as a path leads; what Jinja does with a plain value after that is its own business.
    fn longest_path(&self, rows: &RowType, names: &[Name]) -> Result<Vec<(Path, EntityRef)>, PathError> {
        match self.lookup_path(rows, names) {
            Ok(resolved) => Ok(resolved.attachments),
            Err(PathError { index, kind: PathErrorKind::Plain(_) }) if index > 0 => {
                self.longest_path(rows, &names[..index])
            }
            Err(lost) => Err(lost),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TemplateScope {
    /// One row, `_`.
    Row,
    /// All of them, `rows`.
    Rows,
}
