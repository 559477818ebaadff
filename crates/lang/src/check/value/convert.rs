//! Converts a resolved value to the type of its slot, or infers the type of the value.
//! Invariant: the converted value has the slot's type. Many rows are accepted only in a slot for a list.

use base::{Diagnostic, Edit, Span};
use catalog::Type;
use serde_json::Value as Json;

use super::infer::TypedExpr;
use super::resolve::{ResolvedValue, ValuePath, ValueSource};
use super::{RefCatalog, list_of_one};
use crate::check::Checker;
use crate::codes;
use crate::ir::{Expr, RowPart};
use crate::syntax::tree::{Value, ValueKind};

impl Checker<'_> {
    /// Makes the expression of a value for a slot of type `kind`, or reports that the types differ.
    pub(super) fn convert_to(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        kind: &Type,
        resolved: ResolvedValue,
        span: Span,
    ) -> Option<Expr> {
        if let ValueSource::Known(Json::String(text)) = &resolved.base {
            return self.convert_text(ref_catalog, kind, text.clone(), span);
        }
        let select;
        let (item_kind, wants_list) = match kind {
            Type::Array(of) => (of.as_ref(), true),
            Type::MultiSelect(choices) => {
                select = Type::Select(choices.clone());
                (&select, true)
            }
            other => (other, false),
        };
        let row_part = self.find_part_for_type(ref_catalog, item_kind, &resolved);
        let Some(row_part) = row_part else {
            // A single value that is a list itself is accepted in a slot for a list.
            let whole_list = resolved.value.as_ref().filter(|value| {
                let inner = match &value.kind {
                    Type::Array(of) => Some(of.as_ref().clone()),
                    Type::MultiSelect(choices) => Some(Type::Select(choices.clone())),
                    _ => None,
                };
                wants_list
                    && !resolved.many
                    && inner.is_some_and(|of| is_assignable(item_kind, ref_catalog, &of, value.ref_catalog.as_ref()))
            });
            if let Some(value) = whole_list {
                let path = value.path.clone();
                return Some(resolved.base.take(RowPart::Path(path), false));
            }
            self.report_type_mismatch(ref_catalog, kind, &resolved, span);
            return None;
        };
        if resolved.many && !wants_list && !matches!(kind, Type::Json) {
            self.report_too_many(span);
            return None;
        }
        let many = resolved.many;
        let expr = match (&row_part, &resolved.base) {
            (RowPart::Key(_), ValueSource::Step(node)) => {
                self.written_key(*node).unwrap_or_else(|| resolved.base.take(row_part, many))
            }
            _ => resolved.base.take(row_part, many),
        };
        Some(if wants_list && !many { list_of_one(expr) } else { expr })
    }

    /// Checks a known text as if it were written directly in the slot.
    fn convert_text(&mut self, ref_catalog: RefCatalog<'_>, kind: &Type, text: String, span: Span) -> Option<Expr> {
        let value = Value { kind: ValueKind::String(text), span };
        // A text that was bound earlier is data. It is checked without row scopes, so that Jinja tags in it do not
        // make it a template.
        let row_scopes = std::mem::take(&mut self.row_scopes);
        let expr = self.check_value_in(ref_catalog, kind, &value);
        self.row_scopes = row_scopes;
        expr
    }

    /// Finds the part of a value that has the type `item`: the reference to the row, the value at its path, or the
    /// whole row as JSON.
    fn find_part_for_type(
        &self,
        ref_catalog: RefCatalog<'_>,
        item_kind: &Type,
        resolved: &ResolvedValue,
    ) -> Option<RowPart> {
        if let (Type::Ref(target), Some(of)) = (item_kind, &resolved.key)
            && *target == of.entity
            && ref_catalog.is_none_or(|catalog| catalog.id == of.catalog.id)
        {
            return Some(RowPart::Key(of.entity_ref()));
        }
        if let Some(ValuePath { path, kind, ref_catalog: found_catalog }) = &resolved.value {
            let found_catalog = found_catalog.as_ref();
            let is_accepted = is_assignable(item_kind, ref_catalog, kind, found_catalog)
                || self.is_key_part_of(ref_catalog, item_kind, kind)
                || key_kind(kind, found_catalog)
                    .is_some_and(|key| is_assignable(item_kind, ref_catalog, &key, found_catalog));
            return is_accepted.then(|| RowPart::Path(path.clone()));
        }
        (*item_kind == Type::Json).then(|| RowPart::Path(Vec::new()))
    }

    /// Returns whether a scalar is accepted as a reference, because it has the type of the target's only key part.
    fn is_key_part_of(&self, ref_catalog: RefCatalog<'_>, item_kind: &Type, found: &Type) -> bool {
        let Type::Ref(target) = item_kind else { return false };
        let Some(entity) = ref_catalog.and_then(|catalog| catalog.entity(target)) else { return false };
        match entity.key.as_slice() {
            [only] => entity.fields.get(only).is_some_and(|f| is_assignable(&f.kind, ref_catalog, found, ref_catalog)),
            _ => false,
        }
    }

    /// Reports a value whose type differs from the slot's type.
    fn report_type_mismatch(&mut self, ref_catalog: RefCatalog<'_>, kind: &Type, resolved: &ResolvedValue, span: Span) {
        let found_text = match (&resolved.value, &resolved.key) {
            (Some(value), None) => value.kind.describe(),
            // Two APIs may use one name for different entities, so the message includes the catalogs.
            (_, Some(of)) if matches!(kind, Type::Ref(wanted) if *wanted == of.entity) => {
                format!("rows of {}:{}", of.catalog.id, of.entity)
            }
            (_, Some(of)) => format!("rows of {}", of.entity),
            _ => "rows of several columns".to_owned(),
        };
        let wanted = match (kind, ref_catalog, &resolved.key) {
            (Type::Ref(wanted), Some(catalog), Some(of)) if *wanted == of.entity => {
                format!("{}:{wanted}", catalog.id)
            }
            _ => kind.describe(),
        };
        let found_text =
            if resolved.many && resolved.key.is_none() { format!("many of {found_text}") } else { found_text };
        let hint = match (kind, resolved.value.as_ref().map(|value| &value.kind)) {
            (Type::String(_), Some(Type::Integer | Type::Number | Type::Boolean | Type::Date(_)))
                if !self.row_scopes.is_empty() =>
            {
                "; a template makes text of it: \"{{ _.slot }}\""
            }
            _ => "",
        };
        let fix = resolved.key.as_ref().filter(|_| !matches!(kind, Type::Ref(_))).and_then(|of| {
            let key = of.catalog.entity(&of.entity)?.key.first()?;
            Some(Edit::insert(span.end, format!(".{key}")))
        });
        let message = format!("expected {wanted}, found {found_text}{hint}");
        self.report(Diagnostic::error(codes::WRONG_TYPE, span, message).with_fix(fix));
    }

    /// Reports many rows in a slot for one value.
    fn report_too_many(&mut self, span: Span) {
        let message =
            "one is wanted here and these are many rows; take one of them, or write `rows => …` to do it for each";
        let fix = Edit::insert(span.end, ".first()");
        self.report(Diagnostic::error(codes::MANY_ROWS, span, message).with_fix([fix]));
    }

    /// Infers the type of a resolved value for a slot without a type. The result is the value or, for a whole row, the
    /// reference to the row.
    pub(super) fn type_of_resolved(&mut self, resolved: ResolvedValue, span: Span) -> Option<TypedExpr> {
        if let ValueSource::Known(json) = &resolved.base {
            let kind = Type::String(catalog::TextStyle::Document);
            return Some(TypedExpr { expr: Expr::Value(json.clone()), kind, ref_catalog: None });
        }
        let (row_part, kind, ref_catalog) = match (&resolved.value, &resolved.key) {
            (Some(value), _) => (RowPart::Path(value.path.clone()), value.kind.clone(), value.ref_catalog.clone()),
            (None, Some(of)) => {
                (RowPart::Key(of.entity_ref()), Type::Ref(of.entity.to_string()), Some(of.catalog.clone()))
            }
            (None, None) => {
                let message = "these rows have several columns; take one of them";
                self.report_error(codes::WRONG_TYPE, span, message);
                return None;
            }
        };
        let many = resolved.many;
        let kind = if many { Type::Array(Box::new(kind)) } else { kind };
        Some(TypedExpr { expr: resolved.base.take(row_part, many), kind, ref_catalog })
    }
}

