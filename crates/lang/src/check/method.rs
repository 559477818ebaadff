//! Methods: `Ticket.open(…)` on an entity as a whole, `Ticket(…).close(…)` on one of it.
//! Invariant: an instance is named by its key and not read first; every argument is known and every required one given.

use base::Span;
use catalog::{Capability, Kind, Param};
use serde_json::Value as Json;
use smol_str::SmolStr;

use super::value::{is_null, reference_of};
use super::{Checker, MethodCall, NodeId};
use crate::codes;
use crate::ir::{Args, CapabilityRef, Expr, RowPart, StepDescription, StepKind};
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{self, Arg, EntityName, Key, Name};

/// What a method is called on.
#[derive(Debug, Clone)]
pub(super) enum Receiver<'s> {
    Type(&'s ExposedEntity),
    /// The reference to the instance.
    Instance(&'s ExposedEntity, Expr),
}

/// A method and what it is called on.
pub(super) struct ReceiverCall<'a, 's> {
    pub receiver: Receiver<'s>,
    pub written: MethodCall<'a>,
}

/// What is called, on what, with what.
type ResolvedCall<'s> = (&'s ExposedEntity, &'s Capability, Args);

impl<'s> Receiver<'s> {
    fn exposed(&self) -> &'s ExposedEntity {
        match self {
            Receiver::Type(exposed) | Receiver::Instance(exposed, _) => exposed,
        }
    }
}

impl<'s> Checker<'s> {
    pub(super) fn method_of_type(&mut self, exposed: &'s ExposedEntity, written: MethodCall<'_>) -> Option<NodeId> {
        let (exposed, capability, args) = self.method(&ReceiverCall { receiver: Receiver::Type(exposed), written })?;
        self.call(exposed, capability, args, (None, written.name.span))
    }

    pub(super) fn method_of_instance(
        &mut self,
        exposed: &'s ExposedEntity,
        (entity, key): (&EntityName, &Key),
        written: MethodCall<'_>,
    ) -> Option<NodeId> {
        let key = self.key_args(exposed, (entity, key), written.receiver)?;
        let receiver = Receiver::Instance(exposed, reference_of(exposed, key)?);
        let (exposed, capability, args) = self.method(&ReceiverCall { receiver, written })?;
        self.call(exposed, capability, args, (None, written.name.span))
    }

    pub(super) fn method_of_rows(&mut self, input: NodeId, written: MethodCall<'_>) -> Option<NodeId> {
        let name = written.name;
        let rows = self.rows(input).clone();
        let exposed = self.exposed_of(&rows);
        let whole = matches!(&self.checked_node(input).kind, StepKind::Query { args, .. } if args.is_empty());
        let known = exposed.and_then(|e| self.scope.method(e, &name.text));
        let of_type = known.is_some_and(|c| !c.needs_anchor());
        if known.is_none() && self.report_foreign_method(&rows, written) {
            return None;
        }
        if let (true, true, Some(exposed)) = (whole, of_type, exposed) {
            // `x = E` and then `x.open(…)` is `E.open(…)`.
            return self.method_of_type(exposed, written);
        }
        if let (true, Some(exposed), Some(capability)) = (rows.many && !of_type, exposed, known) {
            self.report_many_receivers(exposed, capability, written);
            return None;
        }
        let (Some(exposed), Some(of)) = (exposed, rows.entity_of()) else {
            let message = format!("`.{}(…)` is called on an entity, and these rows are of none", name.text);
            self.error(codes::WRONG_RECEIVER, written.span, message);
            return None;
        };
        let key = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
        let lost: Vec<&str> =
            key.iter().filter(|k| !rows.has_column(k) && !rows.has_unread_fields).map(String::as_str).collect();
        if !lost.is_empty() {
            let message =
                format!("`{}` starts from {}, which the projection before it left out", name.text, lost.join(", "));
            self.error(codes::UNKNOWN_FIELD, name.span, message);
            return None;
        }
        let reference =
            self.key_written(input).unwrap_or(Expr::Step { step: input.0, take: RowPart::Key(of), many: false });
        let receiver = Receiver::Instance(exposed, reference);
        let (exposed, capability, args) = self.method(&ReceiverCall { receiver, written })?;
        self.call(exposed, capability, args, (None, name.span))
    }

