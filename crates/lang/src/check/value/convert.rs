//! Whether what was found is what a slot wants, and how it is taken.
//! Invariant: a hole's type is its slot's; many rows go only where a list may stand.

use base::{Diagnostic, Edit, Span};
use catalog::Type;
use serde_json::Value as Json;

use super::resolve::{ResolvedValue, ValueSource};
use super::untyped::TypedExpr;
use super::{RefCatalog, list_of_one};
use crate::check::Checker;
use crate::codes;
use crate::ir::{Expr, RowPart};

impl Checker<'_> {
    pub(super) fn convert_to(
        &mut self,
        ref_catalog: RefCatalog<'_>,
        kind: &Type,
        found: ResolvedValue,
        span: Span,
    ) -> Option<Expr> {
        if let ValueSource::Known(Json::String(text)) = &found.base {
            return self.convert_text(ref_catalog, kind, text.clone(), span);
        }
        let select;
        let (item, list) = match kind {
            Type::Array(of) => (of.as_ref(), true),
            Type::MultiSelect(choices) => {
                select = Type::Select(choices.clone());
                (&select, true)
            }
            other => (other, false),
        };
        let take = self.part_for_type(ref_catalog, item, &found);
        let Some(take) = take else {
            // A list for a list.
            let whole = found.value.as_ref().filter(|(_, found_kind, from)| {
                let inner = match found_kind {
                    Type::Array(of) => Some(of.as_ref().clone()),
                    Type::MultiSelect(choices) => Some(Type::Select(choices.clone())),
                    _ => None,
                };
                list && !found.many && inner.is_some_and(|of| is_assignable(item, &of, (ref_catalog, from.as_ref())))
            });
            if let Some((path, ..)) = whole {
                let path = path.clone();
                return Some(found.base.take(RowPart::Path(path), false));
            }
            self.report_type_mismatch((ref_catalog, kind), &found, span);
            return None;
        };
        if found.many && !list && !matches!(kind, Type::Json) {
            self.report_too_many(span);
            return None;
        }
        let many = found.many;
        let expr = match (&take, &found.base) {
            (RowPart::Key(_), ValueSource::Step(node)) => {
                self.key_written(*node).unwrap_or_else(|| found.base.take(take, many))
            }
            _ => found.base.take(take, many),
        };
        Some(if list && !many { list_of_one(expr) } else { expr })
    }

    fn convert_text(&mut self, ref_catalog: RefCatalog<'_>, kind: &Type, text: String, span: Span) -> Option<Expr> {
        let value = crate::syntax::tree::Value { kind: crate::syntax::tree::ValueKind::String(text), span };
        // A text that was bound before is data: what looks like Jinja in it is not.
        let rows = std::mem::take(&mut self.row_scopes);
        let found = self.value_in(ref_catalog, kind, &value);
        self.row_scopes = rows;
        found
    }

    /// How an item of this type is taken from what was found.
    fn part_for_type(&self, ref_catalog: RefCatalog<'_>, item: &Type, found: &ResolvedValue) -> Option<RowPart> {
        if let (Type::Ref(target), Some((from, entity)), Some(of)) = (item, &found.key, found.key_of())
            && target == entity
            && ref_catalog.is_none_or(|h| h.id == from.id)
        {
            return Some(RowPart::Key(of));
        }
        if let Some((path, kind, from)) = &found.value {
            let right = is_assignable(item, kind, (ref_catalog, from.as_ref()))
                || self.is_key_of(ref_catalog, item, kind)
                || key_kind(kind, from.as_ref())
                    .is_some_and(|key| is_assignable(item, &key, (ref_catalog, from.as_ref())));
            return right.then(|| RowPart::Path(path.clone()));
        }
        (*item == Type::Json).then(|| RowPart::Path(Vec::new()))
    }

    /// A scalar for a reference whose key has one part.
    fn is_key_of(&self, ref_catalog: RefCatalog<'_>, item: &Type, found: &Type) -> bool {
        let Type::Ref(target) = item else { return false };
        let Some(entity) = ref_catalog.and_then(|h| h.entity(target)) else { return false };
        match entity.key.as_slice() {
            [only] => {
                entity.fields.get(only).is_some_and(|f| is_assignable(&f.kind, found, (ref_catalog, ref_catalog)))
            }
            _ => false,
        }
    }

    fn report_type_mismatch(
        &mut self,
        (ref_catalog, kind): (RefCatalog<'_>, &Type),
        found: &ResolvedValue,
        span: Span,
    ) {
        let what = match (&found.value, &found.key) {
            (Some((_, kind, _)), None) => kind.describe(),
            // Two APIs may call different things by one name.
            (_, Some((from, entity))) if matches!(kind, Type::Ref(wanted) if wanted == entity) => {
                format!("rows of {}:{entity}", from.id)
            }
            (_, Some((_, entity))) => format!("rows of {entity}"),
            _ => "rows of several columns".to_owned(),
        };
        let wanted = match (kind, ref_catalog, &found.key) {
            (Type::Ref(wanted), Some(h), Some((_, entity))) if wanted == entity => format!("{}:{wanted}", h.id),
            _ => kind.describe(),
        };
        let what = if found.many && found.key.is_none() { format!("many of {what}") } else { what };
        let more = match (kind, &found.value) {
            (Type::String(_), Some((_, Type::Integer | Type::Number | Type::Boolean | Type::Date(_), _)))
                if !self.row_scopes.is_empty() =>
            {
                "; a template makes text of it: \"{{ _.slot }}\""
            }
            _ => "",
        };
        let fix = found.key.as_ref().filter(|_| !matches!(kind, Type::Ref(_))).and_then(|(ref_catalog, entity)| {
            let key = ref_catalog.entity(entity)?.key.first()?;
            Some(Edit::insert(span.end, format!(".{key}")))
        });
        let message = format!("expected {wanted}, found {what}{more}");
        self.report(Diagnostic::error(codes::WRONG_TYPE, span, message).with_fix(fix));
    }

    fn report_too_many(&mut self, span: Span) {
        let message =
            "one is wanted here and these are many rows; take one of them, or write `rows => …` to do it for each";
        let fix = Edit::insert(span.end, ".first()");
        self.report(Diagnostic::error(codes::MANY_ROWS, span, message).with_fix([fix]));
    }

    /// What was found where no type is wanted: a reference to an entity, or the value it has.
    pub(super) fn infer_type(&mut self, found: ResolvedValue, span: Span) -> Option<TypedExpr> {
        if let ValueSource::Known(json) = &found.base {
            let kind = Type::String(catalog::TextStyle::Document);
            return Some(TypedExpr { expr: Expr::Value(json.clone()), kind, ref_catalog: None });
        }
        let (take, kind, ref_catalog) = match (&found.value, &found.key, found.key_of()) {
            (Some((path, kind, ref_catalog)), ..) => (RowPart::Path(path.clone()), kind.clone(), ref_catalog.clone()),
            (None, Some((ref_catalog, entity)), Some(of)) => {
                (RowPart::Key(of), Type::Ref(entity.to_string()), Some(ref_catalog.clone()))
            }
            _ => {
                let message = "these rows have several columns; take one of them";
                self.error(codes::WRONG_TYPE, span, message);
                return None;
            }
        };
        let many = found.many;
        let kind = if many { Type::Array(Box::new(kind)) } else { kind };
        Some(TypedExpr { expr: found.base.take(take, many), kind, ref_catalog })
    }
}

