//! Checks an expression: its first element (the primary) and the parts behind it become a chain of checked nodes.
//! Invariant: parts apply from left to right. The first mistake ends the check of its chain, and the rest of the
//! program is still checked.

use base::{Diagnostic, Edit, Span};
use catalog::Type;

use super::correction::rename_edit;
use super::value::TypedExpr;
use super::{Checker, MethodCall, NodeId, RowType, TypedColumn};
use crate::codes;
use crate::ir::StepKind;
use crate::scope::{EntityLookupError, ExposedEntity, UntaughtEntity};
use crate::syntax::tree::{EntityName, Heredoc, Name, Node, Part, PartKind, Primary, Value};

impl<'s> Checker<'s> {
    /// Checks an expression and returns the checked node of its last part.
    pub(super) fn check_node(&mut self, node: &Node) -> Option<NodeId> {
        self.check_chain(&node.primary, &node.parts, node.head)
    }

    /// Checks a primary with some of its parts. `head` is the span of the primary.
    pub(super) fn check_chain(&mut self, primary: &Primary, parts: &[Part], head: Span) -> Option<NodeId> {
        let (mut at, remaining_parts) = match (primary, parts) {
            // An entity or key before a method is not read, so the primary and its method are checked together.
            (
                Primary::Name(name),
                [Part { kind: PartKind::Method { name: method, args }, span }, remaining_parts @ ..],
            ) if !self.is_label(name) => {
                let exposed = self.resolve_entity(name)?;
                let call = MethodCall { name: method, args, span: *span, receiver_span: head };
                (self.check_method_of_entity(exposed, call)?, remaining_parts)
            }
            (
                Primary::Get { entity, key },
                [Part { kind: PartKind::Method { name: method, args }, span }, remaining_parts @ ..],
            ) => {
                let exposed = self.resolve_entity(entity)?;
                let call = MethodCall { name: method, args, span: *span, receiver_span: head };
                (self.check_method_of_row(exposed, entity, key, call)?, remaining_parts)
            }
            _ => (self.check_primary(primary, head)?, parts),
        };
        for part in remaining_parts {
            at = self.apply_part(at, part, head.start)?;
        }
        Some(at)
    }

    /// Checks a primary without parts. `span` is the span of the primary.
    fn check_primary(&mut self, primary: &Primary, span: Span) -> Option<NodeId> {
        match primary {
            Primary::Name(name) => self.check_name(name),
            Primary::Query { entity, .. } if self.is_label(entity) => {
                self.report_braces_on_rows(&entity.name, span);
                None
            }
            Primary::Query { entity, preds } => {
                let exposed = self.resolve_entity(entity)?;
                self.check_query(exposed, entity, preds, span)
            }
            Primary::Get { entity, key } => {
                let exposed = self.resolve_entity(entity)?;
                self.check_get(exposed, entity, key, span)
            }
            Primary::Search { entity, text, preds } => {
                let exposed = self.resolve_entity(entity)?;
                self.check_search(exposed, entity, text, preds, span)
            }
            Primary::HandleCall(call) => self.check_handle_call(call),
            Primary::List(values) => self.check_literal_rows(values),
            Primary::Text(block) => Some(self.add_text_node(block)),
            Primary::Row(span) => self.check_row_as_rows(*span),
            // The parser has reported this mistake.
            Primary::Error(_) => None,
        }
    }

    /// Reports `label{…}`, because braces filter only entities.
    fn report_braces_on_rows(&mut self, label: &Name, span: Span) {
        let message = format!(
            "`{}` is rows already read; braces on an entity filter at the API, `.filter{{…}}` filters rows",
            label.text
        );
        let diagnostic = Diagnostic::error(codes::FILTER_ON_ROWS, span, message);
        self.report(diagnostic.with_fix([Edit::insert(label.span.end, ".filter")]));
    }

    /// Returns whether a name is a label of the program.
    pub(super) fn is_label(&self, name: &EntityName) -> bool {
        name.catalog.is_none() && self.labels.contains_key(&name.name.text)
    }

