//! Checks the sources of rows: lists, queries, searches and reads by key.
//! Invariant: a query is bound to exactly one capability, which the written filters select. Each required parameter of
//! the capability has a value.

use base::{Diagnostic, Edit, Span, similar_names};
use catalog::{Capability, Param};
use smol_str::SmolStr;

use super::correction::{MAX_PARAMS_SHOWN, WrittenFilters, list_all_names, rename_edit};
use super::{Checker, NodeId};
use crate::codes;
use crate::ir::{Args, CapabilityRef, StepKind};
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{Arg, EntityName, Key, Name, Operator, Pred, Value, ValueKind};

impl<'s> Checker<'s> {
    /// Checks `e1` and `e1{…}`. `written` is the entity name as the program writes it.
    pub(super) fn check_query(
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
        let args = self.check_query_args(exposed, capability, filters, style)?;
        let missing: Vec<&Param> = capability.required().filter(|p| !args.contains_key(p.name.as_str())).collect();
        if !missing.is_empty() {
            self.report_missing_params(exposed, &missing, style, filters, span);
            return None;
        }
        Some(self.add_query(exposed, capability, args))
    }

    /// Checks the filters of a list or a search. The parameter for the search text is not available as a filter.
    fn check_query_args(
        &mut self,
        exposed: &ExposedEntity,
        capability: &Capability,
        filters: WrittenFilters<'_>,
        style: NameStyle,
    ) -> Option<Args> {
        let params: Vec<&Param> =
            capability.params.values().filter(|p| capability.text.as_ref() != Some(&p.name)).collect();
        self.check_filters(exposed, &params, filters, style)
    }

    /// Adds the node of a list or a search.
    fn add_query(&mut self, exposed: &ExposedEntity, capability: &Capability, args: Args) -> NodeId {
        let rows = self.row_type_of_capability(&exposed.catalog, capability, true);
        let call = CapabilityRef::new(&exposed.catalog, capability);
        self.add_node(StepKind::Query { call, args, limit: None, page_size: None, fields: None }, rows)
    }

    /// Checks `e1~"words"{…}`.
    pub(super) fn check_search(
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
        let text_value = self.check_value(&exposed.catalog, &param.kind, text);
        let filters = WrittenFilters { preds: &expanded, start: text.span.end, end: span.end };
        let mut args = self.check_query_args(exposed, capability, filters, style)?;
        args.insert(SmolStr::new(&param.name), text_value?);
        let missing: Vec<&Param> = capability.required().filter(|p| !args.contains_key(p.name.as_str())).collect();
        if !missing.is_empty() {
            self.report_missing_params(exposed, &missing, style, filters, span);
            return None;
        }
        Some(self.add_query(exposed, capability, args))
    }

