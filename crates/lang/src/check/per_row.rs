//! Checks `=>`, which makes a new row or calls an effect for each row.
//! Invariant: `_` is the row of the nearest `=>`. An effect per row is exactly one method call, and only postfixes may
//! follow it.

use base::{Diagnostic, Edit, Span};
use catalog::Type;

use super::method::Receiver;
use super::value::{ResolvedValue, reference_of};
use super::{Checker, MethodCall, NodeId, RowScope, RowType, TypedColumn};
use crate::codes;
use crate::ir::{RowPart, StepKind};
use crate::syntax::tree::{Entry, Node, Part, PartKind, Primary};

impl<'s> Checker<'s> {
    /// Checks `rows => {title: _.p10}`, which makes a new row for each row.
    pub(super) fn check_derive(&mut self, input: NodeId, object: &[Entry]) -> Option<NodeId> {
        let mut values = Vec::new();
        let mut columns: Vec<TypedColumn> = Vec::new();
        let mut is_valid = true;
        self.row_scopes.push(RowScope { space: self.current_space(), input });
        for entry in object {
            let name = &entry.key.text;
            if columns.iter().any(|c| c.name == *name) {
                self.report_error(codes::DUPLICATE_ARGUMENT, entry.key.span, format!("`{name}` names two columns"));
                is_valid = false;
            }
            match self.infer_value(&entry.value) {
                Some(inferred) => {
                    columns.push(TypedColumn {
                        name: name.clone(),
                        kind: inferred.kind,
                        ref_catalog: inferred.ref_catalog,
                    });
                    values.push((name.to_string(), inferred.expr));
                }
                None => is_valid = false,
            }
        }
        let row = self.row_scopes.pop()?;
        if !is_valid {
            return None;
        }
        let rows = RowType::computed_rows(columns, self.rows(input).many);
        // The checks of the values may have attached rows to the input. The scope's input includes them.
        Some(self.add_node(StepKind::Derive { input: row.input.0, object: values }, rows))
    }

    /// Checks `rows => e1(…).m1(…)`, which calls a method for each row.
    pub(super) fn check_each_row(&mut self, input: NodeId, effect: &Node) -> Option<NodeId> {
        let [before @ .., Part { kind: PartKind::Method { name, args }, span }] = effect.parts.as_slice() else {
            self.report_not_an_effect(effect);
            return None;
        };
        if before.iter().any(|part| matches!(part.kind, PartKind::Method { .. })) {
            self.report_not_an_effect(effect);
            return None;
        }
        self.row_scopes.push(RowScope { space: self.current_space(), input });
        let receiver_span = Span { start: effect.span.start, end: span.start };
        let call = MethodCall { name, args, span: *span, receiver_span };
        let receiver = self.resolve_receiver_per_row(effect, before);
        let method = receiver.and_then(|receiver| self.resolve_method(&receiver, call));
        let row = self.row_scopes.pop()?;
        self.add_call(method?, Some(row.input), name.span)
    }

    fn report_not_an_effect(&mut self, effect: &Node) {
        let message =
            "after `=>` stands `{key: value}`, which makes a row of each row, or one method, which is called for each";
        // A path of the row, or a read for the row, is a possible value of a new row.
        let name = match effect.parts.last().map(|part| &part.kind) {
            Some(PartKind::Follow { name, .. }) => name.text.clone(),
            _ => "value".into(),
        };
        let fix = Edit::replace(effect.span, format!("{{{name}: ")).append_original(effect.span).append("}");
        self.report(Diagnostic::error(codes::NOT_AN_EFFECT, effect.span, message).with_fix([fix]));
    }

    /// Resolves the receiver of a method after `=>`. A receiver that is an entity or a key is not read.
    fn resolve_receiver_per_row(&mut self, effect: &Node, before: &[Part]) -> Option<Receiver<'s>> {
        match (&effect.primary, before) {
            (Primary::Name(name), []) if !self.is_label(name) => Some(Receiver::Entity(self.resolve_entity(name)?)),
            (Primary::Get { entity, key }, []) => {
                let exposed = self.resolve_entity(entity)?;
                let args = self.check_key_args(exposed, entity, key, effect.head)?;
                Some(Receiver::Row(exposed, reference_of(exposed, args)?))
            }
            _ => {
                let span = before.last().map_or(effect.head, |last| effect.head.to(last.span));
                let node = Node { parts: before.to_vec(), span, ..effect.clone() };
                let resolved = self.resolve_value(&node)?;
                self.receiver_from_value(resolved, span)
            }
        }
    }

    /// Makes the receiver of a method from a value, which must be one row of an entity or a reference to one.
    fn receiver_from_value(&mut self, resolved: ResolvedValue, span: Span) -> Option<Receiver<'s>> {
        if resolved.many {
            let message = "a method is called on one row; `rows => …` calls it for each";
            self.report_error(codes::MANY_ROWS, span, message);
            return None;
        }
        let (catalog, entity, take) = match (&resolved.key, &resolved.value) {
            (Some(of), _) => (Some(&of.catalog), of.entity.as_str(), RowPart::Key(of.entity_ref())),
            (None, Some(value)) => match (&value.kind, &value.ref_catalog) {
                (Type::Ref(entity), Some(catalog)) => {
                    (Some(catalog), entity.as_str(), RowPart::Path(value.path.clone()))
                }
                _ => (None, "", RowPart::Path(Vec::new())),
            },
            (None, None) => (None, "", RowPart::Path(Vec::new())),
        };
        let Some(exposed) = catalog.and_then(|catalog| self.scope.find_exposed(catalog, entity)) else {
            let message = "a method is called on an entity, and this is none that the session knows";
            self.report_error(codes::WRONG_RECEIVER, span, message);
            return None;
        };
        Some(Receiver::Row(exposed, resolved.base.take(take, false)))
    }
}
