//! Checks the sources of rows: lists, queries, searches, gets.
//! Invariant: a query is bound to exactly one capability, which the written filters choose. Its required parameters all
//! have values.

use base::{Diagnostic, Edit, Span, similar_names};
use catalog::{Capability, Param};
use smol_str::SmolStr;

use super::correction::{PARAMS_SHOWN, WrittenFilters, list_all_names, rename_edit};
use super::{Checker, NodeId};
use crate::codes;
use crate::ir::{Args, CapabilityRef, StepKind};
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{Arg, EntityName, Key, Name, Operator, Pred, Value, ValueKind};

impl<'s> Checker<'s> {
    /// Checks `e1` and `e1{…}`. `written` is the entity as the program names it.
    pub(super) fn query(
        &mut self,
        exposed: &'s ExposedEntity,
        written: &EntityName,
        preds: &[Pred],
        span: Span,
    ) -> Option<NodeId> {
        let style = NameStyle::of(&written.name.text);
        let filters = WrittenFilters { preds, start: written.span().end, end: span.end };
        let candidates: Vec<&'s Capability> = exposed.catalog.queries(&exposed.entity).collect();
        let expanded = self.expand_dots_in_preds(exposed, preds);
        let Some(capability) = self.best_query(exposed, &candidates, &expanded) else {
            self.report_no_list(exposed, style, filters, span);
            return None;
        };
        if self.reject_dots_in_preds(exposed, capability, preds) {
            return None;
        }
        let filters = WrittenFilters { preds: &expanded, ..filters };
        let args = self.query_args(exposed, capability, filters, style)?;
        let missing: Vec<&Param> = capability.required().filter(|p| !args.contains_key(p.name.as_str())).collect();
        if !missing.is_empty() {
            self.report_missing_params(exposed, &missing, style, filters, span);
            return None;
        }
        Some(self.add_query(exposed, capability, args))
    }

    /// Checks the filters of a list or a search. The parameter of the search text is no filter.
    fn query_args(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        filters: WrittenFilters<'_>,
        style: NameStyle,
    ) -> Option<Args> {
        let params: Vec<&Param> =
            capability.params.values().filter(|p| capability.text.as_ref() != Some(&p.name)).collect();
        self.filters(exposed, &params, filters, style)
    }

    fn add_query(&mut self, exposed: &ExposedEntity, capability: &Capability, args: Args) -> NodeId {
        let rows = self.capability_rows(&exposed.catalog, capability, true);
        let call = CapabilityRef::new(&exposed.catalog, capability);
        self.add_node(StepKind::Query { call, args, limit: None, page_size: None, fields: None }, rows)
    }

    /// Checks `e1~"words"{…}`.
    pub(super) fn search(
        &mut self,
        exposed: &'s ExposedEntity,
        written: &EntityName,
        text: &Value,
        preds: &[Pred],
        span: Span,
    ) -> Option<NodeId> {
        let style = NameStyle::of(&written.name.text);
        let candidates: Vec<&'s Capability> = exposed.catalog.searches(&exposed.entity).collect();
        let expanded = self.expand_dots_in_preds(exposed, preds);
        let best = self.best_query(exposed, &candidates, &expanded);
        let Some((capability, param)) = best.and_then(|c| Some((c, c.params.get(c.text.as_ref()?)?))) else {
            self.report_no_search(exposed, style, text, preds, span);
            return None;
        };
        if self.reject_dots_in_preds(exposed, capability, preds) {
            return None;
        }
        let words = self.check_value(&exposed.catalog, &param.kind, text);
        let filters = WrittenFilters { preds: &expanded, start: text.span.end, end: span.end };
        let mut args = self.query_args(exposed, capability, filters, style)?;
        args.insert(SmolStr::new(&param.name), words?);
        let missing: Vec<&Param> = capability.required().filter(|p| !args.contains_key(p.name.as_str())).collect();
        if !missing.is_empty() {
            self.report_missing_params(exposed, &missing, style, filters, span);
            return None;
        }
        Some(self.add_query(exposed, capability, args))
    }

