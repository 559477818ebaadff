//! Where rows come from: lists, queries, searches, gets.
//! Invariant: a query is bound to exactly one capability, chosen by the filters written; its required parameters all have values.

use base::{Diagnostic, Span, near};
use catalog::{Capability, Param};
use smol_str::SmolStr;

use super::{Cx, NodeId};
use crate::codes;
use crate::ir::{Args, Called, StepKind};
use crate::scope::{Alphabet, Exposed};
use crate::syntax::tree::{Arg, EntityName, Key, Name, Op as Operator, Pred, Value};

impl<'s> Cx<'s> {
    pub(super) fn query(
        &mut self,
        exposed: &'s Exposed,
        written: &EntityName,
        preds: &[Pred],
        span: Span,
    ) -> Option<NodeId> {
        let alphabet = alphabet_of(written);
        let candidates: Vec<&'s Capability> = exposed.catalog.queries(&exposed.entity).collect();
        let Some(capability) = self.best_query(exposed, &candidates, preds) else {
            self.no_list(exposed, alphabet, span);
            return None;
        };
        let args = self.read_args(exposed, capability, preds, alphabet)?;
        let missing: Vec<&Param> = capability.required().filter(|p| !args.contains_key(p.name.as_str())).collect();
        if !missing.is_empty() {
            self.missing_scope(exposed, &missing, alphabet, span);
            return None;
        }
        Some(self.push_query(exposed, capability, args))
    }

    fn read_args(
        &mut self,
        exposed: &Exposed,
        capability: &Capability,
        preds: &[Pred],
        alphabet: Alphabet,
    ) -> Option<Args> {
        let params: Vec<&Param> =
            capability.params.values().filter(|p| capability.text.as_ref() != Some(&p.name)).collect();
        self.filters(exposed, &params, preds, alphabet)
    }

    fn push_query(&mut self, exposed: &Exposed, capability: &Capability, args: Args) -> NodeId {
        let rows = self.answered(&exposed.catalog, capability, true);
        let call = called(exposed, capability);
        self.push(StepKind::Query { call, args, limit: None, page_size: None, fields: None }, rows)
    }

    /// `e1~"words"{…}`
    pub(super) fn search(
        &mut self,
        exposed: &'s Exposed,
        written: &EntityName,
        (text, preds): (&Value, &[Pred]),
        span: Span,
    ) -> Option<NodeId> {
        let alphabet = alphabet_of(written);
        let candidates: Vec<&'s Capability> = exposed.catalog.searches(&exposed.entity).collect();
        let found = self.best_query(exposed, &candidates, preds);
        let Some((capability, param)) = found.and_then(|c| Some((c, c.params.get(c.text.as_ref()?)?))) else {
            let message = format!("{} cannot be searched", exposed.name_in(alphabet));
            let copy = self.list_sample(exposed, alphabet).or_else(|| self.get_sample(exposed, alphabet));
            self.report(Diagnostic { copy, ..Diagnostic::error(codes::NO_SEARCH, span, message) });
            return None;
        };
        let words = self.value(&exposed.catalog, &param.kind, text);
        let mut args = self.read_args(exposed, capability, preds, alphabet)?;
        args.insert(SmolStr::new(&param.name), words?);
        let missing: Vec<&Param> = capability.required().filter(|p| !args.contains_key(p.name.as_str())).collect();
        if !missing.is_empty() {
            let copy = self.search_sample(exposed, capability, alphabet);
            self.missing(exposed, &missing, alphabet, (span, copy));
            return None;
        }
        Some(self.push_query(exposed, capability, args))
    }