    /// Checks a bare name: a label, or an entity whose rows are listed.
    fn check_name(&mut self, name: &EntityName) -> Option<NodeId> {
        if self.is_label(name) {
            let bound = self.labels.get(&name.name.text).copied().flatten()?;
            return Some(self.import_node(bound));
        }
        let exposed = self.resolve_entity(name)?;
        let span = name.span();
        self.check_query(exposed, name, &[], span)
    }

    /// Finds the entity of a name, or reports that the name has no entity.
    pub(super) fn resolve_entity(&mut self, name: &EntityName) -> Option<&'s ExposedEntity> {
        let span = name.span();
        let shown = || match &name.catalog {
            Some(catalog) => format!("{}:{}", catalog.text, name.name.text),
            None => name.name.text.to_string(),
        };
        match self.scope.entity(name) {
            Ok(exposed) => {
                self.note_case_fix(&name.name, &exposed.entity);
                Some(exposed)
            }
            Err(EntityLookupError::Ambiguous(names)) => {
                let message = format!("`{}` is in several catalogs of this session", shown());
                self.report(Diagnostic::error(codes::AMBIGUOUS_ENTITY, span, message).with_alternatives(names));
                None
            }
            Err(EntityLookupError::UntaughtEntity(entities)) => {
                let seed = |u: &UntaughtEntity| format!("{{\"api\": \"{}\", \"entity\": \"{}\"}}", u.catalog, u.entity);
                let seeds: Vec<String> = entities.iter().map(seed).collect();
                let message =
                    format!("`{}` was not taught to this session; add it to the seeds of plasm_context", shown());
                let untaught = Diagnostic::error(codes::NOT_TAUGHT, span, message);
                self.report(match seeds.as_slice() {
                    [only] => untaught.with_copy(only),
                    _ => untaught.with_alternatives(seeds),
                });
                None
            }
            Err(EntityLookupError::Unknown(near)) => {
                let message = format!(
                    "no entity or name `{}` in this session; if the API has it, add a seed for it with plasm_context",
                    shown()
                );
                let fix = rename_edit(&name.name, near.iter().map(String::as_str));
                let diagnostic = Diagnostic::error(codes::UNKNOWN_ENTITY, span, message);
                self.report(diagnostic.with_fix(fix).with_alternatives(near));
                None
            }
        }
    }

    /// Makes a row `{content}` from a block of text.
    fn add_text_node(&mut self, block: &Heredoc) -> NodeId {
        self.add_node(StepKind::Text { content: block.body.clone() }, RowType::text_rows())
    }

    /// Checks `["db", "cache"]`, which makes a row of each literal.
    fn check_literal_rows(&mut self, values: &[Value]) -> Option<NodeId> {
        // All values are checked before the first mistake ends the chain, so that all mistakes are reported.
        let inferred: Vec<Option<TypedExpr>> = values.iter().map(|value| self.infer_value(value)).collect();
        let items = inferred.into_iter().collect::<Option<Vec<TypedExpr>>>()?;
        let same = items.first().filter(|first| items.iter().all(|item| item.kind == first.kind));
        let (kind, ref_catalog) =
            same.map_or((Type::Json, None), |first| (first.kind.clone(), first.ref_catalog.clone()));
        let columns = vec![TypedColumn { name: "value".into(), kind, ref_catalog }];
        let rows = RowType { is_literal: true, ..RowType::computed_rows(columns, true) };
        let items = items.into_iter().map(|item| item.expr).collect();
        Some(self.add_node(StepKind::Rows { items }, rows))
    }

    /// Checks `_` in a place where rows are expected: the current row, inside a read per row.
    fn check_row_as_rows(&mut self, span: Span) -> Option<NodeId> {
        let Some(row) = self.row_scopes.last().copied().filter(|row| row.space < self.current_space()) else {
            self.report_row_outside(span);
            return None;
        };
        let rows = self.row_type_of(row);
        Some(self.add_node(StepKind::OuterRows { step: None }, rows))
    }

    /// Reports a `_` that is not inside a `=>`.
    pub(super) fn report_row_outside(&mut self, span: Span) {
        let message = "`_` is the row of a `=>` and has a meaning only after one, as in `rows => {title: _.title}`";
        self.report_error(codes::ROW_OUTSIDE, span, message);
    }
}
