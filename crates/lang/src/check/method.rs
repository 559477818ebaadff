//! Methods: `Ticket.open(…)` on an entity as a whole, `Ticket(…).close(…)` on one of it.
//! Invariant: an instance is named by its key and not read first; every argument is known and every required one given.

use base::{Diagnostic, Span, near};
use catalog::{Capability, Kind, Param};
use serde_json::Value as Json;
use smol_str::SmolStr;

use super::path::alphabet_of;
use super::source::called;
use super::value::{is_null, reference_of};
use super::{Cx, NodeId};
use crate::codes;
use crate::ir::{Args, Expr, Says, StepKind, Take};
use crate::scope::{Alphabet, Exposed};
use crate::syntax::tree::{self, Arg, EntityName, Key, Name};

/// What a method is called on.
#[derive(Debug, Clone)]
pub(super) enum Receiver<'s> {
    Type(&'s Exposed),
    /// The reference to the instance.
    Instance(&'s Exposed, Expr),
}

/// `.name(args)` as written.
pub(super) struct Method<'a, 's> {
    pub receiver: Receiver<'s>,
    pub name: &'a Name,
    pub args: &'a tree::Args,
}

/// What is called, on what, with what.
type Bound<'s> = (&'s Exposed, &'s Capability, Args);

impl<'s> Receiver<'s> {
    fn exposed(&self) -> &'s Exposed {
        match self {
            Receiver::Type(exposed) | Receiver::Instance(exposed, _) => exposed,
        }
    }
}

impl<'s> Cx<'s> {
    pub(super) fn method_of_type(&mut self, exposed: &'s Exposed, name: &Name, args: &tree::Args) -> Option<NodeId> {
        let (exposed, capability, args) = self.method(&Method { receiver: Receiver::Type(exposed), name, args })?;
        self.call(exposed, capability, args, (None, name.span))
    }

    pub(super) fn method_of_instance(
        &mut self,
        exposed: &'s Exposed,
        (entity, key): (&EntityName, &Key),
        (name, args): (&Name, &tree::Args),
        span: Span,
    ) -> Option<NodeId> {
        let key = self.key_args(exposed, key, super::source::alphabet_of(entity), span)?;
        let receiver = Receiver::Instance(exposed, reference_of(exposed, key)?);
        let (exposed, capability, args) = self.method(&Method { receiver, name, args })?;
        self.call(exposed, capability, args, (None, name.span))
    }

    pub(super) fn method_of_rows(
        &mut self,
        input: NodeId,
        name: &Name,
        args: &tree::Args,
        span: Span,
    ) -> Option<NodeId> {
        let rows = self.rows(input).clone();
        let exposed = self.exposed_of(&rows);
        let whole = matches!(&self.at(input).kind, StepKind::Query { args, .. } if args.is_empty());
        let of_type = exposed.and_then(|e| self.scope.method(e, &name.text)).is_some_and(|c| !c.needs_anchor());
        if let (true, true, Some(exposed)) = (whole, of_type, exposed) {
            // `x = E` and then `x.open(…)` is `E.open(…)`.
            return self.method_of_type(exposed, name, args);
        }
        if let (true, Some(exposed)) = (rows.many && !of_type, exposed) {
            self.for_each(input, exposed, name, span);
            return None;
        }
        let (Some(exposed), Some(of)) = (exposed, rows.entity_of()) else {
            let message = format!("`.{}(…)` is called on an entity, and these rows are of none", name.text);
            self.error(codes::WRONG_RECEIVER, span, message);
            return None;
        };
        let key = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
        let lost: Vec<&str> = key.iter().filter(|k| !rows.has(k) && !rows.beyond).map(String::as_str).collect();
        if !lost.is_empty() {
            let message =
                format!("`{}` starts from {}, which the projection before it left out", name.text, lost.join(", "));
            self.error(codes::UNKNOWN_FIELD, name.span, message);
            return None;
        }
        let reference =
            self.key_written(input).unwrap_or(Expr::Step { step: input.0, take: Take::Key(of), many: false });
        let receiver = Receiver::Instance(exposed, reference);
        let (exposed, capability, args) = self.method(&Method { receiver, name, args })?;
        self.call(exposed, capability, args, (None, name.span))
    }

    /// Many rows: what would do it for each of them.
    fn for_each(&mut self, input: NodeId, exposed: &Exposed, name: &Name, span: Span) {
        let alphabet = alphabet_of(&name.text);
        let label = self.at(input).label.clone().unwrap_or_else(|| "rows".into());
        let key: Vec<String> = exposed
            .definition()
            .into_iter()
            .flat_map(|e| e.key.iter())
            .map(|k| self.scope.slot_in(&exposed.catalog, k, alphabet))
            .map(|slot| format!("{slot}=_.{slot}"))
            .collect();
        let args = self.scope.method(exposed, &name.text).map(|c| self.slot_samples(exposed, c.required(), alphabet));
        let copy = format!(
            "{label} => {}({}).{}({})",
            exposed.name_in(alphabet),
            key.join(", "),
            name.text,
            args.unwrap_or_default()
        );
        let message = format!("`.{}(…)` is called on one row and these are many; `=>` calls it for each", name.text);
        self.report(Diagnostic::error(codes::MANY_ROWS, span, message).with_copy(copy));
    }

