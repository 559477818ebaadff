//! Checks method calls: `Ticket.open(…)` on an entity, and `Ticket(…).close(…)` on one row.
//! Invariant: a row that is named by its key is not read before the call. Every argument is known, and every required
//! argument is given.

use base::Span;
use catalog::{Capability, Kind, Param};
use serde_json::Value as Json;
use smol_str::SmolStr;

use super::value::{is_null, reference_of};
use super::{Checker, MethodCall, NodeId};
use crate::codes;
use crate::ir::{Args, CapabilityRef, Expr, RowPart, StepDescription, StepKind};
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{Arg, EntityName, Key, MethodArgs, Name, Value};

/// The receiver of a method call.
#[derive(Debug, Clone)]
pub(super) enum Receiver<'s> {
    /// The entity itself, as in `Ticket.open(…)`.
    Entity(&'s ExposedEntity),
    /// One row of an entity, and the reference to the row.
    Row(&'s ExposedEntity, Expr),
}

/// A method call whose capability and arguments have been resolved.
pub(super) struct ResolvedMethod<'s> {
    pub exposed: &'s ExposedEntity,
    pub capability: &'s Capability,
    pub args: Args,
}

impl<'s> Receiver<'s> {
    /// Returns the entity of the receiver.
    fn exposed(&self) -> &'s ExposedEntity {
        match self {
            Receiver::Entity(exposed) | Receiver::Row(exposed, _) => exposed,
        }
    }
}

impl<'s> Checker<'s> {
    /// Checks a call on an entity, such as `Ticket.open(…)`.
    pub(super) fn check_method_of_entity(
        &mut self,
        exposed: &'s ExposedEntity,
        call: MethodCall<'_>,
    ) -> Option<NodeId> {
        let method = self.resolve_method(&Receiver::Entity(exposed), call)?;
        self.add_call(method, None, call.name.span)
    }

    /// Checks a call on a row that is named by its key, such as `Ticket(…).close(…)`.
    pub(super) fn check_method_of_row(
        &mut self,
        exposed: &'s ExposedEntity,
        entity: &EntityName,
        key: &Key,
        call: MethodCall<'_>,
    ) -> Option<NodeId> {
        let key = self.check_key_args(exposed, entity, key, call.receiver_span)?;
        let receiver = Receiver::Row(exposed, reference_of(exposed, key)?);
        let method = self.resolve_method(&receiver, call)?;
        self.add_call(method, None, call.name.span)
    }

    /// Checks `rows.close(…)`, where `rows` is a label or a longer expression.
    pub(super) fn check_method_of_rows(&mut self, input: NodeId, call: MethodCall<'_>) -> Option<NodeId> {
        let name = call.name;
        let rows = self.rows(input).clone();
        let exposed = self.exposed_entity_of(&rows);
        let is_whole_list = matches!(&self.checked_node(input).kind, StepKind::Query { args, .. } if args.is_empty());
        let known = exposed.and_then(|e| self.scope.method(e, &name.text));
        let is_method_of_type = known.is_some_and(|c| !c.needs_anchor());
        if known.is_none() && self.report_foreign_method(&rows, call) {
            return None;
        }
        if let (true, true, Some(exposed)) = (is_whole_list, is_method_of_type, exposed) {
            // `x = E` and then `x.open(…)` means `E.open(…)`.
            return self.check_method_of_entity(exposed, call);
        }
        if let (true, Some(exposed), Some(capability)) = (rows.many && !is_method_of_type, exposed, known) {
            self.report_many_receivers(exposed, capability, call);
            return None;
        }
        let (Some(exposed), Some(of)) = (exposed, rows.entity_ref()) else {
            let message = format!("`.{}(…)` is called on an entity, and these rows are of none", name.text);
            self.report_error(codes::WRONG_RECEIVER, call.span, message);
            return None;
        };
        let key = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
        let missing_key_fields: Vec<&str> =
            key.iter().filter(|k| !rows.has_column(k) && !rows.has_unread_fields).map(String::as_str).collect();
        if !missing_key_fields.is_empty() {
            let message = format!(
                "`{}` starts from {}, which the projection before it left out",
                name.text,
                missing_key_fields.join(", ")
            );
            self.report_error(codes::UNKNOWN_FIELD, name.span, message);
            return None;
        }
        let reference =
            self.written_key(input).unwrap_or(Expr::Step { step: input.0, take: RowPart::Key(of), many: false });
        let method = self.resolve_method(&Receiver::Row(exposed, reference), call)?;
        self.add_call(method, None, name.span)
    }