    /// The capability that a method is, with all that it is called with.
    pub(super) fn method(&mut self, method: &ReceiverCall<'_, 's>) -> Option<ResolvedCall<'s>> {
        let (exposed, written) = (method.receiver.exposed(), method.written);
        let style = NameStyle::of(&written.name.text);
        let Some(capability) = self.scope.method(exposed, &written.name.text) else {
            let rows = self.entity_rows(&exposed.catalog, &exposed.entity, true);
            if !matches!(method.receiver, Receiver::Type(_)) || !self.report_foreign_method(&rows, written) {
                self.report_unknown_method(exposed, written, style);
            }
            return None;
        };
        let mut args = match &method.receiver {
            Receiver::Type(_) if capability.needs_anchor() => {
                self.report_wrong_receiver(exposed, capability, written);
                return None;
            }
            Receiver::Instance(..) if !capability.needs_anchor() && capability.kind != Kind::Get => {
                self.report_wrong_receiver(exposed, capability, written);
                return None;
            }
            Receiver::Type(_) => Args::new(),
            Receiver::Instance(_, reference) => anchor(exposed, capability, reference),
        };
        let given = self.arguments(exposed, capability, method, style)?;
        args.extend(given);
        let key = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
        let needed = |p: &&Param| p.required || (capability.kind == Kind::Get && key.contains(&p.name));
        let missing: Vec<&Param> =
            capability.params.values().filter(needed).filter(|p| !args.contains_key(p.name.as_str())).collect();
        if !missing.is_empty() {
            self.report_missing_arguments(exposed, capability, written, &missing);
            return None;
        }
        Some((exposed, capability, args))
    }

    fn arguments(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        method: &ReceiverCall<'_, 's>,
        style: NameStyle,
    ) -> Option<Args> {
        match method.written.args {
            tree::Args::Slots(slots) => self.slot_arguments(exposed, capability, slots, style),
            tree::Args::Variant { name, args } => self.variant_argument(exposed, capability, (name, args)),
        }
    }

    fn slot_arguments(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        slots: &[Arg],
        style: NameStyle,
    ) -> Option<Args> {
        if self.reject_dots_in_args(exposed, capability, slots) {
            return None;
        }
        let slots = self.expand_dots_in_args(exposed, slots);
        let mut args = Args::new();
        let mut is_valid = true;
        for Arg { slot, value: written } in slots.iter() {
            let Some(param) = self.scope.param(&exposed.catalog, capability.params.values(), &slot.text) else {
                self.report_unknown_argument(exposed, capability, slot, style);
                is_valid = false;
                continue;
            };
            self.note_case_fix(slot, &param.name);
            let Some(value) = self.value(&exposed.catalog, &param.kind, written) else {
                is_valid = false;
                continue;
            };
            // `null` empties what an update sets; elsewhere nothing is there yet, and it is the same as leaving it out.
            if is_null(&value) && !capability.accepts_null(&param.name) {
                is_valid &= self.check_can_empty(capability, param, (slot, written));
                continue;
            }
            if args.insert(SmolStr::new(&param.name), value).is_some() {
                self.error(codes::DUPLICATE_ARGUMENT, slot.span, format!("`{}` is given twice", slot.text));
                is_valid = false;
            }
        }
        is_valid.then_some(args)
    }

    /// An update that cannot say `null` would keep the old value and seem to have emptied it. True where nothing is lost.
    fn check_can_empty(
        &mut self,
        capability: &Capability,
        param: &Param,
        (slot, value): (&Name, &tree::Value),
    ) -> bool {
        if capability.kind != Kind::Update || param.required {
            return true;
        }
        let message =
            format!("`{}` cannot be emptied: `.{}` has no way to say null", slot.text, capability.method_name());
        self.error(codes::WRONG_TYPE, value.span, message);
        false
    }

    /// `.m1(Circle{radius=1})`: the one parameter that takes an arm of this name.
    fn variant_argument(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        (name, args): (&Name, &[Arg]),
    ) -> Option<Args> {
        let unions: Vec<(&Param, &catalog::Union)> =
            capability.params.values().filter_map(|p| Some((p, self.arms(&p.kind)?))).collect();
        let has = |union: &catalog::Union| union.arms.keys().any(|arm| arm.eq_ignore_ascii_case(&name.text));
        let Some((param, union)) = unions.iter().find(|(_, union)| has(union)).or(unions.first()) else {
            let message =
                format!("`.{}` takes no arm of a union; arguments are `slot=value`", capability.method_name());
            self.error(codes::UNKNOWN_ARM, name.span, message);
            return None;
        };
        let arm = self.arm_of_args(Some(&exposed.catalog), union, (name, args), name.span)?;
        let arm = if matches!(param.kind, catalog::Type::Array(_)) { super::value::list_of_one(arm) } else { arm };
        Some(Args::from([(SmolStr::new(&param.name), arm)]))
    }

    /// The call itself: a read, an effect, or an effect for each row.
    pub(super) fn call(
        &mut self,
        exposed: &'s ExposedEntity,
        capability: &'s Capability,
        args: Args,
        (each, span): (Option<NodeId>, Span),
    ) -> Option<NodeId> {
        let call = CapabilityRef::new(&exposed.catalog, capability);
        if capability.kind.is_read() {
            if each.is_some() {
                let message =
                    format!("`.{}` is a read; for each row it stands in `=> {{name: …}}`", capability.method_name());
                self.error(codes::NOT_AN_EFFECT, span, message);
                return None;
            }
            let rows = self.capability_rows(&exposed.catalog, capability, false);
            return Some(self.add_node(StepKind::Get { call, args, fields: None }, rows));
        }
        if !self.effects_allowed() {
            let message =
                format!("`.{}` changes something and is no value; name it on a line before", capability.method_name());
            self.error(codes::EFFECT_AS_VALUE, span, message);
            return None;
        }
        let undo = capability.effect.as_ref().and_then(|e| e.undo.as_ref());
        let undo = undo.and_then(|name| exposed.catalog.capability(name)).map(|c| c.method_name().to_owned());
        let description = StepDescription { what: format!("{} {}", capability.method_name(), exposed.entity), undo };
        let rows = self.capability_rows(&exposed.catalog, capability, each.is_some());
        let each = each.map(|node| node.0);
        Some(self.add_effect(StepKind::Effect { call, args, each }, rows, description))
    }
}

