//! Where rows come from: lists, queries, gets.
//! Invariant: a query is bound to exactly one capability, chosen by the filters written; its required parameters all have values.

use base::{Diagnostic, Span, near};
use catalog::{Args, Capability, Kind, Param};

use super::{Cx, NodeId, Op, RowType};
use crate::codes;
use crate::scope::{Alphabet, Exposed};
use crate::syntax::tree::{Arg, EntityName, Key, Name, Op as Operator, Pred};

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
        let params: Vec<&Param> = capability.params.values().collect();
        let args = self.filters(exposed, &params, preds, alphabet)?;
        let missing: Vec<&Param> = capability.required().filter(|p| !args.contains_key(&p.name)).collect();
        if !missing.is_empty() {
            self.missing(exposed, &missing, alphabet, span);
            return None;
        }
        let rows = rows_of(exposed, capability.kind == Kind::Query);
        Some(self.push(Op::Query { capability: capability.name.clone(), args }, rows))
    }

    /// The capability that knows the most of the filters and misses the fewest required values.
    fn best_query(&self, exposed: &Exposed, candidates: &[&'s Capability], preds: &[Pred]) -> Option<&'s Capability> {
        let written: Vec<&str> = preds
            .iter()
            .filter_map(|p| p.path.names.first())
            .map(|n| self.scope.slot_name(&exposed.catalog, &n.text))
            .collect();
        candidates.iter().copied().max_by_key(|capability| {
            let known = written.iter().filter(|name| capability.params.contains_key(**name)).count();
            let missing = capability.required().filter(|p| !written.contains(&p.name.as_str())).count();
            (known, std::cmp::Reverse(missing))
        })
    }

    fn no_list(&mut self, exposed: &Exposed, alphabet: Alphabet, span: Span) {
        let name = exposed.name_in(alphabet);
        let diagnostic = Diagnostic::error(codes::NO_LIST, span, format!("{name} cannot be listed"));
        self.report(diagnostic.with_copy(self.key_sample(exposed, alphabet)));
    }

    /// `Ticket(project="words", number=1)`, to copy and change.
    fn key_sample(&self, exposed: &Exposed, alphabet: Alphabet) -> String {
        let entity = exposed.definition();
        let key = entity.into_iter().flat_map(|e| e.key.iter().filter_map(|k| e.fields.get(k)));
        let slots: Vec<String> = key
            .map(|f| (self.scope.slot_in(&exposed.catalog, &f.name, alphabet), self.sample(exposed, &f.kind, alphabet)))
            .map(|(slot, sample)| format!("{slot}={sample}"))
            .collect();
        format!("{}({})", exposed.name_in(alphabet), slots.join(", "))
    }

    fn missing(&mut self, exposed: &Exposed, missing: &[&Param], alphabet: Alphabet, span: Span) {
        let name = exposed.name_in(alphabet);
        let slots: Vec<String> = missing
            .iter()
            .map(|p| {
                format!(
                    "{}={}",
                    self.scope.slot_in(&exposed.catalog, &p.name, alphabet),
                    self.sample(exposed, &p.kind, alphabet)
                )
            })
            .collect();
        let names: Vec<String> =
            missing.iter().map(|p| format!("`{}`", self.scope.slot_in(&exposed.catalog, &p.name, alphabet))).collect();
        let message = format!("{name} needs {}", names.join(", "));
        let copy = format!("{name}{{{}}}", slots.join(", "));
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
                _ => None,
            };
            let Some(param) = param else {
                if pred.path.names.len() > 1 {
                    let message = format!("`{}.…` is a path; a filter of the API is one slot", first.text);
                    self.error(codes::UNKNOWN_FILTER, first.span, message);
                } else {
                    self.unknown_filter(exposed, params, first, alphabet);
                }
                right = false;
                continue;
            };
            self.mended(first, &param.name);
            if pred.op != Operator::Eq {
                let slot = &first.text;
                let message = format!("`{slot}` is sent to the API, which only knows `=`");
                self.error(codes::WRONG_OPERATOR, pred.op_span, message);
                right = false;
                continue;
            }
            let Some(value) = self.value(exposed, &param.kind, &pred.value) else {
                right = false;
                continue;
            };
            // `null` is the same as leaving the filter out.
            if value.is_null() {
                continue;
            }
            if args.insert(param.name.clone(), value).is_some() {
                self.error(codes::DUPLICATE_ARGUMENT, first.span, format!("`{}` is given twice", first.text));
                right = false;
            }
        }
        right.then_some(args)
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
        self.report(Diagnostic::error(codes::UNKNOWN_FILTER, slot.span, message).with_alternatives(alternatives));
    }

    fn describe_slot(&self, exposed: &Exposed, param: &Param, alphabet: Alphabet) -> String {
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
        Some(self.push(Op::Get { capability: capability.name.clone(), args }, rows_of(exposed, false)))
    }

    /// What cannot be read by key is read by its list, with the scope that it needs.
    fn no_get(&mut self, exposed: &Exposed, alphabet: Alphabet, span: Span) {
        let name = exposed.name_in(alphabet);
        let scope = exposed.catalog.queries(&exposed.entity).next().map(|query| {
            let slots: Vec<String> = query
                .required()
                .map(|p| {
                    (self.scope.slot_in(&exposed.catalog, &p.name, alphabet), self.sample(exposed, &p.kind, alphabet))
                })
                .map(|(slot, sample)| format!("{slot}={sample}"))
                .collect();
            format!("{name}{{{}}}", slots.join(", "))
        });
        let message = format!("{name} cannot be read by its key");
        self.report(Diagnostic { copy: scope, ..Diagnostic::error(codes::NO_GET, span, message) });
    }

    /// The parts of an entity's key, from `e1("OPS")` or `e1(p1="OPS", p2=7)`.
    pub(super) fn key_args(&mut self, exposed: &Exposed, key: &Key, alphabet: Alphabet, span: Span) -> Option<Args> {
        let entity = exposed.definition()?;
        let fields: Vec<&catalog::Field> = entity.key.iter().filter_map(|k| entity.fields.get(k)).collect();
        let mut args = Args::new();
        match (key, fields.as_slice()) {
            (Key::Unary(value), [only]) => {
                args.insert(only.name.clone(), self.value(exposed, &only.kind, value)?);
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
                    let value = self.value(exposed, &field.kind, value)?;
                    if args.insert(field.name.clone(), value).is_some() {
                        self.error(codes::DUPLICATE_ARGUMENT, slot.span, format!("`{}` is given twice", slot.text));
                        return None;
                    }
                }
            }
        }
        if args.values().filter(|v| !v.is_null()).count() != fields.len() {
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
    if crate::scope::looks_like_symbol(&written.name.text) { Alphabet::Symbols } else { Alphabet::Names }
}

pub(super) fn rows_of(exposed: &Exposed, many: bool) -> RowType {
    let columns = exposed.definition().map(|e| e.fields.keys().cloned().collect()).unwrap_or_default();
    RowType { catalog: exposed.catalog.clone(), entity: exposed.entity.clone(), columns, many }
}