    /// The capability that a method is, with all that it is called with.
    pub(super) fn method(&mut self, method: &Method<'_, 's>) -> Option<Bound<'s>> {
        let exposed = method.receiver.exposed();
        let alphabet = alphabet_of(&method.name.text);
        let Some(capability) = self.scope.method(exposed, &method.name.text) else {
            self.unknown_method(exposed, method.name, alphabet);
            return None;
        };
        let mut args = match &method.receiver {
            Receiver::Type(_) if capability.needs_anchor() => {
                self.wrong_receiver(exposed, capability, method.name, alphabet);
                return None;
            }
            Receiver::Instance(..) if !capability.needs_anchor() && capability.kind != Kind::Get => {
                self.wrong_receiver(exposed, capability, method.name, alphabet);
                return None;
            }
            Receiver::Type(_) => Args::new(),
            Receiver::Instance(_, reference) => anchor(exposed, capability, reference),
        };
        let given = self.arguments(exposed, capability, method, alphabet)?;
        args.extend(given);
        let missing: Vec<&Param> = capability.required().filter(|p| !args.contains_key(p.name.as_str())).collect();
        let key_missing = capability.kind == Kind::Get
            && exposed.definition().is_some_and(|e| {
                e.key.iter().any(|k| capability.params.contains_key(k) && !args.contains_key(k.as_str()))
            });
        if !missing.is_empty() || key_missing {
            let copy = self.call_sample(exposed, capability, alphabet);
            let names: Vec<String> = missing
                .iter()
                .map(|p| format!("`{}`", self.scope.slot_in(&exposed.catalog, &p.name, alphabet)))
                .collect();
            let needs = if names.is_empty() { "its key".to_owned() } else { names.join(", ") };
            let message = format!("`.{}` needs {needs}", method.name.text);
            self.report(Diagnostic::error(codes::MISSING_ARGUMENT, method.name.span, message).with_copy(copy));
            return None;
        }
        Some((exposed, capability, args))
    }

    fn unknown_method(&mut self, exposed: &Exposed, name: &Name, alphabet: Alphabet) {
        let plain = |text: &str| text.replace('-', "_").to_ascii_lowercase();
        let wanted = plain(&name.text);
        let hidden = exposed
            .catalog
            .methods(&exposed.entity)
            .find(|c| plain(c.method_name()) == wanted || plain(&c.name) == wanted);
        if let Some(capability) = hidden {
            let message = format!("`.{}` was not taught to this session; add it to the seeds", name.text);
            let copy = format!(
                "{{\"api\": \"{}\", \"entity\": \"{}\", \"capabilities\": [\"{}\"]}}",
                exposed.catalog.id, exposed.entity, capability.name
            );
            self.report(Diagnostic::error(codes::NOT_TAUGHT, name.span, message).with_copy(copy));
            return;
        }
        let taught = exposed.methods.values().filter_map(|m| exposed.catalog.capability(m));
        let known: Vec<String> = taught.map(|c| self.scope.method_in(exposed, c, alphabet)).collect();
        let entity = exposed.name_in(alphabet);
        let message = if known.is_empty() {
            format!("no method `{}` on {entity}: this session was taught none", name.text)
        } else {
            format!("no method `{}` on {entity}", name.text)
        };
        let alternatives = near(&name.text, known.iter().map(String::as_str));
        self.report(Diagnostic::error(codes::UNKNOWN_METHOD, name.span, message).with_alternatives(alternatives));
    }

    fn wrong_receiver(&mut self, exposed: &Exposed, capability: &Capability, name: &Name, alphabet: Alphabet) {
        let entity = exposed.name_in(alphabet);
        let message = if capability.needs_anchor() {
            format!("`.{}` is done to one {entity}; say to which", name.text)
        } else {
            format!("`.{}` belongs to {entity} as a whole, not to one of it", name.text)
        };
        let copy = self.call_sample(exposed, capability, alphabet);
        self.report(Diagnostic::error(codes::WRONG_RECEIVER, name.span, message).with_copy(copy));
    }

    /// `Ticket(project="words", number=1).close(note="words")`, to copy and change.
    fn call_sample(&self, exposed: &Exposed, capability: &Capability, alphabet: Alphabet) -> String {
        let receiver = if capability.needs_anchor() {
            self.key_sample(exposed, alphabet)
        } else {
            exposed.name_in(alphabet).to_owned()
        };
        let key = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
        let needed = capability
            .params
            .values()
            .filter(|p| p.required || (capability.kind == Kind::Get && key.contains(&p.name)));
        let method = self.scope.method_in(exposed, capability, alphabet);
        format!("{receiver}.{method}({})", self.slot_samples(exposed, needed, alphabet))
    }

    fn arguments(
        &mut self,
        exposed: &Exposed,
        capability: &Capability,
        method: &Method<'_, 's>,
        alphabet: Alphabet,
    ) -> Option<Args> {
        match method.args {
            tree::Args::Slots(slots) => self.slot_arguments(exposed, capability, slots, alphabet),
            tree::Args::Variant { name, args } => self.variant_argument(exposed, capability, (name, args)),
        }
    }

    fn slot_arguments(
        &mut self,
        exposed: &Exposed,
        capability: &Capability,
        slots: &[Arg],
        alphabet: Alphabet,
    ) -> Option<Args> {
        let mut args = Args::new();
        let mut right = true;
        for Arg { slot, value } in slots {
            let Some(param) = self.scope.param(&exposed.catalog, capability.params.values(), &slot.text) else {
                self.unknown_argument(exposed, capability, slot, alphabet);
                right = false;
                continue;
            };
            self.mended(slot, &param.name);
            let Some(value) = self.value(&exposed.catalog, &param.kind, value) else {
                right = false;
                continue;
            };
            // `null` is the same as leaving the argument out.
            if is_null(&value) {
                continue;
            }
            if args.insert(SmolStr::new(&param.name), value).is_some() {
                self.error(codes::DUPLICATE_ARGUMENT, slot.span, format!("`{}` is given twice", slot.text));
                right = false;
            }
        }
        right.then_some(args)
    }

    fn unknown_argument(&mut self, exposed: &Exposed, capability: &Capability, slot: &Name, alphabet: Alphabet) {
        let method = self.scope.method_in(exposed, capability, alphabet);
        let wire = self.scope.slot_name(&exposed.catalog, &slot.text);
        let message = if capability.anchor.iter().any(|part| part == wire) {
            format!("`{}` says which {} it is: it stands before `.{method}`", slot.text, exposed.name_in(alphabet))
        } else if capability.params.is_empty() {
            format!("`.{method}` takes no arguments, so `{}` is not one", slot.text)
        } else {
            format!("no argument `{}` of `.{method}`", slot.text)
        };
        let params: Vec<&Param> = capability.params.values().collect();
        let alternatives: Vec<String> = near(&slot.text, params.iter().map(|p| p.name.as_str()))
            .iter()
            .filter_map(|name| params.iter().find(|p| &p.name == name))
            .map(|p| self.describe_slot(exposed, p, alphabet))
            .collect();
        self.report(Diagnostic::error(codes::UNKNOWN_ARGUMENT, slot.span, message).with_alternatives(alternatives));
    }

    /// `.m1(Circle{radius=1})`: the one parameter that takes an arm of this name.
    fn variant_argument(
        &mut self,
        exposed: &Exposed,
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
        let arm = if matches!(param.kind, catalog::Type::Array(_)) { super::value::listed(arm) } else { arm };
        Some(Args::from([(SmolStr::new(&param.name), arm)]))
    }

    /// The call itself: a read, an effect, or an effect for each row.
    pub(super) fn call(
        &mut self,
        exposed: &'s Exposed,
        capability: &'s Capability,
        args: Args,
        (each, span): (Option<NodeId>, Span),
    ) -> Option<NodeId> {
        let call = called(exposed, capability);
        if capability.kind.is_read() {
            if each.is_some() {
                let message =
                    format!("`.{}` is a read; for each row it stands in `=> {{name: …}}`", capability.method_name());
                self.error(codes::NOT_AN_EFFECT, span, message);
                return None;
            }
            let rows = self.answered(&exposed.catalog, capability, false);
            return Some(self.push(StepKind::Get { call, args, fields: None }, rows));
        }
        if !self.effects_allowed() {
            let message =
                format!("`.{}` changes something and is no value; name it on a line before", capability.method_name());
            self.error(codes::EFFECT_AS_VALUE, span, message);
            return None;
        }
        let undo = capability.effect.as_ref().and_then(|e| e.undo.as_ref());
        let undo = undo.and_then(|name| exposed.catalog.capability(name)).map(|c| c.method_name().to_owned());
        let says = Says { what: format!("{} {}", capability.method_name(), exposed.entity), undo };
        let rows = self.answered(&exposed.catalog, capability, each.is_some());
        let each = each.map(|node| node.0);
        Some(self.push_effect(StepKind::Effect { call, args, each }, rows, says))
    }
}

/// The parts of the key that the instance fills.
fn anchor(exposed: &Exposed, capability: &Capability, reference: &Expr) -> Args {
    let key = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
    let filled = |part: &&String| match capability.kind {
        Kind::Get => capability.params.contains_key(*part),
        _ => capability.anchor.contains(part),
    };
    key.iter().filter(filled).map(|part| (SmolStr::new(part), part_of(reference, part, key.len()))).collect()
}

/// One part of the key that a reference is.
fn part_of(reference: &Expr, part: &str, parts: usize) -> Expr {
    let inner = |take: &Take| match take {
        Take::Key(_) => Take::Path(vec![part.into()]),
        Take::Path(path) if parts == 1 => Take::Path(path.clone()),
        Take::Path(path) => Take::Path(path.iter().cloned().chain([part.into()]).collect()),
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