    /// Finds the capability of a method call and checks the arguments.
    pub(super) fn resolve_method(
        &mut self,
        receiver: &Receiver<'s>,
        call: MethodCall<'_>,
    ) -> Option<ResolvedMethod<'s>> {
        let exposed = receiver.exposed();
        let style = NameStyle::of(&call.name.text);
        let Some(capability) = self.scope.method(exposed, &call.name.text) else {
            let rows = self.row_type_of_entity(&exposed.catalog, &exposed.entity, true);
            if !matches!(receiver, Receiver::Entity(_)) || !self.report_foreign_method(&rows, call) {
                self.report_unknown_method(exposed, call, style);
            }
            return None;
        };
        let mut args = match receiver {
            Receiver::Entity(_) if capability.needs_anchor() => {
                self.report_wrong_receiver(exposed, capability, call);
                return None;
            }
            Receiver::Row(..) if !capability.needs_anchor() && capability.kind != Kind::Get => {
                self.report_wrong_receiver(exposed, capability, call);
                return None;
            }
            Receiver::Entity(_) => Args::new(),
            Receiver::Row(_, reference) => args_from_receiver_key(exposed, capability, reference),
        };
        let given_args = match call.args {
            MethodArgs::Slots(slots) => self.check_slot_arguments(exposed, capability, slots, style),
            MethodArgs::Variant { name, args } => self.check_variant_argument(exposed, capability, name, args),
        };
        args.extend(given_args?);
        let key = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
        let is_needed = |p: &&Param| p.required || (capability.kind == Kind::Get && key.contains(&p.name));
        let missing: Vec<&Param> =
            capability.params.values().filter(is_needed).filter(|p| !args.contains_key(p.name.as_str())).collect();
        if !missing.is_empty() {
            self.report_missing_arguments(exposed, capability, call, &missing);
            return None;
        }
        Some(ResolvedMethod { exposed, capability, args })
    }

    /// Checks arguments of the form `slot=value`.
    fn check_slot_arguments(
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
        for Arg { slot, value: written_value } in slots.iter() {
            let Some(param) = self.scope.param(&exposed.catalog, capability.params.values(), &slot.text) else {
                self.report_unknown_argument(exposed, capability, slot, style);
                is_valid = false;
                continue;
            };
            self.note_case_fix(slot, &param.name);
            let Some(value) = self.check_value(&exposed.catalog, &param.kind, written_value) else {
                is_valid = false;
                continue;
            };
            // An update sends `null` to empty the field. In other calls, an argument with `null` is left out.
            if is_null(&value) && !capability.accepts_null(&param.name) {
                is_valid &= self.check_can_empty(capability, param, slot, written_value);
                continue;
            }
            if args.insert(SmolStr::new(&param.name), value).is_some() {
                self.report_error(codes::DUPLICATE_ARGUMENT, slot.span, format!("`{}` is given twice", slot.text));
                is_valid = false;
            }
        }
        is_valid.then_some(args)
    }

    /// Reports `null` in an update that cannot send `null`: the field would keep its old value, and the author would
    /// believe that it was emptied. Returns whether the argument may be left out.
    fn check_can_empty(&mut self, capability: &Capability, param: &Param, slot: &Name, value: &Value) -> bool {
        if capability.kind != Kind::Update || param.required {
            return true;
        }
        let message =
            format!("`{}` cannot be emptied: `.{}` has no way to say null", slot.text, capability.method_name());
        self.report_error(codes::WRONG_TYPE, value.span, message);
        false
    }

    /// Checks the argument of `.m1(Circle{radius=1})`: an arm for the one parameter whose union has an arm of this
    /// name.
    fn check_variant_argument(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        name: &Name,
        args: &[Arg],
    ) -> Option<Args> {
        let unions: Vec<(&Param, &catalog::Union)> =
            capability.params.values().filter_map(|p| Some((p, self.union_of_slot(&p.kind)?))).collect();
        let has_arm = |union: &catalog::Union| union.arms.keys().any(|arm| arm.eq_ignore_ascii_case(&name.text));
        let Some((param, union)) = unions.iter().find(|(_, union)| has_arm(union)).or(unions.first()) else {
            let message =
                format!("`.{}` takes no arm of a union; arguments are `slot=value`", capability.method_name());
            self.report_error(codes::UNKNOWN_ARM, name.span, message);
            return None;
        };
        let arm = self.check_arm_of_args(Some(&exposed.catalog), union, name, args, name.span)?;
        let arm = if matches!(param.kind, catalog::Type::Array(_)) { super::value::list_of_one(arm) } else { arm };
        Some(Args::from([(SmolStr::new(&param.name), arm)]))
    }

    /// Adds the node of a method call: a read, one effect, or one effect for each row of `each`.
    pub(super) fn add_call(&mut self, method: ResolvedMethod<'s>, each: Option<NodeId>, span: Span) -> Option<NodeId> {
        let ResolvedMethod { exposed, capability, args } = method;
        let call = CapabilityRef::new(&exposed.catalog, capability);
        if capability.kind.is_read() {
            if each.is_some() {
                let message =
                    format!("`.{}` is a read; for each row it stands in `=> {{name: …}}`", capability.method_name());
                self.report_error(codes::NOT_AN_EFFECT, span, message);
                return None;
            }
            let rows = self.row_type_of_capability(&exposed.catalog, capability, false);
            return Some(self.add_node(StepKind::Get { call, args, fields: None }, rows));
        }
        if !self.effects_allowed() {
            let message =
                format!("`.{}` changes something and is no value; name it on a line before", capability.method_name());
            self.report_error(codes::EFFECT_AS_VALUE, span, message);
            return None;
        }
        let undo = capability.effect.as_ref().and_then(|e| e.undo.as_ref());
        let undo = undo.and_then(|name| exposed.catalog.capability(name)).map(|c| c.method_name().to_owned());
        let description = StepDescription { what: format!("{} {}", capability.method_name(), exposed.entity), undo };
        let rows = self.row_type_of_capability(&exposed.catalog, capability, each.is_some());
        let each = each.map(|node| node.0);
        Some(self.add_effect(StepKind::Effect { call, args, each }, rows, description))
    }
}

