//! Where rows come from: lists, queries, searches, gets.
//! Invariant: a query is bound to exactly one capability, chosen by the filters written; its required parameters all have values.

use base::{Diagnostic, Edit, Span, near};
use catalog::{Capability, Param};
use smol_str::SmolStr;

use super::hint::{Braces, PARAMS_SHOWN, all_of, renamed};
use super::node::entity_span;
use super::{Cx, NodeId};
use crate::codes;
use crate::ir::{Args, Called, StepKind};
use crate::scope::{Alphabet, Exposed};
use crate::syntax::tree::{Arg, EntityName, Key, Name, Op as Operator, Pred, Value, ValueKind};

impl<'s> Cx<'s> {
    pub(super) fn query(
        &mut self,
        exposed: &'s Exposed,
        written: &EntityName,
        preds: &[Pred],
        span: Span,
    ) -> Option<NodeId> {
        let alphabet = alphabet_of(written);
        let braces = Braces { head: entity_span(written).end, end: span.end };
        let candidates: Vec<&'s Capability> = exposed.catalog.queries(&exposed.entity).collect();
        let spelled = self.spelled_preds(exposed, preds);
        let Some(capability) = self.best_query(exposed, &candidates, &spelled) else {
            self.no_list(exposed, alphabet, (preds, braces), span);
            return None;
        };
        if self.dots_in_preds(exposed, capability, preds) {
            return None;
        }
        let preds = &*spelled;
        let args = self.read_args(exposed, capability, (preds, braces), alphabet)?;
        let missing: Vec<&Param> = capability.required().filter(|p| !args.contains_key(p.name.as_str())).collect();
        if !missing.is_empty() {
            let slots = self.slot_samples(exposed, missing.iter().copied(), alphabet);
            self.missing(exposed, &missing, alphabet, (span, braces.with(preds, &slots)));
            return None;
        }
        Some(self.push_query(exposed, capability, args))
    }

