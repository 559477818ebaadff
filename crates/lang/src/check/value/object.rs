//! Checks objects and arms of unions. An arm is one of the named alternatives of a union type.
//! Invariant: every slot is known, and every required slot is given. An arm is sent in the form that the API expects.

use base::{Diagnostic, Edit, Span, similar_names};
use catalog::{ObjectSlot, TextStyle, Type, Union};
use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use super::{RefCatalog, is_null, list_of_one, object_of};
use crate::check::Checker;
use crate::check::correction::{MAX_SLOTS_SHOWN, list_all_names, list_append_edit, rename_edit};
use crate::codes;
use crate::ir::Expr;
use crate::syntax::tree::{Arg, Entry, Name, Operator, Pred, Value, ValueKind};

/// The slots of an object or an arm, by name.
type SlotTypes = IndexMap<String, ObjectSlot>;

impl<'s> Checker<'s> {
    /// Returns the union if a slot takes an arm of a union or a list of arms.
    pub(in crate::check) fn union_of_slot<'k>(&self, kind: &'k Type) -> Option<&'k Union> {
        match kind {
            Type::Union(union) => Some(union),
            Type::Array(of) => match of.as_ref() {
                Type::Union(union) => Some(union),
                _ => None,
            },
            _ => None,
        }
    }

    /// Checks an object such as `{amount: 5, currency: "EUR"}`.
    pub(super) fn check_object(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        kind: &Type,
        entries: &[Entry],
        span: Span,
    ) -> Option<Expr> {
        let pairs: Vec<(&Name, &Value)> = entries.iter().map(|e| (&e.key, &e.value)).collect();
        match kind {
            Type::Object(slots) => Some(object_of(self.check_slots(ref_catalog, slots, &pairs, span, None)?)),
            Type::Union(union) => self.check_tagged_object(ref_catalog, union, &pairs, span),
            Type::Json => self.infer_object(entries),
            Type::String(TextStyle::JsonText) => {
                let infer_value = self.infer_object(entries)?;
                let Some(known) = infer_value.known() else {
                    let message = "a text of JSON is written out; it takes no names from elsewhere";
                    self.report_error(codes::WRONG_TYPE, span, message);
                    return None;
                };
                Some(Json::String(known.to_string()).into())
            }
            _ => {
                let message = format!("expected {}, found an object", kind.describe());
                self.report_error(codes::WRONG_TYPE, span, message);
                None
            }
        }
    }

    /// Checks an object without a declared type. Its fields keep their inferred values.
    fn infer_object(&mut self, entries: &[Entry]) -> Option<Expr> {
        let pairs: Vec<Option<(String, Expr)>> =
            entries.iter().map(|e| Some((e.key.text.to_string(), self.infer_value(&e.value)?.expr))).collect();
        Some(object_of(pairs.into_iter().collect::<Option<_>>()?))
    }

    /// Checks an object that contains the name of its arm as a tag, such as `{type: "text", body: "…"}`.
    fn check_tagged_object(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        union: &Union,
        pairs: &[(&Name, &Value)],
        span: Span,
    ) -> Option<Expr> {
        let tag = union.tag.as_deref();
        let tag_entry = pairs.iter().find(|(key, _)| Some(key.text.as_str()) == tag);
        let name = tag_entry.and_then(|(key, value)| match &value.kind {
            ValueKind::String(text) => Some(Name { text: text.into(), span: key.span }),
            _ => None,
        });
        let Some(name) = name.filter(|_| !union.nest) else {
            self.report_missing_arm(ref_catalog, union, span);
            return None;
        };
        let other_pairs: Vec<(&Name, &Value)> =
            pairs.iter().copied().filter(|(key, _)| Some(key.text.as_str()) != tag).collect();
        self.check_arm(ref_catalog, union, &name, &other_pairs, span)
    }

    /// Reports an object for a union that does not name an arm.
    fn report_missing_arm(&mut self, ref_catalog: RefCatalog<'_>, union: &Union, span: Span) {
        let arms: Vec<String> = union.arms.keys().map(|a| self.write_placeholder_arm(ref_catalog, a, union)).collect();
        let message = "one arm of a union is written with its name";
        self.report(Diagnostic::error(codes::UNKNOWN_ARM, span, message).with_alternatives(arms));
    }

    /// Checks `Circle{radius=1}` as a value. The parser reads this form as a query.
    pub(super) fn check_arm_of_preds(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        kind: &Type,
        name: &Name,
        preds: &[Pred],
        span: Span,
    ) -> Option<Expr> {
        let union = self.union_of_slot(kind)?.clone();
        let mut pairs = Vec::new();
        for pred in preds {
            let [slot] = pred.path.names.as_slice() else {
                self.report_error(codes::UNKNOWN_ARGUMENT, span, "a slot of an arm is one name");
                return None;
            };
            if pred.op != Operator::Eq {
                self.report_error(
                    codes::WRONG_OPERATOR,
                    pred.op_span,
                    format!("`{}` is given a value with `=`", slot.text),
                );
                return None;
            }
            pairs.push((slot, &pred.value));
        }
        let arm = self.check_arm(ref_catalog, &union, name, &pairs, span)?;
        Some(if matches!(kind, Type::Array(_)) { list_of_one(arm) } else { arm })
    }

    /// Checks the argument of `.m1(Circle{radius=1})`.
    pub(in crate::check) fn check_arm_of_args(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        union: &Union,
        name: &Name,
        args: &[Arg],
        span: Span,
    ) -> Option<Expr> {
        let pairs: Vec<(&Name, &Value)> = args.iter().map(|a| (&a.slot, &a.value)).collect();
        self.check_arm(ref_catalog, union, name, &pairs, span)
    }

    /// Checks an arm with its slots. `span` is the span of the whole arm.
    pub(super) fn check_arm(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        union: &Union,
        name: &Name,
        pairs: &[(&Name, &Value)],
        span: Span,
    ) -> Option<Expr> {
        let arm_in_other_case = || union.arms.iter().find(|(arm, _)| arm.eq_ignore_ascii_case(&name.text));
        let Some((arm, slots)) = union.arms.get_key_value(name.text.as_str()).or_else(arm_in_other_case) else {
            let alternatives = similar_names(&name.text, union.arms.keys().map(String::as_str));
            let message = format!("no arm `{}`", name.text);
            let fix = rename_edit(name, union.arms.keys().map(String::as_str));
            let diagnostic = Diagnostic::error(codes::UNKNOWN_ARM, name.span, message);
            self.report(diagnostic.with_alternatives(alternatives).with_fix(fix));
            return None;
        };
        self.note_case_fix(name, arm);
        let given_slots = self.check_slots(ref_catalog, slots, pairs, span, Some(&name.text))?;
        Some(arm_expr(union, arm, given_slots))
    }

    /// Checks the slots of an object or, if `arm` is its name, the slots of an arm.
    fn check_slots(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        slots: &SlotTypes,
        pairs: &[(&Name, &Value)],
        span: Span,
        arm: Option<&str>,
    ) -> Option<Vec<(String, Expr)>> {
        let mut given_slots: Vec<(String, Expr)> = Vec::new();
        let mut is_valid = true;
        for (key, value) in pairs {
            let wire = self.wire_name_of(ref_catalog.map(|catalog| catalog.as_ref()), &key.text).to_owned();
            let Some((name, slot)) = slots.get_key_value(&wire).or_else(|| slots.get_key_value(key.text.as_str()))
            else {
                let alternatives = similar_names(&key.text, slots.keys().map(String::as_str));
                let fix = rename_edit(key, slots.keys().map(String::as_str));
                let all = list_all_names(slots.keys().map(String::as_str), MAX_SLOTS_SHOWN, fix.as_ref());
                let message = format!("no slot `{}` in it{all}", key.text);
                let diagnostic = Diagnostic::error(codes::UNKNOWN_ARGUMENT, key.span, message);
                self.report(diagnostic.with_alternatives(alternatives).with_fix(fix));
                is_valid = false;
                continue;
            };
            if given_slots.iter().any(|(g, _)| g == name) {
                self.report_error(codes::DUPLICATE_ARGUMENT, key.span, format!("`{}` is given twice", key.text));
                is_valid = false;
            }
            match self.check_value_in(ref_catalog, &slot.kind, value) {
                Some(value) if is_null(&value) => {}
                Some(value) => given_slots.push((name.clone(), value)),
                None => is_valid = false,
            }
        }
        let is_missing =
            |(name, slot): &(&String, &ObjectSlot)| slot.required && !given_slots.iter().any(|(g, _)| g == *name);
        let missing: Vec<&String> = slots.iter().filter(is_missing).map(|(name, _)| name).collect();
        if is_valid && !missing.is_empty() {
            let names: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
            let slot_separator = if arm.is_some() { "=" } else { ": " };
            let placeholders: Vec<String> = missing.iter().map(|name| format!("{name}{slot_separator}$")).collect();
            let fix = match (pairs.last(), arm) {
                (None, Some(arm)) => Edit::replace(span, format!("{arm}{{{}}}", placeholders.join(", "))),
                (last, _) => list_append_edit(
                    last.map(|(_, value)| value.span),
                    span.end.saturating_sub(1),
                    &placeholders.join(", "),
                ),
            };
            let message = format!("it needs {}", names.join(", "));
            self.report(Diagnostic::error(codes::MISSING_ARGUMENT, span, message).with_fix([fix]));
            return None;
        }
        is_valid.then_some(given_slots)
    }
}

/// Makes the expression of an arm in the form that the API expects.
fn arm_expr(union: &Union, name: &str, given_slots: Vec<(String, Expr)>) -> Expr {
    let known: Option<Map<String, Json>> =
        given_slots.iter().map(|(key, value)| Some((key.clone(), value.known()?.clone()))).collect();
    if let Some(slots) = known {
        return union.arm(name, slots).into();
    }
    let tag = union.tag.iter().map(|tag| (tag.clone(), Json::from(name).into()));
    let inner = if union.nest { vec![(name.to_owned(), object_of(given_slots))] } else { given_slots };
    Expr::Object(tag.chain(inner).collect())
}