/// Returns the arguments that the key of the receiver fills.
fn args_from_receiver_key(exposed: &ExposedEntity, capability: &Capability, reference: &Expr) -> Args {
    let key = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
    let is_filled = |part: &&String| match capability.kind {
        Kind::Get => capability.params.contains_key(*part),
        _ => capability.anchor.contains(part),
    };
    key.iter()
        .filter(is_filled)
        .map(|part| (SmolStr::new(part), key_part_of_reference(reference, part, key.len())))
        .collect()
}

/// Returns one part of the key that a reference contains. `parts` is the number of parts of the key.
fn key_part_of_reference(reference: &Expr, part: &str, part_count: usize) -> Expr {
    let part_of_row = |take: &RowPart| match take {
        RowPart::Key(_) => RowPart::Path(vec![part.into()]),
        RowPart::Path(path) if part_count == 1 => RowPart::Path(path.clone()),
        RowPart::Path(path) => RowPart::Path(path.iter().cloned().chain([part.into()]).collect()),
    };
    match reference {
        Expr::Value(Json::Object(map)) if part_count > 1 => map.get(part).cloned().unwrap_or(Json::Null).into(),
        Expr::Object(pairs) => {
            let pair = pairs.iter().find(|(name, _)| name == part);
            pair.map_or(Json::Null.into(), |(_, value)| value.clone())
        }
        Expr::Step { step, take, many } => Expr::Step { step: *step, take: part_of_row(take), many: *many },
        Expr::Row(take) => Expr::Row(part_of_row(take)),
        Expr::Read { steps, take } => Expr::Read { steps: steps.clone(), take: part_of_row(take) },
        other => other.clone(),
    }
}
