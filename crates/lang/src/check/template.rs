//! Checks templates, which are Jinja texts that a run renders with all rows or with one row.
//! Invariant: if a name is certainly a field of the row, the field exists. Referenced rows that a template uses are
//! attached before it is rendered.

use base::Span;
use catalog::Type;

use super::path::{Attachment, PathError, PathErrorKind};
use super::value::RefCatalog;
use super::{Checker, NodeId, RowType};
use crate::codes;
use crate::ir::{Expr, StepKind, template_names};
use crate::syntax::tree::{Heredoc, Name};

impl Checker<'_> {
    /// Returns whether a text is a template. A text is one if it contains Jinja tags and is inside a `=>`.
    pub(super) fn is_template(&self, text: &str) -> bool {
        !self.row_scopes.is_empty() && (text.contains("{{") || text.contains("{%"))
    }

    /// Makes a template over the current row, as a value of type `kind`.
    pub(super) fn make_template(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        kind: &Type,
        source: &str,
        span: Span,
    ) -> Option<Expr> {
        let accepts_text = match kind {
            Type::String(_) | Type::Json | Type::Select(_) | Type::Date(_) | Type::Uuid => true,
            Type::Ref(target) => ref_catalog.and_then(|catalog| catalog.entity(target)).is_none_or(|e| {
                let key: Vec<_> = e.key_fields().collect();
                matches!(key.as_slice(), [only] if matches!(only.kind, Type::String(_) | Type::Uuid))
            }),
            _ => false,
        };
        if !accepts_text {
            let message = format!("expected {}, and a template makes text; write `_.slot`", kind.describe());
            self.report_error(codes::WRONG_TYPE, span, message);
            return None;
        }
        let row = self.row_scopes.last().copied()?;
        let rows = self.row_type_of(row);
        let attachments = self.find_template_attachments(&rows, source, span, TemplateScope::Row)?;
        self.attach_to_row(row, &attachments);
        Some(Expr::Template { source: source.to_owned(), names: self.symbols_in_template(source) })
    }

    /// Checks `rows <<T`, which renders all rows to one row `{content}`.
    pub(super) fn check_template_part(&mut self, input: NodeId, block: &Heredoc) -> Option<NodeId> {
        let rows = self.rows(input).clone();
        let attachments = self.find_template_attachments(&rows, &block.body, block.span, TemplateScope::Rows)?;
        let input = self.attach_to_rows(input, &attachments);
        let source = block.body.clone();
        let names = self.symbols_in_template(&block.body);
        Some(self.add_node(StepKind::Template { input: input.0, source, names }, RowType::text_rows()))
    }

    /// Returns the symbols that a template uses, each with the column name that it means.
    fn symbols_in_template(&self, source: &str) -> Vec<(String, String)> {
        let Some(template) = template_names(source) else { return Vec::new() };
        let names_in_tags = template.chains.iter().flatten();
        let mut names: Vec<(String, String)> =
            names_in_tags.filter_map(|w| Some(((*w).to_owned(), self.scope.slots.get(w)?.name.to_string()))).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns the rows that must be attached before the template can be rendered.
    fn find_template_attachments(
        &mut self,
        rows: &RowType,
        source: &str,
        span: Span,
        scope: TemplateScope,
    ) -> Option<Vec<Attachment>> {
        let Some(template) = template_names(source) else {
            self.report_error(codes::BAD_TEMPLATE, span, "the template has a `{{`, `{%` or `{#` that never closes");
            return None;
        };
        let mut attachments = Vec::new();
        let mut is_valid = true;
        for chain in &template.chains {
            let Some((root, rest)) = chain.split_first() else { continue };
            let is_certain = match scope {
                TemplateScope::Row => *root == "_",
                TemplateScope::Rows => template.row_names.contains(root),
            };
            if rest.is_empty() || (scope == TemplateScope::Row && !is_certain) || *root == "loop" {
                continue;
            }
            let names: Vec<Name> = rest.iter().map(|text| Name { text: (*text).into(), span }).collect();
            match self.resolve_longest_path(rows, &names) {
                Ok(attach) => attachments.extend(attach),
                Err(error) if is_certain => {
                    self.report_path_error(rows, &names, &error);
                    // The span of the error is the whole template, so a correction of the name would replace the whole
                    // text.
                    if let Some(last) = self.diagnostics.last_mut() {
                        last.fix.clear();
                    }
                    is_valid = false;
                }
                Err(_) => {}
            }
        }
        is_valid.then_some(attachments)
    }

    /// Resolves the longest part of a path that is valid. Names behind a plain value are accepted, because Jinja may
    /// have a filter or method of that name.
    fn resolve_longest_path(&self, rows: &RowType, names: &[Name]) -> Result<Vec<Attachment>, PathError> {
        match self.lookup_path(rows, names) {
            Ok(resolved) => Ok(resolved.attachments),
            Err(PathError { index, kind: PathErrorKind::NoInnerValues(_) }) if index > 0 => {
                self.resolve_longest_path(rows, &names[..index])
            }
            Err(error) => Err(error),
        }
    }
}

/// The rows that a template can use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TemplateScope {
    /// The template is rendered with one row, named `_`.
    Row,
    /// The template is rendered with all rows, named `rows`.
    Rows,
}