/// Returns the type of the only key part of a reference. Where that type is wanted, the reference is accepted as well.
fn key_kind(found: &Type, from: RefCatalog<'_>) -> Option<Type> {
    let Type::Ref(target) = found else { return None };
    let entity = from?.entity(target)?;
    match entity.key.as_slice() {
        [only] => entity.fields.get(only).map(|f| f.kind.clone()).filter(|kind| !matches!(kind, Type::Ref(_))),
        _ => None,
    }
}

/// Returns whether a value of type `found` is accepted where `wanted` is expected. References must be to one entity of
/// one catalog; an unknown catalog counts as equal.
fn is_assignable(wanted: &Type, wanted_catalog: RefCatalog<'_>, found: &Type, found_catalog: RefCatalog<'_>) -> bool {
    match (wanted, found) {
        (Type::Json, _) | (_, Type::Json) => true,
        (Type::String(_), Type::String(_) | Type::Select(_) | Type::Uuid | Type::Date(_)) => true,
        (Type::Select(_) | Type::Uuid, Type::String(_)) | (Type::Select(_), Type::Select(_)) => true,
        (Type::Number, Type::Integer) | (Type::Date(_), Type::Date(_)) => true,
        (Type::Ref(wanted), Type::Ref(found)) => {
            let is_same_catalog = match (wanted_catalog, found_catalog) {
                (Some(wanted), Some(found)) => wanted.id == found.id,
                _ => true,
            };
            wanted == found && is_same_catalog
        }
        (Type::Array(wanted), Type::Array(found)) => is_assignable(wanted, wanted_catalog, found, found_catalog),
        (Type::MultiSelect(_), Type::MultiSelect(_)) => true,
        (wanted, found) => wanted == found,
    }
}