/// The parts of the key that the instance fills.
fn anchor(exposed: &ExposedEntity, capability: &Capability, reference: &Expr) -> Args {
    let key = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
    let filled = |part: &&String| match capability.kind {
        Kind::Get => capability.params.contains_key(*part),
        _ => capability.anchor.contains(part),
    };
    key.iter().filter(filled).map(|part| (SmolStr::new(part), part_of(reference, part, key.len()))).collect()
}

/// One part of the key that a reference is.
fn part_of(reference: &Expr, part: &str, parts: usize) -> Expr {
    let inner = |take: &RowPart| match take {
        RowPart::Key(_) => RowPart::Path(vec![part.into()]),
        RowPart::Path(path) if parts == 1 => RowPart::Path(path.clone()),
        RowPart::Path(path) => RowPart::Path(path.iter().cloned().chain([part.into()]).collect()),
    };
    match reference {
        Expr::Value(Json::Object(map)) if parts > 1 => map.get(part).cloned().unwrap_or(Json::Null).into(),
        Expr::Object(pairs) => {
            let found = pairs.iter().find(|(name, _)| name == part);
            found.map_or(Json::Null.into(), |(_, value)| value.clone())
        }
        Expr::Step { step, take, many } => Expr::Step { step: *step, take: inner(take), many: *many },
        Expr::Row(take) => Expr::Row(inner(take)),
        Expr::Read { steps, take } => Expr::Read { steps: steps.clone(), take: inner(take) },
        other => other.clone(),
    }
}
