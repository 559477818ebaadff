//! Checks references to entities: `Person("ada")`, or the key alone if it has one part.
//! Invariant: a reference is the key of an entity in the slot's own catalog.

use base::{Diagnostic, Edit, Span};
use catalog::Type;
use serde_json::Value as Json;

use super::{RefCatalog, list_of_one, object_of};
use crate::check::{Checker, NodeId};
use crate::codes;
use crate::ir::{Args, Expr, StepKind};
use crate::scope::{ExposedEntity, NameStyle};
use crate::syntax::tree::{EntityName, Key, Value};

impl<'s> Checker<'s> {
    /// Checks `Person("ada")` as a value. An arm of a union with brackets in place of braces is reported.
    pub(super) fn reference(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        kind: &Type,
        entity: &EntityName,
        key: &Key,
        span: Span,
    ) -> Option<Expr> {
        if let Some(union) = self.arms(kind).filter(|u| u.arms.contains_key(entity.name.text.as_str())) {
            let slots: Vec<String> =
                union.arms.get(entity.name.text.as_str()).into_iter().flatten().map(|(n, _)| n.clone()).collect();
            let message = format!("an arm of a union takes braces: `{}{{…}}`", entity.name.text);
            let edit = Edit::replace(span, format!("{}{{", entity.name.text));
            let edit = match (key, slots.first()) {
                (Key::Unary(value), Some(slot)) => edit.append(format!("{slot}=")).append_original(value.span),
                (Key::Unary(_), None) => edit,
                (Key::Slots(args), _) => {
                    let all = args.iter().map(|arg| arg.slot.span.to(arg.value.span)).reduce(Span::to);
                    edit.append_original(all.unwrap_or_default())
                }
            };
            self.report(Diagnostic::error(codes::UNKNOWN_ARM, span, message).with_fix([edit.append("}")]));
            return None;
        }
        let referred = self.resolve_entity(entity)?;
        let (target, list) = match kind {
            Type::Array(of) => (of.as_ref(), true),
            other => (other, false),
        };
        match target {
            Type::Ref(wanted)
                if *wanted == referred.entity
                    && ref_catalog.is_none_or(|catalog| catalog.id == referred.catalog.id) => {}
            Type::Json => {}
            Type::Ref(wanted) => {
                // Two APIs may use one name for different entities, so the catalogs are named.
                let (wanted, found) = match ref_catalog.filter(|_| *wanted == referred.entity) {
                    Some(catalog) => {
                        (format!("{}:{wanted}", catalog.id), format!("{}:{}", referred.catalog.id, referred.entity))
                    }
                    None => (wanted.clone(), referred.entity.clone()),
                };
                let message = format!("expected a reference to {wanted}, found one to {found}");
                self.error(codes::WRONG_TYPE, entity.span(), message);
                return None;
            }
            _ => {
                let message = format!("expected {}, found a reference to {}", kind.describe(), referred.entity);
                self.error(codes::WRONG_TYPE, span, message);
                return None;
            }
        }
        let args = self.key_args(referred, entity, key, span)?;
        let reference = reference_of(referred, args)?;
        Some(if list { list_of_one(reference) } else { reference })
    }

    /// Returns the key that `x = E(key)` was written with. In the place of a reference, `x` means `E(key)` and is not
    /// read.
    pub(in crate::check) fn written_key(&self, node: NodeId) -> Option<Expr> {
        let node = self.checked_node(node);
        let StepKind::Get { call, args, .. } = &node.kind else { return None };
        let exposed = self.exposed_of(&node.rows)?;
        let own = exposed.catalog.get_of(&exposed.entity)?;
        if own.name != call.capability { None } else { reference_of(exposed, args.clone()) }
    }

    /// Checks a scalar in the place of a reference, for which it may stand if the target's key has one part.
    pub(super) fn scalar_reference(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        target: &str,
        value: &Value,
    ) -> Option<Expr> {
        let Some(entity) = ref_catalog.and_then(|catalog| catalog.entity(target)) else {
            return Some(self.infer_value(value)?.expr);
        };
        if let [only] = entity.key.as_slice() {
            let kind = entity.fields.get(only)?.kind.clone();
            return self.check_value_in(ref_catalog, &kind, value);
        }
        let referred = ref_catalog.and_then(|catalog| self.scope.find_exposed(catalog, target));
        let seed = match ref_catalog.filter(|catalog| referred.is_none() && catalog.offers(target)) {
            Some(catalog) => format!(", for which the session needs the seed {}:{target} (plasm_context)", catalog.id),
            None => String::new(),
        };
        let message = format!("{target} has a key of {} parts; write a reference{seed}", entity.key.len());
        let fix = referred.map(|exposed| self.reference_edit(exposed, value, NameStyle::Names));
        self.report(Diagnostic::error(codes::WRONG_TYPE, value.span, message).with_fix(fix));
        None
    }
}

/// Makes the reference of a whole key: its only part, or an object of its parts.
pub(in crate::check) fn reference_of(exposed: &ExposedEntity, mut args: Args) -> Option<Expr> {
    match exposed.definition()?.key.as_slice() {
        [only] => args.remove(only.as_str()),
        parts => {
            let pairs: Option<Vec<(String, Expr)>> =
                parts.iter().map(|p| Some((p.clone(), args.remove(p.as_str())?))).collect();
            pairs.map(object_of)
        }
    }
}

/// Returns whether a value is known to be `null`.
pub(in crate::check) fn is_null(value: &Expr) -> bool {
    value.known().is_some_and(Json::is_null)
}
