//! `=>`: a new row, or an effect, for each row.
//! Invariant: `_` is the row of the nearest `=>`; an effect for each row is one method, and nothing after it but postfixes.

use base::{Diagnostic, Edit, Span};
use catalog::Type;

use super::method::{Receiver, ReceiverCall};
use super::value::{ResolvedValue, ValueSource, reference_of};
use super::{Checker, MethodCall, NodeId, RowScope, RowType, TypedColumn};
use crate::codes;
use crate::ir::{Expr, RowPart, StepKind};
use crate::scope::ExposedEntity;
use crate::syntax::tree::{Entry, Node, Part, PartKind, Primary};

impl<'s> Checker<'s> {
    /// `rows => {title: _.p10}`
    pub(super) fn derive(&mut self, input: NodeId, object: &[Entry]) -> Option<NodeId> {
        let (mut values, mut columns) = (Vec::new(), Vec::<TypedColumn>::new());
        let mut is_valid = true;
        self.row_scopes.push(RowScope { space: self.current_space(), input });
        for entry in object {
            let name = &entry.key.text;
            if columns.iter().any(|c| c.name == *name) {
                self.error(codes::DUPLICATE_ARGUMENT, entry.key.span, format!("`{name}` names two columns"));
                is_valid = false;
            }
            match self.untyped(&entry.value) {
                Some(untyped) => {
                    columns.push(TypedColumn {
                        name: name.clone(),
                        kind: untyped.kind,
                        ref_catalog: untyped.ref_catalog,
                    });
                    values.push((name.to_string(), untyped.expr));
                }
                None => is_valid = false,
            }
        }
        let row = self.row_scopes.pop()?;
        if !is_valid {
            return None;
        }
        let rows = RowType::computed(columns, self.rows(input).many);
        Some(self.add_node(StepKind::Derive { input: row.input.0, object: values }, rows))
    }

    /// `rows => e1(…).m1(…)`
    pub(super) fn each_row(&mut self, input: NodeId, effect: &Node) -> Option<NodeId> {
        let last = effect.parts.split_last().and_then(|(last, before)| match &last.kind {
            PartKind::Method { name, args } => Some((name, args, (before, last.span))),
            _ => None,
        });
        let is_method = |part: &Part| matches!(part.kind, PartKind::Method { .. });
        let Some((name, args, (before, span))) = last.filter(|(.., (before, _))| !before.iter().any(is_method)) else {
            self.report_not_an_effect(effect);
            return None;
        };
        self.row_scopes.push(RowScope { space: self.current_space(), input });
        let written = MethodCall { name, args, span, receiver: Span { start: effect.span.start, end: span.start } };
        let receiver = self.receiver(effect, before);
        let made = receiver.and_then(|receiver| self.method(&ReceiverCall { receiver, written }));
        let row = self.row_scopes.pop()?;
        let (exposed, capability, args) = made?;
        self.call(exposed, capability, args, (Some(row.input), name.span))
    }

    fn report_not_an_effect(&mut self, effect: &Node) {
        let message =
            "after `=>` stands `{key: value}`, which makes a row of each row, or one method, which is called for each";
        // A path of the row, or a read for it, is a value of a new row.
        let name = match effect.parts.last().map(|part| &part.kind) {
            Some(PartKind::Follow { name, .. }) => name.text.clone(),
            _ => "value".into(),
        };
        let fix = Edit::replace(effect.span, format!("{{{name}: ")).append_original(effect.span).append("}");
        self.report(Diagnostic::error(codes::NOT_AN_EFFECT, effect.span, message).with_fix([fix]));
    }

    /// What a method after `=>` is called on; nothing is read for it.
    fn receiver(&mut self, effect: &Node, before: &[Part]) -> Option<Receiver<'s>> {
        match (&effect.primary, before) {
            (Primary::Name(name), []) if !self.is_label(name) => Some(Receiver::Type(self.entity(name)?)),
            (Primary::Get { entity, key }, []) => {
                let exposed = self.entity(entity)?;
                let args = self.key_args(exposed, (entity, key), effect.head)?;
                Some(Receiver::Instance(exposed, reference_of(exposed, args)?))
            }
            _ => {
                let span = before.last().map_or(effect.head, |last| effect.head.to(last.span));
                let node = Node { parts: before.to_vec(), span, ..effect.clone() };
                let found = self.resolve_value(&node)?;
                let (exposed, reference) = self.instance(found, span)?;
                Some(Receiver::Instance(exposed, reference))
            }
        }
    }

    /// The entity that was found, and the reference to it.
    pub(super) fn instance(&mut self, found: ResolvedValue, span: Span) -> Option<(&'s ExposedEntity, Expr)> {
        if found.many {
            let message = "a method is called on one row; `rows => …` calls it for each";
            self.error(codes::MANY_ROWS, span, message);
            return None;
        }
        let of = match (&found.key, &found.value) {
            (Some((ref_catalog, entity)), _) => {
                found.key_of().map(|of| (ref_catalog.clone(), entity.clone(), RowPart::Key(of)))
            }
            (None, Some((path, Type::Ref(entity), Some(ref_catalog)))) => {
                Some((ref_catalog.clone(), entity.into(), RowPart::Path(path.clone())))
            }
            _ => None,
        };
        let exposed = of.as_ref().and_then(|(ref_catalog, entity, _)| self.scope.find_exposed(ref_catalog, entity));
        let (Some((_, _, take)), Some(exposed)) = (of, exposed) else {
            let message = "a method is called on an entity, and this is none that the session knows";
            self.error(codes::WRONG_RECEIVER, span, message);
            return None;
        };
        let base: ValueSource = found.base;
        Some((exposed, base.take(take, false)))
    }
}