    /// Selects the capability that accepts the most of the written filters. Among equals, the one with the fewest
    /// missing required parameters is selected.
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
        // `max_by_key` returns the last of equal items. The order is reversed so that the capability that the catalog
        // declares first is selected.
        candidates.iter().copied().rev().max_by_key(|capability| {
            let known = written.iter().filter(|name| capability.params.contains_key(**name)).count();
            let missing = capability.required().filter(|p| !written.contains(&p.name.as_str())).count();
            (known, std::cmp::Reverse(missing))
        })
    }

    /// Reports that an entity cannot be listed. The correction is a search or, if the entity has no search, a read by
    /// key.
    fn report_no_list(&mut self, exposed: &ExposedEntity, style: NameStyle, filters: WrittenFilters<'_>, span: Span) {
        let preds = filters.preds;
        let name = exposed.styled_name(style);
        let search = exposed.catalog.searches(&exposed.entity).next();
        let (message, fix) = match search {
            Some(search) => {
                let is_search_param = |p: &Pred| {
                    let slot = p.path.names.first().map(|n| self.scope.wire_name(&exposed.catalog, &n.text));
                    p.op == Operator::Eq
                        && p.path.names.len() == 1
                        && slot.is_some_and(|s| search.params.contains_key(s))
                };
                let is_moved: Vec<bool> = preds.iter().map(|p| !is_search_param(p)).collect();
                let mut fix = if is_moved.contains(&true) { filters.move_edits(&is_moved) } else { Vec::new() };
                let end = if preds.is_empty() { filters.end } else { filters.start };
                fix.insert(0, Edit::replace(Span { start: filters.start, end }, "~$"));
                (format!("{name} cannot be listed, only searched"), fix)
            }
            None => {
                (format!("{name} cannot be listed"), vec![Edit::replace(span, self.write_key_sample(exposed, style))])
            }
        };
        self.report(Diagnostic::error(codes::NO_LIST, span, message).with_fix(fix));
    }

    /// Reports that an entity cannot be searched. The correction lists the entity and filters the rows by the search
    /// text.
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
        let text_fields = || fields().filter(|f| matches!(f.kind, catalog::Type::String(_)));
        let usual_text_field =
            text_fields().find(|f| ["title", "name", "subject", "text", "about"].contains(&f.name.as_str()));
        let list = self.write_list_sample(exposed, style);
        let fix = match (list, usual_text_field.or_else(|| text_fields().next())) {
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
            (None, _) => self.write_get_sample(exposed, style).map(|get| Edit::replace(span, get)),
        };
        self.report(Diagnostic::error(codes::NO_SEARCH, span, message).with_fix(fix));
    }

    /// Returns a list of the entity, with sample values for the required filters.
    fn write_list_sample(&self, exposed: &ExposedEntity, style: NameStyle) -> Option<String> {
        let query = exposed.catalog.queries(&exposed.entity).next()?;
        let slots = self.write_slot_samples(exposed, query.required(), style);
        let braces = if slots.is_empty() { String::new() } else { format!("{{{slots}}}") };
        Some(format!("{}{braces}", exposed.styled_name(style)))
    }

    /// Returns the entity with a sample of its key, or `None` if the entity cannot be read by its key.
    fn write_get_sample(&self, exposed: &ExposedEntity, style: NameStyle) -> Option<String> {
        exposed.catalog.get_of(&exposed.entity).map(|_| self.write_key_sample(exposed, style))
    }

    /// Returns samples of parameters for the author to fill in, such as `project=$, number=$`.
    pub(super) fn write_slot_samples<'p>(
        &self,
        exposed: &ExposedEntity,
        params: impl Iterator<Item = &'p Param>,
        style: NameStyle,
    ) -> String {
        let slot_sample = |p: &Param| {
            let slot = self.scope.styled_slot(&exposed.catalog, &p.name, style);
            format!("{slot}={}", self.write_sample(&exposed.catalog, &p.kind, style))
        };
        params.map(slot_sample).collect::<Vec<_>>().join(", ")
    }

    /// Returns a sample of the entity's key for the author to fill in, such as `Ticket(project=$, number=$)`.
    pub(super) fn write_key_sample(&self, exposed: &ExposedEntity, style: NameStyle) -> String {
        let entity = exposed.definition();
        let key = entity.into_iter().flat_map(|e| e.key.iter().filter_map(|k| e.fields.get(k)));
        let slots: Vec<String> = key
            .map(|f| {
                let slot = self.scope.styled_slot(&exposed.catalog, &f.name, style);
                format!("{slot}={}", self.write_sample(&exposed.catalog, &f.kind, style))
            })
            .collect();
        format!("{}({})", exposed.styled_name(style), slots.join(", "))
    }

    /// Reports the required parameters that have no filter. The correction adds them behind the written filters.
    pub(super) fn report_missing_params(
        &mut self,
        exposed: &ExposedEntity,
        missing: &[&Param],
        style: NameStyle,
        filters: WrittenFilters<'_>,
        span: Span,
    ) {
        let fix = filters.addition_edit(&self.write_slot_samples(exposed, missing.iter().copied(), style));
        let names: Vec<String> =
            missing.iter().map(|p| format!("`{}`", self.scope.styled_slot(&exposed.catalog, &p.name, style))).collect();
        let message = format!("{} needs {}", exposed.styled_name(style), names.join(", "));
        self.report(Diagnostic::error(codes::MISSING_ARGUMENT, span, message).with_fix([fix]));
    }

    /// Checks the filters of a source or a relation. Each filter needs a parameter, the operator `=` and a value of
    /// the parameter's type.
    pub(super) fn check_filters(
        &mut self,
        exposed: &ExposedEntity,
        params: &[&Param],
        filters: WrittenFilters<'_>,
        style: NameStyle,
    ) -> Option<Args> {
        let preds = filters.preds;
        let mut args = Args::new();
        let mut is_valid = true;
        // Marks the filters that the API does not have but that rows can be filtered by. The first diagnostic moves
        // all of them behind the read, because separate deletions of neighbouring filters would overlap.
        let mut is_moved = vec![false; preds.len()];
        let mut moving_report_index: Option<usize> = None;
        for (at, pred) in preds.iter().enumerate() {
            let Some(first) = pred.path.names.first() else { continue };
            let param = match pred.path.names.as_slice() {
                [only] => self.scope.param(&exposed.catalog, params.iter().copied(), &only.text),
                [slot, key] => self.param_by_key(exposed, params, slot, key),
                _ => None,
            };
            let report_index = self.diagnostics.len();
            let Some(param) = param else {
                self.report_not_a_filter(exposed, params, pred, style);
                is_valid = false;
                is_moved[at] = self.can_filter_rows(exposed, pred);
                moving_report_index = moving_report_index.or(is_moved[at].then_some(report_index));
                continue;
            };
            self.note_case_fix(first, &param.name);
            if pred.op != Operator::Eq {
                let report_index = self.diagnostics.len();
                self.report_wrong_operator(first, pred);
                is_valid = false;
                is_moved[at] = self.can_filter_rows(exposed, pred);
                moving_report_index = moving_report_index.or(is_moved[at].then_some(report_index));
                continue;
            }
            let Some(value) = self.check_value(&exposed.catalog, &param.kind, &pred.value) else {
                is_valid = false;
                continue;
            };
            // A filter with `null` is left out of the call.
            if value.known().is_some_and(serde_json::Value::is_null) {
                continue;
            }
            if args.insert(SmolStr::new(&param.name), value).is_some() {
                self.report_error(codes::DUPLICATE_ARGUMENT, first.span, format!("`{}` is given twice", first.text));
                is_valid = false;
            }
        }
        if let Some(report) = moving_report_index.and_then(|at| self.diagnostics.get_mut(at)) {
            report.fix = filters.move_edits(&is_moved);
        }
        is_valid.then_some(args)
    }

    /// Reports a filter of the API whose operator is not `=`.
    fn report_wrong_operator(&mut self, slot: &Name, pred: &Pred) {
        let message = format!(
            "`{}` is sent to the API, which only knows `=`; rows that were read are compared with `.filter{{…}}`",
            slot.text
        );
        self.report_error(codes::WRONG_OPERATOR, pred.op_span, message);
    }

    /// Finds the parameter of a filter such as `owner.id`. It means `owner` if `owner` is a reference whose key is
    /// `id`.
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
            self.report_error(codes::UNKNOWN_FILTER, first.span, message);
            return;
        }
        self.report_unknown_filter(exposed, params, first, style);
    }

    /// Reports a name that is not a filter, with the names of the filters. The name of a field is not corrected,
    /// because the rows can be filtered by that field after the read.
    fn report_unknown_filter(&mut self, exposed: &ExposedEntity, params: &[&Param], slot: &Name, style: NameStyle) {
        let entity = exposed.styled_name(style);
        let alternatives: Vec<String> = similar_names(&slot.text, params.iter().map(|p| p.name.as_str()))
            .iter()
            .filter_map(|name| params.iter().find(|p| &p.name == name))
            .map(|p| self.describe_slot(exposed, p, style))
            .collect();
        let field = self.scope.field(exposed, &slot.text);
        // A name that is not a field either was most likely meant as one of the filters.
        let names: Vec<String> =
            params.iter().map(|p| self.scope.styled_slot(&exposed.catalog, &p.name, style)).collect();
        let fix = if field.is_none() { rename_edit(slot, names.iter().map(String::as_str)) } else { None };
        let message = if params.is_empty() {
            format!("{entity} takes no filters, so `{}` is not one", slot.text)
        } else {
            let all = list_all_names(params.iter().map(|p| p.name.as_str()), MAX_PARAMS_SHOWN, fix.as_ref());
            format!("no filter `{}` on {entity}{all}", slot.text)
        };
        let message = match field {
            Some(_) => format!("{message}; rows that were read are filtered with `.filter{{{}=…}}`", slot.text),
            None => message,
        };
        let diagnostic = Diagnostic::error(codes::UNKNOWN_FILTER, slot.span, message);
        self.report(diagnostic.with_alternatives(alternatives).with_fix(fix));
    }

    /// Describes a parameter for a list of alternatives, such as `state (open/doing/done)`. With symbols, the text is
    /// `p3 state (…)`, so that both names can be copied.
    pub(super) fn describe_slot(&self, exposed: &ExposedEntity, param: &Param, style: NameStyle) -> String {
        let symbol = self.scope.styled_slot(&exposed.catalog, &param.name, style);
        let kind = param.kind.describe();
        if symbol == param.name { format!("{symbol} ({kind})") } else { format!("{symbol} {} ({kind})", param.name) }
    }

    /// Checks `e1(…)`, a read by key.
    pub(super) fn check_get(
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
        let args = self.check_key_args(exposed, written, key, span)?;
        let rows = self.row_type_of_capability(&exposed.catalog, capability, false);
        let call = CapabilityRef::new(&exposed.catalog, capability);
        Some(self.add_node(StepKind::Get { call, args, fields: None }, rows))
    }

    /// Reports that an entity cannot be read by its key. The correction is a list of the entity with the required
    /// filters or, if the entity has no list, a search.
    fn report_no_get(&mut self, exposed: &ExposedEntity, style: NameStyle, key: &Key, span: Span) {
        let first_search = || exposed.catalog.searches(&exposed.entity).next();
        let name = exposed.styled_name(style);
        let list = self.write_list_sample(exposed, style).or_else(|| first_search().map(|_| format!("{name}~$")));
        let key_parts = exposed.definition().map(|e| e.key.as_slice()).unwrap_or_default();
        let fix = list.map(|list| match (key, key_parts) {
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

    /// Checks the key in `e1("OPS")` or `e1(p1="OPS", p2=7)` and returns its parts. `span` is the span of the whole
    /// read.
    pub(super) fn check_key_args(
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
            (Key::Unary(value), key_parts)
                if self.allows_placeholders && matches!(value.kind, ValueKind::Placeholder) =>
            {
                for part in key_parts {
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
                        self.report_error(
                            codes::DUPLICATE_ARGUMENT,
                            slot.span,
                            format!("`{}` is given twice", slot.text),
                        );
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

    /// Reports a key that does not match the entity's key. `wrong` is the span of the mistake, `whole` the span of
    /// `e1(…)`.
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
        let key_parts: Vec<String> =
            entity.key.iter().map(|k| self.scope.styled_slot(&exposed.catalog, k, style)).collect();
        let message = format!("the key of {} is {}", exposed.styled_name(style), key_parts.join(", "));
        let brackets = Span { start: written.span().end, end: whole.end };
        let fix = self.key_correction_edit(exposed, key, brackets, style);
        self.report(Diagnostic::error(codes::KEY_MISMATCH, wrong, message).with_fix([fix]));
    }
}
