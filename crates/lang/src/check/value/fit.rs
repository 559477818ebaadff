//! Whether what was found is what a slot wants, and how it is taken.
//! Invariant: a hole's type is its slot's; many rows go only where a list may stand.

use base::{Diagnostic, Edit, Span};
use catalog::Type;
use serde_json::Value as Json;

use super::free::Free;
use super::hole::{Base, Found};
use super::{Home, listed};
use crate::check::Cx;
use crate::codes;
use crate::ir::{Expr, Take};

impl Cx<'_> {
    pub(super) fn fit(&mut self, home: Home<'_>, kind: &Type, found: Found, span: Span) -> Option<Expr> {
        if let Base::Known(Json::String(text)) = &found.base {
            return self.known_for(home, kind, text.clone(), span);
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
        let take = self.taken(home, item, &found);
        let Some(take) = take else {
            // A list for a list.
            let whole = found.value.as_ref().filter(|(_, found_kind, from)| {
                let inner = match found_kind {
                    Type::Array(of) => Some(of.as_ref().clone()),
                    Type::MultiSelect(choices) => Some(Type::Select(choices.clone())),
                    _ => None,
                };
                list && !found.many && inner.is_some_and(|of| fits(item, &of, (home, from.as_ref())))
            });
            if let Some((path, ..)) = whole {
                let path = path.clone();
                return Some(found.base.take(Take::Path(path), false));
            }
            self.does_not_fit((home, kind), &found, span);
            return None;
        };
        if found.many && !list && !matches!(kind, Type::Json) {
            self.too_many(span);
            return None;
        }
        let many = found.many;
        let expr = match (&take, &found.base) {
            (Take::Key(_), Base::Step(node)) => self.key_written(*node).unwrap_or_else(|| found.base.take(take, many)),
            _ => found.base.take(take, many),
        };
        Some(if list && !many { listed(expr) } else { expr })
    }

    fn known_for(&mut self, home: Home<'_>, kind: &Type, text: String, span: Span) -> Option<Expr> {
        let value = crate::syntax::tree::Value { kind: crate::syntax::tree::ValueKind::String(text), span };
        // A text that was bound before is data: what looks like Jinja in it is not.
        let rows = std::mem::take(&mut self.each);
        let found = self.value_in(home, kind, &value);
        self.each = rows;
        found
    }

    /// How an item of this type is taken from what was found.
    fn taken(&self, home: Home<'_>, item: &Type, found: &Found) -> Option<Take> {
        if let (Type::Ref(target), Some((from, entity)), Some(of)) = (item, &found.key, found.key_of())
            && target == entity
            && home.is_none_or(|h| h.id == from.id)
        {
            return Some(Take::Key(of));
        }
        if let Some((path, kind, from)) = &found.value {
            let right = fits(item, kind, (home, from.as_ref()))
                || self.is_key_of(home, item, kind)
                || key_kind(kind, from.as_ref()).is_some_and(|key| fits(item, &key, (home, from.as_ref())));
            return right.then(|| Take::Path(path.clone()));
        }
        (*item == Type::Json).then(|| Take::Path(Vec::new()))
    }

    /// A scalar for a reference whose key has one part.
    fn is_key_of(&self, home: Home<'_>, item: &Type, found: &Type) -> bool {
        let Type::Ref(target) = item else { return false };
        let Some(entity) = home.and_then(|h| h.entity(target)) else { return false };
        match entity.key.as_slice() {
            [only] => entity.fields.get(only).is_some_and(|f| fits(&f.kind, found, (home, home))),
            _ => false,
        }
    }

    fn does_not_fit(&mut self, (home, kind): (Home<'_>, &Type), found: &Found, span: Span) {
        let what = match (&found.value, &found.key) {
            (Some((_, kind, _)), None) => kind.describe(),
            // Two APIs may call different things by one name.
            (_, Some((from, entity))) if matches!(kind, Type::Ref(wanted) if wanted == entity) => {
                format!("rows of {}:{entity}", from.id)
            }
            (_, Some((_, entity))) => format!("rows of {entity}"),
            _ => "rows of several columns".to_owned(),
        };
        let wanted = match (kind, home, &found.key) {
            (Type::Ref(wanted), Some(h), Some((_, entity))) if wanted == entity => format!("{}:{wanted}", h.id),
            _ => kind.describe(),
        };
        let what = if found.many && found.key.is_none() { format!("many of {what}") } else { what };
        let more = match (kind, &found.value) {
            (Type::String(_), Some((_, Type::Integer | Type::Number | Type::Boolean | Type::Date(_), _)))
                if !self.each.is_empty() =>
            {
                "; a template makes text of it: \"{{ _.slot }}\""
            }
            _ => "",
        };
        let fix = found.key.as_ref().filter(|_| !matches!(kind, Type::Ref(_))).and_then(|(home, entity)| {
            let key = home.entity(entity)?.key.first()?;
            Some(Edit::insert(span.end, format!(".{key}")))
        });
        let message = format!("expected {wanted}, found {what}{more}");
        self.report(Diagnostic::error(codes::WRONG_TYPE, span, message).with_fix(fix));
    }

    fn too_many(&mut self, span: Span) {
        let message =
            "one is wanted here and these are many rows; take one of them, or write `rows => …` to do it for each";
        let fix = Edit::insert(span.end, ".first()");
        self.report(Diagnostic::error(codes::MANY_ROWS, span, message).with_fix([fix]));
    }

    /// What was found where no type is wanted: a reference to an entity, or the value it has.
    pub(super) fn settle(&mut self, found: Found, span: Span) -> Option<Free> {
        if let Base::Known(json) = &found.base {
            let kind = Type::String(catalog::TextStyle::Document);
            return Some(Free { expr: Expr::Value(json.clone()), kind, home: None });
        }
        let (take, kind, home) = match (&found.value, &found.key, found.key_of()) {
            (Some((path, kind, home)), ..) => (Take::Path(path.clone()), kind.clone(), home.clone()),
            (None, Some((home, entity)), Some(of)) => {
                (Take::Key(of), Type::Ref(entity.to_string()), Some(home.clone()))
            }
            _ => {
                let message = "these rows have several columns; take one of them";
                self.error(codes::WRONG_TYPE, span, message);
                return None;
            }
        };
        let many = found.many;
        let kind = if many { Type::Array(Box::new(kind)) } else { kind };
        Some(Free { expr: found.base.take(take, many), kind, home })
    }
}

/// A reference whose key has one part is that part, wherever a value of its type is wanted.
fn key_kind(found: &Type, from: Home<'_>) -> Option<Type> {
    let Type::Ref(target) = found else { return None };
    let entity = from?.entity(target)?;
    match entity.key.as_slice() {
        [only] => entity.fields.get(only).map(|f| f.kind.clone()).filter(|kind| !matches!(kind, Type::Ref(_))),
        _ => None,
    }
}

/// Whether a value of the one type can stand where the other is wanted.
fn fits(wanted: &Type, found: &Type, (home, from): (Home<'_>, Home<'_>)) -> bool {
    match (wanted, found) {
        (Type::Json, _) | (_, Type::Json) => true,
        (Type::String(_), Type::String(_) | Type::Select(_) | Type::Uuid | Type::Date(_)) => true,
        (Type::Select(_) | Type::Uuid, Type::String(_)) | (Type::Select(_), Type::Select(_)) => true,
        (Type::Number, Type::Integer) | (Type::Date(_), Type::Date(_)) => true,
        (Type::Ref(wanted), Type::Ref(found)) => {
            wanted == found && (home.is_none() || from.is_none() || home.map(|h| &h.id) == from.map(|h| &h.id))
        }
        (Type::Array(wanted), Type::Array(found)) => fits(wanted, found, (home, from)),
        (Type::MultiSelect(_), Type::MultiSelect(_)) => true,
        (wanted, found) => wanted == found,
    }
}