    /// Chooses the capability that has parameters for the most of the filters and lacks the fewest required values.
    fn best_query(
        &self,
        exposed: &ExposedEntity,
        candidates: &[&'s Capability],
        preds: &[Pred],
    ) -> Option<&'s Capability> {
        let written: Vec<&str> = preds
            .iter()
            .filter_map(|p| p.path.names.first())
            .map(|n| self.scope.wire_name(&exposed.catalog, &n.text))
            .collect();
        // `max_by_key` takes the last of equals, so the order is reversed to take the one that the catalog declares
        // first.
        candidates.iter().copied().rev().max_by_key(|capability| {
            let known = written.iter().filter(|name| capability.params.contains_key(**name)).count();
            let missing = capability.required().filter(|p| !written.contains(&p.name.as_str())).count();
            (known, std::cmp::Reverse(missing))
        })
    }

    /// Reports that an entity cannot be listed. The correction is its search or, without one, its key.
    fn report_no_list(&mut self, exposed: &ExposedEntity, style: NameStyle, filters: WrittenFilters<'_>, span: Span) {
        let preds = filters.preds;
        let name = exposed.styled_name(style);
        let search = exposed.catalog.searches(&exposed.entity).next();
        let (message, fix) = match search {
            Some(search) => {
                let known = |p: &Pred| {
                    let slot = p.path.names.first().map(|n| self.scope.wire_name(&exposed.catalog, &n.text));
                    p.op == Operator::Eq
                        && p.path.names.len() == 1
                        && slot.is_some_and(|s| search.params.contains_key(s))
                };
                let moves: Vec<bool> = preds.iter().map(|p| !known(p)).collect();
                let mut fix = if moves.contains(&true) { filters.move_to_rows(&moves) } else { Vec::new() };
                let end = if preds.is_empty() { filters.end } else { filters.start };
                fix.insert(0, Edit::replace(Span { start: filters.start, end }, "~$"));
                (format!("{name} cannot be listed, only searched"), fix)
            }
            None => (format!("{name} cannot be listed"), vec![Edit::replace(span, self.key_sample(exposed, style))]),
        };
        self.report(Diagnostic::error(codes::NO_LIST, span, message).with_fix(fix));
    }

    /// Reports that an entity cannot be searched. The correction lists it and looks for the words in the rows.
    fn report_no_search(
        &mut self,
        exposed: &ExposedEntity,
        style: NameStyle,
        text: &Value,
        preds: &[Pred],
        span: Span,
    ) {
        let message = format!("{} cannot be searched", exposed.styled_name(style));
        let fields = || exposed.definition().into_iter().flat_map(|e| e.fields.values());
        let texts = || fields().filter(|f| matches!(f.kind, catalog::Type::String(_)));
        let named = texts().find(|f| ["title", "name", "subject", "text", "about"].contains(&f.name.as_str()));
        let list = self.list_sample(exposed, style);
        let fix = match (list, named.or_else(|| texts().next())) {
            (Some(list), Some(field)) => {
                let slot = self.scope.styled_slot(&exposed.catalog, &field.name, style);
                let mut edit = Edit::replace(span, format!("{list}.filter{{{slot}~")).append_original(text.span);
                for pred in preds {
                    edit = edit
                        .append(", ")
                        .append_original(pred.value.span.to(pred.path.names.first().map_or(pred.op_span, |n| n.span)));
                }
                Some(edit.append("}"))
            }
            (Some(list), None) => Some(Edit::replace(span, list)),
            (None, _) => self.get_sample(exposed, style).map(|get| Edit::replace(span, get)),
        };
        self.report(Diagnostic::error(codes::NO_SEARCH, span, message).with_fix(fix));
    }

    /// Returns the entity's list with samples of the filters that it needs.
    fn list_sample(&self, exposed: &ExposedEntity, style: NameStyle) -> Option<String> {
        let query = exposed.catalog.queries(&exposed.entity).next()?;
        let slots = self.slot_samples(exposed, query.required(), style);
        let braces = if slots.is_empty() { String::new() } else { format!("{{{slots}}}") };
        Some(format!("{}{braces}", exposed.styled_name(style)))
    }

    /// Returns the entity with a sample of its key, if it can be read by its key.
    fn get_sample(&self, exposed: &ExposedEntity, style: NameStyle) -> Option<String> {
        exposed.catalog.get_of(&exposed.entity).map(|_| self.key_sample(exposed, style))
    }

