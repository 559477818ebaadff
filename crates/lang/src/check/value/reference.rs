//! Checks references to entities: `Person("ada")`, or the key alone if the key has one part.
//! Invariant: a reference is the key of an entity in the catalog of the slot.

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
    /// Checks `Person("ada")` as a value. Reports an arm of a union that is written with parentheses instead of
    /// braces.
    pub(super) fn check_reference(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        kind: &Type,
        entity: &EntityName,
        key: &Key,
        span: Span,
    ) -> Option<Expr> {
        if let Some(union) = self.union_of_slot(kind).filter(|u| u.arms.contains_key(entity.name.text.as_str())) {
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
        let (target, wants_list) = match kind {
            Type::Array(of) => (of.as_ref(), true),
            other => (other, false),
        };
        match target {
            Type::Ref(wanted)
                if *wanted == referred.entity
                    && ref_catalog.is_none_or(|catalog| catalog.id == referred.catalog.id) => {}
            Type::Json => {}
            Type::Ref(wanted) => {
                // Two APIs may use one name for different entities, so the message includes the catalogs.
                let (wanted, found) = match ref_catalog.filter(|_| *wanted == referred.entity) {
                    Some(catalog) => {
                        (format!("{}:{wanted}", catalog.id), format!("{}:{}", referred.catalog.id, referred.entity))
                    }
                    None => (wanted.clone(), referred.entity.clone()),
                };
                let message = format!("expected a reference to {wanted}, found one to {found}");
                self.report_error(codes::WRONG_TYPE, entity.span(), message);
                return None;
            }
            _ => {
                let message = format!("expected {}, found a reference to {}", kind.describe(), referred.entity);
                self.report_error(codes::WRONG_TYPE, span, message);
                return None;
            }
        }
        let args = self.check_key_args(referred, entity, key, span)?;
        let reference = reference_of(referred, args)?;
        Some(if wants_list { list_of_one(reference) } else { reference })
    }

    /// Returns the key of `x` if `x` was bound by `x = E(key)`. Where a reference is wanted, `x` then means the key,
    /// and `E` is not read.
    pub(in crate::check) fn written_key(&self, node: NodeId) -> Option<Expr> {
        let node = self.checked_node(node);
        let StepKind::Get { call, args, .. } = &node.kind else { return None };
        let exposed = self.exposed_entity_of(&node.rows)?;
        let own = exposed.catalog.get_of(&exposed.entity)?;
        if own.name != call.capability { None } else { reference_of(exposed, args.clone()) }
    }

    /// Checks a scalar where a reference is wanted. It is accepted if the key of the target entity has one part.
    pub(super) fn check_scalar_reference(
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
        let fix = referred.map(|exposed| self.reference_correction_edit(exposed, value, NameStyle::Names));
        self.report(Diagnostic::error(codes::WRONG_TYPE, value.span, message).with_fix(fix));
        None
    }
}

/// Makes a reference from the parts of a key: the only part itself, or an object of all parts.
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

/// Returns whether a value is known and `null`.
pub(in crate::check) fn is_null(value: &Expr) -> bool {
    value.known().is_some_and(Json::is_null)
}