/// A reference whose key has one part is that part, wherever a value of its type is wanted.
fn key_kind(found: &Type, from: RefCatalog<'_>) -> Option<Type> {
    let Type::Ref(target) = found else { return None };
    let entity = from?.entity(target)?;
    match entity.key.as_slice() {
        [only] => entity.fields.get(only).map(|f| f.kind.clone()).filter(|kind| !matches!(kind, Type::Ref(_))),
        _ => None,
    }
}

/// Whether a value of the one type can stand where the other is wanted.
fn is_assignable(wanted: &Type, found: &Type, (ref_catalog, from): (RefCatalog<'_>, RefCatalog<'_>)) -> bool {
    match (wanted, found) {
        (Type::Json, _) | (_, Type::Json) => true,
        (Type::String(_), Type::String(_) | Type::Select(_) | Type::Uuid | Type::Date(_)) => true,
        (Type::Select(_) | Type::Uuid, Type::String(_)) | (Type::Select(_), Type::Select(_)) => true,
        (Type::Number, Type::Integer) | (Type::Date(_), Type::Date(_)) => true,
        (Type::Ref(wanted), Type::Ref(found)) => {
            wanted == found
                && (ref_catalog.is_none() || from.is_none() || ref_catalog.map(|h| &h.id) == from.map(|h| &h.id))
        }
        (Type::Array(wanted), Type::Array(found)) => is_assignable(wanted, found, (ref_catalog, from)),
        (Type::MultiSelect(_), Type::MultiSelect(_)) => true,
        (wanted, found) => wanted == found,
    }
}