    /// Returns samples of parameters, to copy and fill: `project=$, number=$`.
    pub(super) fn slot_samples<'p>(
        &self,
        exposed: &ExposedEntity,
        params: impl Iterator<Item = &'p Param>,
        style: NameStyle,
    ) -> String {
        let slot_sample = |p: &Param| {
            let slot = self.scope.styled_slot(&exposed.catalog, &p.name, style);
            format!("{slot}={}", self.sample(&exposed.catalog, &p.kind, style))
        };
        params.map(slot_sample).collect::<Vec<_>>().join(", ")
    }

    /// Returns a sample of the entity's key, to copy and fill: `Ticket(project=$, number=$)`.
    pub(super) fn key_sample(&self, exposed: &ExposedEntity, style: NameStyle) -> String {
        let entity = exposed.definition();
        let key = entity.into_iter().flat_map(|e| e.key.iter().filter_map(|k| e.fields.get(k)));
        let slots: Vec<String> = key
            .map(|f| {
                let slot = self.scope.styled_slot(&exposed.catalog, &f.name, style);
                format!("{slot}={}", self.sample(&exposed.catalog, &f.kind, style))
            })
            .collect();
        format!("{}({})", exposed.styled_name(style), slots.join(", "))
    }

    /// Reports required parameters that have no filter. The correction adds them to the written filters.
    pub(super) fn report_missing_params(
        &mut self,
        exposed: &ExposedEntity,
        missing: &[&Param],
        style: NameStyle,
        filters: WrittenFilters<'_>,
        span: Span,
    ) {
        let fix = filters.add(&self.slot_samples(exposed, missing.iter().copied(), style));
        let names: Vec<String> =
            missing.iter().map(|p| format!("`{}`", self.scope.styled_slot(&exposed.catalog, &p.name, style))).collect();
        let message = format!("{} needs {}", exposed.styled_name(style), names.join(", "));
        self.report(Diagnostic::error(codes::MISSING_ARGUMENT, span, message).with_fix([fix]));
    }

    /// Checks the filters of a source or a relation: each must have a parameter, the operator `=` and a value of the
    /// right type.
    pub(super) fn filters(
        &mut self,
        exposed: &ExposedEntity,
        params: &[&Param],
        filters: WrittenFilters<'_>,
        style: NameStyle,
    ) -> Option<Args> {
        let preds = filters.preds;
        let mut args = Args::new();
        let mut is_valid = true;
        // The filters that the API does not have but rows can be filtered by. One diagnostic, the first of them, moves
        // all of them behind the read, because the deletions of neighbouring filters overlap.
        let mut moves = vec![false; preds.len()];
        let mut moving_report: Option<usize> = None;
        for (at, pred) in preds.iter().enumerate() {
            let Some(first) = pred.path.names.first() else { continue };
            let param = match pred.path.names.as_slice() {
                [only] => self.scope.param(&exposed.catalog, params.iter().copied(), &only.text),
                [slot, key] => self.param_by_key(exposed, params, slot, key),
                _ => None,
            };
            let report = self.diagnostics.len();
            let Some(param) = param else {
                self.report_not_a_filter(exposed, params, pred, style);
                is_valid = false;
                moves[at] = self.can_filter_rows(exposed, pred);
                moving_report = moving_report.or(moves[at].then_some(report));
                continue;
            };
            self.note_case_fix(first, &param.name);
            if pred.op != Operator::Eq {
                let report = self.diagnostics.len();
                self.report_wrong_operator(first, pred);
                is_valid = false;
                moves[at] = self.can_filter_rows(exposed, pred);
                moving_report = moving_report.or(moves[at].then_some(report));
                continue;
            }
            let Some(value) = self.check_value(&exposed.catalog, &param.kind, &pred.value) else {
                is_valid = false;
                continue;
            };
            // A filter with `null` is left out.
            if value.known().is_some_and(serde_json::Value::is_null) {
                continue;
            }
            if args.insert(SmolStr::new(&param.name), value).is_some() {
                self.error(codes::DUPLICATE_ARGUMENT, first.span, format!("`{}` is given twice", first.text));
                is_valid = false;
            }
        }
        if let Some(report) = moving_report.and_then(|at| self.diagnostics.get_mut(at)) {
            report.fix = filters.move_to_rows(&moves);
        }
        is_valid.then_some(args)
    }

    fn report_wrong_operator(&mut self, slot: &Name, pred: &Pred) {
        let message = format!(
            "`{}` is sent to the API, which only knows `=`; rows that were read are compared with `.filter{{…}}`",
            slot.text
        );
        self.error(codes::WRONG_OPERATOR, pred.op_span, message);
    }

    /// Finds the parameter of `owner.id`, which means `owner` if that is a reference with the key `id`.
    fn param_by_key<'p>(
        &self,
        exposed: &ExposedEntity,
        params: &[&'p Param],
        slot: &Name,
        key: &Name,
    ) -> Option<&'p Param> {
        let param = self.scope.param(&exposed.catalog, params.iter().copied(), &slot.text)?;
        let catalog::Type::Ref(target) = &param.kind else { return None };
        let wire = self.scope.wire_name(&exposed.catalog, &key.text);
        let entity = exposed.catalog.entity(target)?;
        matches!(entity.key.as_slice(), [only] if only == wire).then_some(param)
    }

    /// Reports a filter that the API does not have.
    fn report_not_a_filter(&mut self, exposed: &ExposedEntity, params: &[&Param], pred: &Pred, style: NameStyle) {
        let Some(first) = pred.path.names.first() else { return };
        if pred.path.names.len() > 1 {
            let message = format!("`{}.…` is a path; a filter of the API is one slot", first.text);
            self.error(codes::UNKNOWN_FILTER, first.span, message);
            return;
        }
        self.report_unknown_filter(exposed, params, first, style);
    }

    /// Reports a name that is no filter, with the names that are. A field is not corrected to another name: rows that
    /// were read can be filtered by it.
    fn report_unknown_filter(&mut self, exposed: &ExposedEntity, params: &[&Param], slot: &Name, style: NameStyle) {
        let entity = exposed.styled_name(style);
        let alternatives: Vec<String> = similar_names(&slot.text, params.iter().map(|p| p.name.as_str()))
            .iter()
            .filter_map(|name| params.iter().find(|p| &p.name == name))
            .map(|p| self.describe_slot(exposed, p, style))
            .collect();
        let field = self.scope.field(exposed, &slot.text);
        // A name that is no field, either, was most likely meant as one of the filters.
        let names: Vec<String> =
            params.iter().map(|p| self.scope.styled_slot(&exposed.catalog, &p.name, style)).collect();
        let fix = if field.is_none() { rename_edit(slot, names.iter().map(String::as_str)) } else { None };
        let message = if params.is_empty() {
            format!("{entity} takes no filters, so `{}` is not one", slot.text)
        } else {
            let all = list_all_names(params.iter().map(|p| p.name.as_str()), PARAMS_SHOWN, fix.as_ref());
            format!("no filter `{}` on {entity}{all}", slot.text)
        };
        let message = match field {
            Some(_) => format!("{message}; rows that were read are filtered with `.filter{{{}=…}}`", slot.text),
            None => message,
        };
        let diagnostic = Diagnostic::error(codes::UNKNOWN_FILTER, slot.span, message);
        self.report(diagnostic.with_alternatives(alternatives).with_fix(fix));
    }

    /// Describes a parameter for a list of alternatives: `state (open/doing/done)`, or `p3 state (…)` so that both
    /// names can be copied.
    pub(super) fn describe_slot(&self, exposed: &ExposedEntity, param: &Param, style: NameStyle) -> String {
        let symbol = self.scope.styled_slot(&exposed.catalog, &param.name, style);
        let kind = param.kind.describe();
        if symbol == param.name { format!("{symbol} ({kind})") } else { format!("{symbol} {} ({kind})", param.name) }
    }

    /// Checks `e1(…)`.
    pub(super) fn get(
        &mut self,
        exposed: &'s ExposedEntity,
        written: &EntityName,
        key: &Key,
        span: Span,
    ) -> Option<NodeId> {
        let style = NameStyle::of(&written.name.text);
        let Some(capability) = exposed.catalog.get_of(&exposed.entity) else {
            self.report_no_get(exposed, style, key, span);
            return None;
        };
        let args = self.key_args(exposed, written, key, span)?;
        let rows = self.capability_rows(&exposed.catalog, capability, false);
        let call = CapabilityRef::new(&exposed.catalog, capability);
        Some(self.add_node(StepKind::Get { call, args, fields: None }, rows))
    }

    /// Reports that an entity cannot be read by its key. The correction reads its list, with the filters that it needs,
    /// or its search.
    fn report_no_get(&mut self, exposed: &ExposedEntity, style: NameStyle, key: &Key, span: Span) {
        let searched = || exposed.catalog.searches(&exposed.entity).next();
        let name = exposed.styled_name(style);
        let list = self.list_sample(exposed, style).or_else(|| searched().map(|_| format!("{name}~$")));
        let parts = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
        let fix = list.map(|list| match (key, parts) {
            (Key::Unary(value), [only]) => {
                let slot = self.scope.styled_slot(&exposed.catalog, only, style);
                Edit::replace(span, format!("{list}.filter{{{slot}=")).append_original(value.span).append("}")
            }
            (Key::Slots(slots), _) => {
                let all = slots.iter().map(|arg| arg.slot.span.to(arg.value.span)).reduce(Span::to);
                Edit::replace(span, format!("{list}.filter{{")).append_original(all.unwrap_or_default()).append("}")
            }
            _ => Edit::replace(span, list),
        });
        let message = format!("{name} cannot be read by its key");
        self.report(Diagnostic::error(codes::NO_GET, span, message).with_fix(fix));
    }

    /// Checks the parts of an entity's key, from `e1("OPS")` or `e1(p1="OPS", p2=7)`. `span` is that of the whole
    /// `e1(…)`.
    pub(super) fn key_args(
        &mut self,
        exposed: &ExposedEntity,
        written: &EntityName,
        key: &Key,
        span: Span,
    ) -> Option<Args> {
        let entity = exposed.definition()?;
        let fields: Vec<&catalog::Field> = entity.key.iter().filter_map(|k| entity.fields.get(k)).collect();
        let mut args = Args::new();
        match (key, fields.as_slice()) {
            (Key::Unary(value), [only]) => {
                args.insert(SmolStr::new(&only.name), self.check_value(&exposed.catalog, &only.kind, value)?);
            }
            (Key::Unary(value), parts) if self.allows_placeholders && matches!(value.kind, ValueKind::Hole) => {
                for part in parts {
                    args.insert(SmolStr::new(&part.name), self.check_value(&exposed.catalog, &part.kind, value)?);
                }
            }
            (Key::Unary(_), _) => {
                self.report_key_mismatch(exposed, written, key, span, span);
                return None;
            }
            (Key::Slots(slots), fields) => {
                for Arg { slot, value } in slots {
                    let name = self.scope.wire_name(&exposed.catalog, &slot.text);
                    let Some(field) = fields.iter().find(|f| f.name == name) else {
                        self.report_key_mismatch(exposed, written, key, slot.span, span);
                        return None;
                    };
                    let value = self.check_value(&exposed.catalog, &field.kind, value)?;
                    if args.insert(SmolStr::new(&field.name), value).is_some() {
                        self.error(codes::DUPLICATE_ARGUMENT, slot.span, format!("`{}` is given twice", slot.text));
                        return None;
                    }
                }
            }
        }
        if args.values().filter(|v| v.known().is_none_or(|v| !v.is_null())).count() != fields.len() {
            self.report_key_mismatch(exposed, written, key, span, span);
            return None;
        }
        Some(args)
    }

    /// Reports a key that is not the entity's. `wrong` is the span of the mistake, `whole` that of `e1(…)`.
    fn report_key_mismatch(
        &mut self,
        exposed: &ExposedEntity,
        written: &EntityName,
        key: &Key,
        wrong: Span,
        whole: Span,
    ) {
        let Some(entity) = exposed.definition() else { return };
        let style = NameStyle::of(&written.name.text);
        let parts: Vec<String> =
            entity.key.iter().map(|k| self.scope.styled_slot(&exposed.catalog, k, style)).collect();
        let message = format!("the key of {} is {}", exposed.styled_name(style), parts.join(", "));
        let brackets = Span { start: written.span().end, end: whole.end };
        let fix = self.key_edit(exposed, key, brackets, style);
        self.report(Diagnostic::error(codes::KEY_MISMATCH, wrong, message).with_fix([fix]));
    }
}
