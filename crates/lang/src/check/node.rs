//! A primary and its parts to a chain of checked nodes.
//! Invariant: parts apply from left to right; the first mistake in a chain ends that chain, not the program.

use base::{Diagnostic, Edit, Span};
use catalog::Type;

use super::correction::rename_edit;
use super::{Checker, MethodCall, NodeId, RowType, TypedColumn};
use crate::codes;
use crate::ir::StepKind;
use crate::scope::{EntityLookupError, ExposedEntity, UntaughtEntity};
use crate::syntax::tree::{EntityName, Heredoc, Name, Node, Part, PartKind, Primary, Value};

impl<'s> Checker<'s> {
    pub(super) fn node(&mut self, node: &Node) -> Option<NodeId> {
        self.chain(&node.primary, &node.parts, node.head)
    }

    /// `head` is where the primary stands.
    pub(super) fn chain(&mut self, primary: &Primary, parts: &[Part], head: Span) -> Option<NodeId> {
        let (mut at, rest) = match (primary, parts) {
            // A method's receiver need not be read first.
            (Primary::Name(name), [Part { kind: PartKind::Method { name: method, args }, span }, rest @ ..])
                if !self.is_label(name) =>
            {
                let exposed = self.entity(name)?;
                let written = MethodCall { name: method, args, span: *span, receiver: head };
                (self.method_of_type(exposed, written)?, rest)
            }
            (
                Primary::Get { entity, key },
                [Part { kind: PartKind::Method { name: method, args }, span }, rest @ ..],
            ) => {
                let exposed = self.entity(entity)?;
                let written = MethodCall { name: method, args, span: *span, receiver: head };
                (self.method_of_instance(exposed, (entity, key), written)?, rest)
            }
            _ => (self.primary(primary, head)?, parts),
        };
        for part in rest {
            at = self.part(at, part, head.start)?;
        }
        Some(at)
    }

    fn primary(&mut self, primary: &Primary, span: Span) -> Option<NodeId> {
        match primary {
            Primary::Name(name) => self.name(name),
            Primary::Query { entity, .. } if self.is_label(entity) => {
                self.report_braces_on_rows(&entity.name, span);
                None
            }
            Primary::Query { entity, preds } => {
                let exposed = self.entity(entity)?;
                self.query(exposed, entity, preds, span)
            }
            Primary::Get { entity, key } => {
                let exposed = self.entity(entity)?;
                self.get(exposed, entity, key, span)
            }
            Primary::Search { entity, text, preds } => {
                let exposed = self.entity(entity)?;
                self.search(exposed, entity, (text, preds), span)
            }
            Primary::Host(call) => self.host(call),
            Primary::List(values) => self.literal_rows(values),
            Primary::Text(block) => Some(self.text(block)),
            Primary::Row(span) => self.row_as_rows(*span),
            // The parser has said what is wrong.
            Primary::Error(_) => None,
        }
    }

    fn report_braces_on_rows(&mut self, label: &Name, span: Span) {
        let message = format!(
            "`{}` is rows already read; braces on an entity filter at the API, `.filter{{…}}` filters rows",
            label.text
        );
        let diagnostic = Diagnostic::error(codes::FILTER_ON_ROWS, span, message);
        self.report(diagnostic.with_fix([Edit::insert(label.span.end, ".filter")]));
    }

    pub(super) fn is_label(&self, name: &EntityName) -> bool {
        name.catalog.is_none() && self.labels.contains_key(&name.name.text)
    }

    /// A label, or an entity to list.
    fn name(&mut self, name: &EntityName) -> Option<NodeId> {
        if self.is_label(name) {
            let bound = self.labels.get(&name.name.text).copied().flatten()?;
            return Some(self.import_node(bound));
        }
        let exposed = self.entity(name)?;
        let span = name.span();
        self.query(exposed, name, &[], span)
    }

    pub(super) fn entity(&mut self, name: &EntityName) -> Option<&'s ExposedEntity> {
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
            Err(EntityLookupError::UntaughtEntity(found)) => {
                let seed = |u: &UntaughtEntity| format!("{{\"api\": \"{}\", \"entity\": \"{}\"}}", u.catalog, u.entity);
                let seeds: Vec<String> = found.iter().map(seed).collect();
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

    fn text(&mut self, block: &Heredoc) -> NodeId {
        self.add_node(StepKind::Text { content: block.body.clone() }, RowType::text())
    }

    /// `["db", "cache"]`: each literal is a row.
    fn literal_rows(&mut self, values: &[Value]) -> Option<NodeId> {
        let mut items = Vec::new();
        let mut kinds: Vec<(Type, Option<std::sync::Arc<catalog::Catalog>>)> = Vec::new();
        let mut is_valid = true;
        for value in values {
            match self.untyped(value) {
                Some(untyped) => {
                    items.push(untyped.expr);
                    kinds.push((untyped.kind, untyped.ref_catalog));
                }
                None => is_valid = false,
            }
        }
        if !is_valid {
            return None;
        }
        let same = kinds.first().filter(|first| kinds.iter().all(|k| k.0 == first.0)).cloned();
        let (kind, ref_catalog) = same.unwrap_or((Type::Json, None));
        let columns = vec![TypedColumn { name: "value".into(), kind, ref_catalog }];
        let rows = RowType { is_literal: true, ..RowType::computed(columns, true) };
        Some(self.add_node(StepKind::Rows { items }, rows))
    }

    /// `_` where rows belong: the row at hand, inside a read for it.
    fn row_as_rows(&mut self, span: Span) -> Option<NodeId> {
        let Some(row) = self.row_scopes.last().copied().filter(|row| row.space < self.current_space()) else {
            self.report_row_outside(span);
            return None;
        };
        let rows = self.spaces[row.space].nodes[row.input.0].rows.clone().single_row();
        Some(self.add_node(StepKind::OuterRows { step: None }, rows))
    }

    pub(super) fn report_row_outside(&mut self, span: Span) {
        let message = "`_` is the row of a `=>` and has a meaning only after one, as in `rows => {title: _.title}`";
        self.error(codes::ROW_OUTSIDE, span, message);
    }
}
