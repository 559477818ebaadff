//! Corrects method calls that have a wrong receiver, wrong arguments or a wrong name.
//! Invariant: the arguments that the author wrote stay. Missing arguments are added behind the written ones.

use base::{Diagnostic, Edit, similar_names};
use catalog::{Capability, Kind, Param};

use super::super::{Checker, MethodCall};
use super::{MAX_PARAMS_SHOWN, list_all_names, list_append_edit, rename_edit};
use crate::codes;
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{MethodArgs, Name, ValueKind};

impl Checker<'_> {
    /// Returns the edits that add missing arguments behind the written arguments.
    pub(in crate::check) fn missing_argument_edits(
        &self,
        exposed: &ExposedEntity,
        capability: &Capability,
        call: MethodCall<'_>,
        missing: &[&Param],
    ) -> Vec<Edit> {
        if missing.is_empty() {
            return Vec::new();
        }
        let style = NameStyle::of(&call.name.text);
        // An argument that was written as `null` gets a value in its place. A second argument of the same name would
        // be a mistake.
        let null_argument = |p: &&&Param| match call.args {
            MethodArgs::Slots(slots) => slots.iter().find(|arg| {
                arg.value.kind == ValueKind::Null && self.scope.wire_name(&exposed.catalog, &arg.slot.text) == p.name
            }),
            MethodArgs::Variant { .. } => None,
        };
        let fill_null = |p: &&Param| {
            let sample = self.write_sample(&exposed.catalog, &p.kind, style);
            null_argument(&p).map(|arg| Edit::replace(arg.value.span, sample))
        };
        let mut edits: Vec<Edit> = missing.iter().filter_map(fill_null).collect();
        let missing_slots = missing.iter().filter(|p| null_argument(p).is_none()).copied();
        let missing_slots = self.write_slot_samples(exposed, missing_slots, style);
        let end = call.span.end.saturating_sub(1);
        match call.args {
            MethodArgs::Slots(slots) => {
                edits.extend(
                    (!missing_slots.is_empty())
                        .then(|| list_append_edit(slots.last().map(|arg| arg.value.span), end, &missing_slots)),
                );
                edits
            }
            // The call has one arm of a union without a slot name, which is allowed only for a single argument. The
            // correction adds arguments, so it also writes the slot's name before the arm.
            MethodArgs::Variant { name, .. } => {
                let union_param = capability.params.values().find(|p| self.union_of_slot(&p.kind).is_some());
                let slot =
                    union_param.map(|p| format!("{}=", self.scope.styled_slot(&exposed.catalog, &p.name, style)));
                let name_slot = Edit::insert(name.span.start, slot.unwrap_or_default());
                vec![name_slot, Edit::insert(end, format!(", {missing_slots}"))]
            }
        }
    }

    /// Returns the required parameters that the call does not mention.
    fn unmentioned_params<'p>(
        &self,
        exposed: &ExposedEntity,
        capability: &'p Capability,
        args: &MethodArgs,
    ) -> Vec<&'p Param> {
        let mentions = |param: &Param| match args {
            MethodArgs::Slots(slots) => {
                slots.iter().any(|arg| self.scope.wire_name(&exposed.catalog, &arg.slot.text) == param.name)
            }
            MethodArgs::Variant { .. } => self.union_of_slot(&param.kind).is_some(),
        };
        capability.required().filter(|p| !mentions(p)).collect()
    }

    /// Reports the required parameters that have no value.
    pub(in crate::check) fn report_missing_arguments(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        call: MethodCall<'_>,
        missing: &[&Param],
    ) {
        let style = NameStyle::of(&call.name.text);
        let name = |p: &&Param| format!("`{}`", self.scope.styled_slot(&exposed.catalog, &p.name, style));
        let names: Vec<String> = missing.iter().map(name).collect();
        let message = format!("`.{}` needs {}", call.name.text, names.join(", "));
        let fix = self.missing_argument_edits(exposed, capability, call, missing);
        self.report(Diagnostic::error(codes::MISSING_ARGUMENT, call.name.span, message).with_fix(fix));
    }

    /// Reports a method that is called on many rows. The correction calls the method for each row.
    pub(in crate::check) fn report_many_receivers(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        call: MethodCall<'_>,
    ) {
        let message =
            format!("`.{}(…)` is called on one row and these are many; `=>` calls it for each", call.name.text);
        let missing = self.unmentioned_params(exposed, capability, call.args);
        let mut fix = vec![Edit::insert(call.span.start, " => _")];
        fix.extend(self.missing_argument_edits(exposed, capability, call, &missing));
        self.report(Diagnostic::error(codes::MANY_ROWS, call.span, message).with_fix(fix));
    }

    /// Reports a method of one row that is called on the entity, or a method of the entity that is called on one row.
    pub(in crate::check) fn report_wrong_receiver(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        call: MethodCall<'_>,
    ) {
        let style = NameStyle::of(&call.name.text);
        let entity = exposed.styled_name(style);
        let (message, receiver) = if capability.needs_anchor() {
            (
                format!("`.{}` is done to one {entity}; say to which", call.name.text),
                self.write_key_sample(exposed, style),
            )
        } else {
            (format!("`.{}` belongs to {entity} as a whole, not to one of it", call.name.text), entity.to_owned())
        };
        let missing = self.unmentioned_params(exposed, capability, call.args);
        let mut fix = vec![Edit::replace(call.receiver_span, receiver)];
        fix.extend(self.missing_argument_edits(exposed, capability, call, &missing));
        self.report(Diagnostic::error(codes::WRONG_RECEIVER, call.name.span, message).with_fix(fix));
    }

    /// Reports a method name that the session does not know, because the method was not taught or the name is wrong.
    pub(in crate::check) fn report_unknown_method(
        &mut self,
        exposed: &ExposedEntity,
        call: MethodCall<'_>,
        style: NameStyle,
    ) {
        let name = call.name;
        let plain = |text: &str| text.replace('-', "_").to_ascii_lowercase();
        let wanted = plain(&name.text);
        let untaught = exposed
            .catalog
            .methods(&exposed.entity)
            .find(|c| plain(c.method_name()) == wanted || plain(&c.name) == wanted);
        if let Some(capability) = untaught {
            let message = format!("`.{}` was not taught to this session; add it to the seeds", name.text);
            let copy = format!(
                "{{\"api\": \"{}\", \"entity\": \"{}\", \"capabilities\": [\"{}\"]}}",
                exposed.catalog.id, exposed.entity, capability.name
            );
            self.report(Diagnostic::error(codes::NOT_TAUGHT, name.span, message).with_copy(copy));
            return;
        }
        let taught: Vec<&Capability> = exposed.methods.values().filter_map(|m| exposed.catalog.capability(m)).collect();
        let known: Vec<String> = taught.iter().map(|c| self.scope.styled_method(exposed, c, style)).collect();
        let entity = exposed.styled_name(style);
        let message = if known.is_empty() {
            format!("no method `{}` on {entity}: this session was taught none", name.text)
        } else {
            format!("no method `{}` on {entity}", name.text)
        };
        let alternatives = similar_names(&name.text, known.iter().map(String::as_str));
        let mut fix: Vec<Edit> = Vec::new();
        if let Some(capability) = find_method_by_synonym(&wanted, &taught) {
            let missing = self.unmentioned_params(exposed, capability, call.args);
            fix.push(Edit::replace(name.span, self.scope.styled_method(exposed, capability, style)));
            fix.extend(self.missing_argument_edits(exposed, capability, call, &missing));
        } else {
            fix.extend(rename_edit(name, known.iter().map(String::as_str)));
        }
        let diagnostic = Diagnostic::error(codes::UNKNOWN_METHOD, name.span, message);
        self.report(diagnostic.with_alternatives(alternatives).with_fix(fix));
    }

    /// Reports an argument name that the method does not have.
    pub(in crate::check) fn report_unknown_argument(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        slot: &Name,
        style: NameStyle,
    ) {
        let method = self.scope.styled_method(exposed, capability, style);
        let wire = self.scope.wire_name(&exposed.catalog, &slot.text);
        let fix = rename_edit(slot, capability.params.keys().map(String::as_str));
        let message = if capability.anchor.iter().any(|part| part == wire) {
            format!("`{}` says which {} it is: it stands before `.{method}`", slot.text, exposed.styled_name(style))
        } else if capability.params.is_empty() {
            format!("`.{method}` takes no arguments, so `{}` is not one", slot.text)
        } else {
            let all = list_all_names(capability.params.keys().map(String::as_str), MAX_PARAMS_SHOWN, fix.as_ref());
            format!("no argument `{}` of `.{method}`{all}", slot.text)
        };
        let params: Vec<&Param> = capability.params.values().collect();
        let alternatives: Vec<String> = similar_names(&slot.text, params.iter().map(|p| p.name.as_str()))
            .iter()
            .filter_map(|name| params.iter().find(|p| &p.name == name))
            .map(|p| self.describe_slot(exposed, p, style))
            .collect();
        let diagnostic = Diagnostic::error(codes::UNKNOWN_ARGUMENT, slot.span, message);
        self.report(diagnostic.with_alternatives(alternatives).with_fix(fix));
    }

    /// Reports a method that is written without parentheses.
    pub(in crate::check) fn report_bare_method(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        name: &Name,
    ) {
        let message = format!("`{}` is a method: it takes parentheses", name.text);
        let slots = self.write_slot_samples(exposed, capability.required(), NameStyle::of(&name.text));
        let fix = Edit::insert(name.span.end, format!("({slots})"));
        self.report(Diagnostic::error(codes::UNKNOWN_RELATION, name.span, message).with_fix([fix]));
    }
}

/// Finds the method that a name of another API means, such as `edit` for an update. Returns `None` unless exactly one
/// taught method has that kind.
fn find_method_by_synonym<'c>(wanted: &str, taught: &[&'c Capability]) -> Option<&'c Capability> {
    let kind = match wanted {
        "create" | "new" | "add" | "insert" | "post" | "make" => Kind::Create,
        "update" | "edit" | "set" | "patch" | "change" | "modify" | "save" => Kind::Update,
        "delete" | "remove" | "destroy" | "drop" => Kind::Delete,
        _ => return None,
    };
    let mut of_kind = taught.iter().copied().filter(|c| c.kind == kind);
    let first = of_kind.next()?;
    of_kind.next().is_none().then_some(first)
}
