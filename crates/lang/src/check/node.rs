//! Checks nodes: a primary and its parts become a chain of checked nodes.
//! Invariant: parts apply from left to right. The first mistake in a chain ends that chain, but not the check of the
//! program.

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
    /// Checks a node and returns the node of its last part.
    pub(super) fn check_node(&mut self, node: &Node) -> Option<NodeId> {
        self.check_chain(&node.primary, &node.parts, node.head)
    }

    /// Checks a primary with some of the parts of its node. `head` is the span of the primary.
    pub(super) fn check_chain(&mut self, primary: &Primary, parts: &[Part], head: Span) -> Option<NodeId> {
        let (mut at, rest) = match (primary, parts) {
            // The receiver of a method is named and not read, so the two are checked together.
            (Primary::Name(name), [Part { kind: PartKind::Method { name: method, args }, span }, rest @ ..])
                if !self.is_label(name) =>
            {
                let exposed = self.resolve_entity(name)?;
                let call = MethodCall { name: method, args, span: *span, receiver_span: head };
                (self.method_of_type(exposed, call)?, rest)
            }
            (
                Primary::Get { entity, key },
                [Part { kind: PartKind::Method { name: method, args }, span }, rest @ ..],
            ) => {
                let exposed = self.resolve_entity(entity)?;
                let call = MethodCall { name: method, args, span: *span, receiver_span: head };
                (self.method_of_instance(exposed, entity, key, call)?, rest)
            }
            _ => (self.check_primary(primary, head)?, parts),
        };
        for part in rest {
            at = self.apply_part(at, part, head.start)?;
        }
        Some(at)
    }

    fn check_primary(&mut self, primary: &Primary, span: Span) -> Option<NodeId> {
        match primary {
            Primary::Name(name) => self.check_name(name),
            Primary::Query { entity, .. } if self.is_label(entity) => {
                self.report_braces_on_rows(&entity.name, span);
                None
            }
            Primary::Query { entity, preds } => {
                let exposed = self.resolve_entity(entity)?;
                self.query(exposed, entity, preds, span)
            }
            Primary::Get { entity, key } => {
                let exposed = self.resolve_entity(entity)?;
                self.get(exposed, entity, key, span)
            }
            Primary::Search { entity, text, preds } => {
                let exposed = self.resolve_entity(entity)?;
                self.search(exposed, entity, text, preds, span)
            }
            Primary::HandleCall(call) => self.handle_call(call),
            Primary::List(values) => self.literal_rows(values),
            Primary::Text(block) => Some(self.text_rows(block)),
            Primary::Row(span) => self.row_as_rows(*span),
            // The parser has reported what is wrong.
            Primary::Error(_) => None,
        }
    }

    /// Reports `label{…}`.
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

    /// Checks a name: a label, or an entity to list.
    fn check_name(&mut self, name: &EntityName) -> Option<NodeId> {
        if self.is_label(name) {
            let bound = self.labels.get(&name.name.text).copied().flatten()?;
            return Some(self.import_node(bound));
        }
        let exposed = self.resolve_entity(name)?;
        let span = name.span();
        self.query(exposed, name, &[], span)
    }

    /// Finds the entity of a name, or reports why there is none.
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

    /// Makes a block of text a row `{content}`.
    fn text_rows(&mut self, block: &Heredoc) -> NodeId {
        self.add_node(StepKind::Text { content: block.body.clone() }, RowType::text())
    }

    /// Checks `["db", "cache"]`, where each literal is a row.
    fn literal_rows(&mut self, values: &[Value]) -> Option<NodeId> {
        // All values are checked before a mistake ends the check, so that all mistakes are reported.
        let inferred: Vec<Option<TypedExpr>> = values.iter().map(|value| self.infer_value(value)).collect();
        let items = inferred.into_iter().collect::<Option<Vec<TypedExpr>>>()?;
        let same = items.first().filter(|first| items.iter().all(|item| item.kind == first.kind));
        let (kind, ref_catalog) =
            same.map_or((Type::Json, None), |first| (first.kind.clone(), first.ref_catalog.clone()));
        let columns = vec![TypedColumn { name: "value".into(), kind, ref_catalog }];
        let rows = RowType { is_literal: true, ..RowType::computed(columns, true) };
        let items = items.into_iter().map(|item| item.expr).collect();
        Some(self.add_node(StepKind::Rows { items }, rows))
    }

    /// Checks `_` where rows belong: the current row, inside of a read for it.
    fn row_as_rows(&mut self, span: Span) -> Option<NodeId> {
        let Some(row) = self.row_scopes.last().copied().filter(|row| row.space < self.current_space()) else {
            self.report_row_outside(span);
            return None;
        };
        let rows = self.row_type_of(row);
        Some(self.add_node(StepKind::OuterRows { step: None }, rows))
    }

    /// Reports a `_` that is not inside of a `=>`.
    pub(super) fn report_row_outside(&mut self, span: Span) {
        let message = "`_` is the row of a `=>` and has a meaning only after one, as in `rows => {title: _.title}`";
        self.error(codes::ROW_OUTSIDE, span, message);
    }
}