    fn read_args(
        &mut self,
        exposed: &Exposed,
        capability: &Capability,
        written: (&[Pred], Braces),
        alphabet: Alphabet,
    ) -> Option<Args> {
        let params: Vec<&Param> =
            capability.params.values().filter(|p| capability.text.as_ref() != Some(&p.name)).collect();
        self.filters(exposed, &params, written, alphabet)
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
        let spelled = self.spelled_preds(exposed, preds);
        let found = self.best_query(exposed, &candidates, &spelled);
        let Some((capability, param)) = found.and_then(|c| Some((c, c.params.get(c.text.as_ref()?)?))) else {
            self.no_search(exposed, alphabet, (text, preds), span);
            return None;
        };
        if self.dots_in_preds(exposed, capability, preds) {
            return None;
        }
        let preds = &*spelled;
        let words = self.value(&exposed.catalog, &param.kind, text);
        let braces = Braces { head: text.span.end, end: span.end };
        let mut args = self.read_args(exposed, capability, (preds, braces), alphabet)?;
        args.insert(SmolStr::new(&param.name), words?);
        let missing: Vec<&Param> = capability.required().filter(|p| !args.contains_key(p.name.as_str())).collect();
        if !missing.is_empty() {
            let slots = self.slot_samples(exposed, missing.iter().copied(), alphabet);
            self.missing(exposed, &missing, alphabet, (span, braces.with(preds, &slots)));
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
    fn no_list(&mut self, exposed: &Exposed, alphabet: Alphabet, (preds, braces): (&[Pred], Braces), span: Span) {
        let name = exposed.name_in(alphabet);
        let search = exposed.catalog.searches(&exposed.entity).next();
        let (message, fix) = match search {
            Some(search) => {
                let known = |p: &Pred| {
                    let slot = p.path.names.first().map(|n| self.scope.slot_name(&exposed.catalog, &n.text));
                    p.op == Operator::Eq
                        && p.path.names.len() == 1
                        && slot.is_some_and(|s| search.params.contains_key(s))
                };
                let moves: Vec<bool> = preds.iter().map(|p| !known(p)).collect();
                let mut fix = if moves.contains(&true) { braces.moved(preds, &moves) } else { Vec::new() };
                let end = if preds.is_empty() { braces.end } else { braces.head };
                fix.insert(0, Edit::replace(Span { start: braces.head, end }, "~$"));
                (format!("{name} cannot be listed, only searched"), fix)
            }
            None => (format!("{name} cannot be listed"), vec![Edit::replace(span, self.key_sample(exposed, alphabet))]),
        };
        self.report(Diagnostic::error(codes::NO_LIST, span, message).with_fix(fix));
    }

    /// What cannot be searched is listed, and the words are looked for in the rows.
    fn no_search(&mut self, exposed: &Exposed, alphabet: Alphabet, (text, preds): (&Value, &[Pred]), span: Span) {
        let message = format!("{} cannot be searched", exposed.name_in(alphabet));
        let fields = || exposed.definition().into_iter().flat_map(|e| e.fields.values());
        let texts = || fields().filter(|f| matches!(f.kind, catalog::Type::String(_)));
        let named = texts().find(|f| ["title", "name", "subject", "text", "about"].contains(&f.name.as_str()));
        let list = self.list_sample(exposed, alphabet);
        let fix = match (list, named.or_else(|| texts().next())) {
            (Some(list), Some(field)) => {
                let slot = self.scope.slot_in(&exposed.catalog, &field.name, alphabet);
                let mut edit = Edit::replace(span, format!("{list}.filter{{{slot}~")).keep(text.span);
                for pred in preds {
                    edit = edit
                        .write(", ")
                        .keep(pred.value.span.to(pred.path.names.first().map_or(pred.op_span, |n| n.span)));
                }
                Some(edit.write("}"))
            }
            (Some(list), None) => Some(Edit::replace(span, list)),
            (None, _) => self.get_sample(exposed, alphabet).map(|get| Edit::replace(span, get)),
        };
        self.report(Diagnostic::error(codes::NO_SEARCH, span, message).with_fix(fix));
    }

    /// The entity's list with the scope that it needs.
    fn list_sample(&self, exposed: &Exposed, alphabet: Alphabet) -> Option<String> {
        let query = exposed.catalog.queries(&exposed.entity).next()?;
        let slots = self.slot_samples(exposed, query.required(), alphabet);
        let braces = if slots.is_empty() { String::new() } else { format!("{{{slots}}}") };
        Some(format!("{}{braces}", exposed.name_in(alphabet)))
    }

    fn get_sample(&self, exposed: &Exposed, alphabet: Alphabet) -> Option<String> {
        exposed.catalog.get_of(&exposed.entity).map(|_| self.key_sample(exposed, alphabet))
    }

    /// `project=$, number=$`
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

    /// `Ticket(project=$, number=$)`, to copy and fill.
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

    pub(super) fn missing(
        &mut self,
        exposed: &Exposed,
        missing: &[&Param],
        alphabet: Alphabet,
        (span, fix): (Span, Edit),
    ) {
        let names: Vec<String> =
            missing.iter().map(|p| format!("`{}`", self.scope.slot_in(&exposed.catalog, &p.name, alphabet))).collect();
        let message = format!("{} needs {}", exposed.name_in(alphabet), names.join(", "));
        self.report(Diagnostic::error(codes::MISSING_ARGUMENT, span, message).with_fix([fix]));
    }

    /// `slot = value` filters of a source or a relation, each known and of the right type.
    pub(super) fn filters(
        &mut self,
        exposed: &Exposed,
        params: &[&Param],
        (preds, braces): (&[Pred], Braces),
        alphabet: Alphabet,
    ) -> Option<Args> {
        let mut args = Args::new();
        let mut right = true;
        // Those that the API does not have and rows can be filtered by, and the report that corrects them all.
        let mut moves = vec![false; preds.len()];
        let mut corrects: Option<usize> = None;
        for (at, pred) in preds.iter().enumerate() {
            let Some(first) = pred.path.names.first() else { continue };
            let param = match pred.path.names.as_slice() {
                [only] => self.scope.param(&exposed.catalog, params.iter().copied(), &only.text),
                [slot, key] => self.param_by_key(exposed, params, slot, key),
                _ => None,
            };
            let report = self.found.len();
            let Some(param) = param else {
                self.not_a_filter(exposed, params, pred, alphabet);
                right = false;
                moves[at] = self.filters_rows(exposed, pred);
                corrects = corrects.or(moves[at].then_some(report));
                continue;
            };
            self.mended(first, &param.name);
            if pred.op != Operator::Eq {
                let report = self.found.len();
                self.wrong_operator(first, pred);
                right = false;
                moves[at] = self.filters_rows(exposed, pred);
                corrects = corrects.or(moves[at].then_some(report));
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
        if let Some(report) = corrects.and_then(|at| self.found.get_mut(at)) {
            report.fix = braces.moved(preds, &moves);
        }
        right.then_some(args)
    }

    fn wrong_operator(&mut self, slot: &Name, pred: &Pred) {
        let message = format!(
            "`{}` is sent to the API, which only knows `=`; rows that were read are compared with `.filter{{…}}`",
            slot.text
        );
        self.error(codes::WRONG_OPERATOR, pred.op_span, message);
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
        let field = self.scope.field(exposed, &slot.text);
        // What is no field either was a filter with another name.
        let names: Vec<String> =
            params.iter().map(|p| self.scope.slot_in(&exposed.catalog, &p.name, alphabet)).collect();
        let fix = if field.is_none() { renamed(slot, names.iter().map(String::as_str)) } else { None };
        let message = if params.is_empty() {
            format!("{entity} takes no filters, so `{}` is not one", slot.text)
        } else {
            let all = all_of(params.iter().map(|p| p.name.as_str()), PARAMS_SHOWN, fix.as_ref());
            format!("no filter `{}` on {entity}{all}", slot.text)
        };
        let message = match field {
            Some(_) => format!("{message}; rows that were read are filtered with `.filter{{{}=…}}`", slot.text),
            None => message,
        };
        let diagnostic = Diagnostic::error(codes::UNKNOWN_FILTER, slot.span, message);
        self.report(diagnostic.with_alternatives(alternatives).with_fix(fix));
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
            self.no_get(exposed, alphabet, key, span);
            return None;
        };
        let args = self.key_args(exposed, (written, key), span)?;
        let rows = self.answered(&exposed.catalog, capability, false);
        Some(self.push(StepKind::Get { call: called(exposed, capability), args, fields: None }, rows))
    }

    /// What cannot be read by key is read by its list, with the scope that it needs, or by its search.
    fn no_get(&mut self, exposed: &Exposed, alphabet: Alphabet, key: &Key, span: Span) {
        let searched = || exposed.catalog.searches(&exposed.entity).next();
        let name = exposed.name_in(alphabet);
        let list = self.list_sample(exposed, alphabet).or_else(|| searched().map(|_| format!("{name}~$")));
        let parts = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
        let fix = list.map(|list| match (key, parts) {
            (Key::Unary(value), [only]) => {
                let slot = self.scope.slot_in(&exposed.catalog, only, alphabet);
                Edit::replace(span, format!("{list}.filter{{{slot}=")).keep(value.span).write("}")
            }
            (Key::Slots(slots), _) => {
                let all = slots.iter().map(|arg| arg.slot.span.to(arg.value.span)).reduce(Span::to);
                Edit::replace(span, format!("{list}.filter{{")).keep(all.unwrap_or_default()).write("}")
            }
            _ => Edit::replace(span, list),
        });
        let message = format!("{name} cannot be read by its key");
        self.report(Diagnostic::error(codes::NO_GET, span, message).with_fix(fix));
    }

    /// The parts of an entity's key, from `e1("OPS")` or `e1(p1="OPS", p2=7)`.
    pub(super) fn key_args(
        &mut self,
        exposed: &Exposed,
        (written, key): (&EntityName, &Key),
        span: Span,
    ) -> Option<Args> {
        let entity = exposed.definition()?;
        let fields: Vec<&catalog::Field> = entity.key.iter().filter_map(|k| entity.fields.get(k)).collect();
        let mut args = Args::new();
        match (key, fields.as_slice()) {
            (Key::Unary(value), [only]) => {
                args.insert(SmolStr::new(&only.name), self.value(&exposed.catalog, &only.kind, value)?);
            }
            (Key::Unary(value), parts) if self.taught && matches!(value.kind, ValueKind::Hole) => {
                for part in parts {
                    args.insert(SmolStr::new(&part.name), self.value(&exposed.catalog, &part.kind, value)?);
                }
            }
            (Key::Unary(_), _) => {
                self.key_mismatch(exposed, (written, key), (span, span));
                return None;
            }
            (Key::Slots(slots), fields) => {
                for Arg { slot, value } in slots {
                    let name = self.scope.slot_name(&exposed.catalog, &slot.text);
                    let Some(field) = fields.iter().find(|f| f.name == name) else {
                        self.key_mismatch(exposed, (written, key), (slot.span, span));
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
            self.key_mismatch(exposed, (written, key), (span, span));
            return None;
        }
        Some(args)
    }

    fn key_mismatch(&mut self, exposed: &Exposed, (written, key): (&EntityName, &Key), (place, whole): (Span, Span)) {
        let Some(entity) = exposed.definition() else { return };
        let alphabet = alphabet_of(written);
        let parts: Vec<String> = entity.key.iter().map(|k| self.scope.slot_in(&exposed.catalog, k, alphabet)).collect();
        let message = format!("the key of {} is {}", exposed.name_in(alphabet), parts.join(", "));
        let brackets = Span { start: entity_span(written).end, end: whole.end };
        let fix = self.key_edit(exposed, key, (brackets, alphabet));
        self.report(Diagnostic::error(codes::KEY_MISMATCH, place, message).with_fix([fix]));
    }
}

pub(super) fn alphabet_of(written: &EntityName) -> Alphabet {
    super::path::alphabet_of(&written.name.text)
}

pub(super) fn called(exposed: &Exposed, capability: &Capability) -> Called {
    Called { catalog: exposed.catalog.id.clone(), capability: SmolStr::new(&capability.name) }
}