    /// The capability that knows the most of the filters and misses the fewest required values.
    fn best_query(&self, exposed: &Exposed, candidates: &[&'s Capability], preds: &[Pred]) -> Option<&'s Capability> {
        let written: Vec<&str> = preds
            .iter()
            .filter_map(|p| p.path.names.first())
            .map(|n| self.scope.slot_name(&exposed.catalog, &n.text))
            .collect();
        // Of equals the first one declared.
        candidates.iter().copied().rev().max_by_key(|capability| {
            let known = written.iter().filter(|name| capability.params.contains_key(**name)).count();
            let missing = capability.required().filter(|p| !written.contains(&p.name.as_str())).count();
            (known, std::cmp::Reverse(missing))
        })
    }

    /// An entity that can only be searched is refused with its search; one that can only be got, with its key.
    fn no_list(&mut self, exposed: &Exposed, alphabet: Alphabet, span: Span) {
        let name = exposed.name_in(alphabet);
        let search = exposed.catalog.searches(&exposed.entity).next();
        let (message, copy) = match search {
            Some(search) => {
                (format!("{name} cannot be listed, only searched"), self.search_sample(exposed, search, alphabet))
            }
            None => (format!("{name} cannot be listed"), self.key_sample(exposed, alphabet)),
        };
        self.report(Diagnostic::error(codes::NO_LIST, span, message).with_copy(copy));
    }

    fn search_sample(&self, exposed: &Exposed, search: &Capability, alphabet: Alphabet) -> String {
        let slots =
            self.slot_samples(exposed, search.required().filter(|p| search.text.as_ref() != Some(&p.name)), alphabet);
        let braces = if slots.is_empty() { String::new() } else { format!("{{{slots}}}") };
        format!("{}~\"words\"{braces}", exposed.name_in(alphabet))
    }

    /// The entity's list with the scope that it needs.
    fn list_sample(&self, exposed: &Exposed, alphabet: Alphabet) -> Option<String> {
        let query = exposed.catalog.queries(&exposed.entity).next()?;
        Some(format!("{}{{{}}}", exposed.name_in(alphabet), self.slot_samples(exposed, query.required(), alphabet)))
    }

    fn get_sample(&self, exposed: &Exposed, alphabet: Alphabet) -> Option<String> {
        exposed.catalog.get_of(&exposed.entity).map(|_| self.key_sample(exposed, alphabet))
    }

    /// `project="words", number=1`
    pub(super) fn slot_samples<'p>(
        &self,
        exposed: &Exposed,
        params: impl Iterator<Item = &'p Param>,
        alphabet: Alphabet,
    ) -> String {
        let one = |p: &Param| {
            let slot = self.scope.slot_in(&exposed.catalog, &p.name, alphabet);
            format!("{slot}={}", self.sample(&exposed.catalog, &p.kind, alphabet))
        };
        params.map(one).collect::<Vec<_>>().join(", ")
    }

    /// `Ticket(project="words", number=1)`, to copy and change.
    pub(super) fn key_sample(&self, exposed: &Exposed, alphabet: Alphabet) -> String {
        let entity = exposed.definition();
        let key = entity.into_iter().flat_map(|e| e.key.iter().filter_map(|k| e.fields.get(k)));
        let slots: Vec<String> = key
            .map(|f| {
                let slot = self.scope.slot_in(&exposed.catalog, &f.name, alphabet);
                format!("{slot}={}", self.sample(&exposed.catalog, &f.kind, alphabet))
            })
            .collect();
        format!("{}({})", exposed.name_in(alphabet), slots.join(", "))
    }

    fn missing_scope(&mut self, exposed: &Exposed, missing: &[&Param], alphabet: Alphabet, span: Span) {
        let slots = self.slot_samples(exposed, missing.iter().copied(), alphabet);
        let copy = format!("{}{{{slots}}}", exposed.name_in(alphabet));
        self.missing(exposed, missing, alphabet, (span, copy));
    }

    pub(super) fn missing(
        &mut self,
        exposed: &Exposed,
        missing: &[&Param],
        alphabet: Alphabet,
        (span, copy): (Span, String),
    ) {
        let names: Vec<String> =
            missing.iter().map(|p| format!("`{}`", self.scope.slot_in(&exposed.catalog, &p.name, alphabet))).collect();
        let message = format!("{} needs {}", exposed.name_in(alphabet), names.join(", "));
        self.report(Diagnostic::error(codes::MISSING_ARGUMENT, span, message).with_copy(copy));
    }

    /// `slot = value` filters of a source or a relation, each known and of the right type.
    pub(super) fn filters(
        &mut self,
        exposed: &Exposed,
        params: &[&Param],
        preds: &[Pred],
        alphabet: Alphabet,
    ) -> Option<Args> {
        let mut args = Args::new();
        let mut right = true;
        for pred in preds {
            let Some(first) = pred.path.names.first() else { continue };
            let param = match pred.path.names.as_slice() {
                [only] => self.scope.param(&exposed.catalog, params.iter().copied(), &only.text),
                [slot, key] => self.param_by_key(exposed, params, slot, key),
                _ => None,
            };
            let Some(param) = param else {
                self.not_a_filter(exposed, params, pred, alphabet);
                right = false;
                continue;
            };
            self.mended(first, &param.name);
            if pred.op != Operator::Eq {
                let slot = &first.text;
                let message = format!(
                    "`{slot}` is sent to the API, which only knows `=`; rows that were read are compared with `.filter{{…}}`"
                );
                self.error(codes::WRONG_OPERATOR, pred.op_span, message);
                right = false;
                continue;
            }
            let Some(value) = self.value(&exposed.catalog, &param.kind, &pred.value) else {
                right = false;
                continue;
            };
            // `null` is the same as leaving the filter out.
            if value.known().is_some_and(serde_json::Value::is_null) {
                continue;
            }
            if args.insert(SmolStr::new(&param.name), value).is_some() {
                self.error(codes::DUPLICATE_ARGUMENT, first.span, format!("`{}` is given twice", first.text));
                right = false;
            }
        }
        right.then_some(args)
    }

    /// `owner.id` is `owner`, where that is a reference whose key is `id`.
    fn param_by_key<'p>(&self, exposed: &Exposed, params: &[&'p Param], slot: &Name, key: &Name) -> Option<&'p Param> {
        let param = self.scope.param(&exposed.catalog, params.iter().copied(), &slot.text)?;
        let catalog::Type::Ref(target) = &param.kind else { return None };
        let wire = self.scope.slot_name(&exposed.catalog, &key.text);
        let entity = exposed.catalog.entity(target)?;
        matches!(entity.key.as_slice(), [only] if only == wire).then_some(param)
    }

    /// A field that the API does not filter by can still be filtered by once it is read.
    fn not_a_filter(&mut self, exposed: &Exposed, params: &[&Param], pred: &Pred, alphabet: Alphabet) {
        let Some(first) = pred.path.names.first() else { return };
        if pred.path.names.len() > 1 {
            let message = format!("`{}.…` is a path; a filter of the API is one slot", first.text);
            self.error(codes::UNKNOWN_FILTER, first.span, message);
            return;
        }
        self.unknown_filter(exposed, params, first, alphabet);
    }

    fn unknown_filter(&mut self, exposed: &Exposed, params: &[&Param], slot: &Name, alphabet: Alphabet) {
        let entity = exposed.name_in(alphabet);
        let alternatives: Vec<String> = near(&slot.text, params.iter().map(|p| p.name.as_str()))
            .iter()
            .filter_map(|name| params.iter().find(|p| &p.name == name))
            .map(|p| self.describe_slot(exposed, p, alphabet))
            .collect();
        let message = if params.is_empty() {
            format!("{entity} takes no filters, so `{}` is not one", slot.text)
        } else {
            format!("no filter `{}` on {entity}", slot.text)
        };
        let field = self.scope.field(exposed, &slot.text);
        let message = match field {
            Some(_) => format!("{message}; rows that were read are filtered with `.filter{{{}=…}}`", slot.text),
            None => message,
        };
        self.report(Diagnostic::error(codes::UNKNOWN_FILTER, slot.span, message).with_alternatives(alternatives));
    }

    /// `state (open/doing/done)`, or `p3 state (…)` so that both can be copied.
    pub(super) fn describe_slot(&self, exposed: &Exposed, param: &Param, alphabet: Alphabet) -> String {
        let symbol = self.scope.slot_in(&exposed.catalog, &param.name, alphabet);
        let kind = param.kind.describe();
        if symbol == param.name { format!("{symbol} ({kind})") } else { format!("{symbol} {} ({kind})", param.name) }
    }

    pub(super) fn get(&mut self, exposed: &'s Exposed, written: &EntityName, key: &Key, span: Span) -> Option<NodeId> {
        let alphabet = alphabet_of(written);
        let Some(capability) = exposed.catalog.get_of(&exposed.entity) else {
            self.no_get(exposed, alphabet, span);
            return None;
        };
        let args = self.key_args(exposed, key, alphabet, span)?;
        let rows = self.answered(&exposed.catalog, capability, false);
        Some(self.push(StepKind::Get { call: called(exposed, capability), args, fields: None }, rows))
    }

    /// What cannot be read by key is read by its list, with the scope that it needs, or by its search.
    fn no_get(&mut self, exposed: &Exposed, alphabet: Alphabet, span: Span) {
        let search = || exposed.catalog.searches(&exposed.entity).next();
        let copy = self
            .list_sample(exposed, alphabet)
            .or_else(|| search().map(|search| self.search_sample(exposed, search, alphabet)));
        let message = format!("{} cannot be read by its key", exposed.name_in(alphabet));
        self.report(Diagnostic { copy, ..Diagnostic::error(codes::NO_GET, span, message) });
    }

    /// The parts of an entity's key, from `e1("OPS")` or `e1(p1="OPS", p2=7)`.
    pub(super) fn key_args(&mut self, exposed: &Exposed, key: &Key, alphabet: Alphabet, span: Span) -> Option<Args> {
        let entity = exposed.definition()?;
        let fields: Vec<&catalog::Field> = entity.key.iter().filter_map(|k| entity.fields.get(k)).collect();
        let mut args = Args::new();
        match (key, fields.as_slice()) {
            (Key::Unary(value), [only]) => {
                args.insert(SmolStr::new(&only.name), self.value(&exposed.catalog, &only.kind, value)?);
            }
            (Key::Unary(_), _) => {
                self.key_mismatch(exposed, alphabet, span);
                return None;
            }
            (Key::Slots(slots), fields) => {
                for Arg { slot, value } in slots {
                    let name = self.scope.slot_name(&exposed.catalog, &slot.text);
                    let Some(field) = fields.iter().find(|f| f.name == name) else {
                        self.key_mismatch(exposed, alphabet, slot.span);
                        return None;
                    };
                    let value = self.value(&exposed.catalog, &field.kind, value)?;
                    if args.insert(SmolStr::new(&field.name), value).is_some() {
                        self.error(codes::DUPLICATE_ARGUMENT, slot.span, format!("`{}` is given twice", slot.text));
                        return None;
                    }
                }
            }
        }
        if args.values().filter(|v| v.known().is_none_or(|v| !v.is_null())).count() != fields.len() {
            self.key_mismatch(exposed, alphabet, span);
            return None;
        }
        Some(args)
    }

    fn key_mismatch(&mut self, exposed: &Exposed, alphabet: Alphabet, span: Span) {
        let Some(entity) = exposed.definition() else { return };
        let key: Vec<String> = entity.key.iter().map(|k| self.scope.slot_in(&exposed.catalog, k, alphabet)).collect();
        let message = format!("the key of {} is {}", exposed.name_in(alphabet), key.join(", "));
        let copy = self.key_sample(exposed, alphabet);
        self.report(Diagnostic::error(codes::KEY_MISMATCH, span, message).with_copy(copy));
    }
}

pub(super) fn alphabet_of(written: &EntityName) -> Alphabet {
    super::path::alphabet_of(&written.name.text)
}

pub(super) fn called(exposed: &Exposed, capability: &Capability) -> Called {
    Called { catalog: exposed.catalog.id.clone(), capability: SmolStr::new(&capability.name) }
}
