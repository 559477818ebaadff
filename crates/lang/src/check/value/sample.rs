//! Values to copy: places to fill in the form of each type, and one real value of each.
//! Invariant: a sample checks where it is offered, a place to fill where a taught line does.

use std::sync::Arc;

use catalog::{Catalog, DateFormat, Type, Union};

use super::RefCatalog;
use crate::check::Checker;
use crate::scope::NameStyle;

impl Checker<'_> {
    /// `$`, in the form that the type has: nobody but the author knows the value.
    pub(in crate::check) fn sample(&self, ref_catalog: &Arc<Catalog>, kind: &Type, style: NameStyle) -> String {
        self.sample_of(Some(ref_catalog), kind, (style, false))
    }

    /// A real value, for whoever left the place open.
    pub(super) fn real_sample(&self, ref_catalog: RefCatalog<'_>, kind: &Type) -> String {
        self.sample_of(ref_catalog, kind, (NameStyle::Names, true))
    }

    fn sample_of(&self, ref_catalog: RefCatalog<'_>, kind: &Type, how: (NameStyle, bool)) -> String {
        match kind {
            Type::Array(of) if how.1 => format!("[{}]", self.sample_of(ref_catalog, of, how)),
            Type::Array(of) if matches!(of.as_ref(), Type::Union(_) | Type::Object(_)) => {
                format!("[{}]", self.sample_of(ref_catalog, of, how))
            }
            Type::String(_)
            | Type::Json
            | Type::Integer
            | Type::Number
            | Type::Boolean
            | Type::Select(_)
            | Type::Date(_)
            | Type::MultiSelect(_)
            | Type::Array(_)
            | Type::Uuid
                if !how.1 =>
            {
                "$".to_owned()
            }
            Type::Array(_) => "[]".to_owned(),
            Type::String(_) | Type::Json => "\"words\"".to_owned(),
            Type::Integer | Type::Number => "1".to_owned(),
            Type::Boolean => "true".to_owned(),
            Type::Select(choices) => format!("\"{}\"", choices.first().map_or("", String::as_str)),
            Type::Date(DateFormat::IsoDate) => "\"2026-01-31\"".to_owned(),
            Type::Date(_) => "\"2026-01-31T00:00:00Z\"".to_owned(),
            Type::MultiSelect(choices) => format!("[\"{}\"]", choices.first().map_or("", String::as_str)),
            Type::Uuid => "\"123e4567-e89b-12d3-a456-426614174000\"".to_owned(),
            Type::Object(slots) => {
                let pairs = slots.iter().filter(|(_, slot)| slot.required);
                let pairs: Vec<String> = pairs
                    .map(|(name, slot)| format!("{name}: {}", self.sample_of(ref_catalog, &slot.kind, how)))
                    .collect();
                format!("{{{}}}", pairs.join(", "))
            }
            Type::Union(union) => {
                let first = union.arms.keys().next().cloned().unwrap_or_default();
                self.sample_arm(ref_catalog, &first, union, how)
            }
            Type::Ref(target) => self.sample_reference(ref_catalog, target, how),
        }
    }

    pub(super) fn placeholder_arm(&self, ref_catalog: RefCatalog<'_>, name: &str, union: &Union) -> String {
        self.sample_arm(ref_catalog, name, union, (NameStyle::Names, false))
    }

    fn sample_arm(&self, ref_catalog: RefCatalog<'_>, name: &str, union: &Union, how: (NameStyle, bool)) -> String {
        let slots = union.arms.get(name).into_iter().flatten();
        let pairs: Vec<String> = slots
            .filter(|(_, slot)| slot.required)
            .map(|(name, slot)| format!("{name}={}", self.sample_of(ref_catalog, &slot.kind, how)))
            .collect();
        format!("{name}{{{}}}", pairs.join(", "))
    }

    fn sample_reference(&self, ref_catalog: RefCatalog<'_>, target: &str, how: (NameStyle, bool)) -> String {
        let (style, real) = how;
        let word = if real { "\"words\"" } else { "$" };
        let Some((ref_catalog, entity)) = ref_catalog.and_then(|h| Some((h, h.entity(target)?))) else {
            return word.to_owned();
        };
        let key: Vec<&catalog::Field> = entity.key_fields().collect();
        // A key part that is itself a reference is shown as a plain word: samples do not nest.
        let part = |kind: &Type| match kind {
            Type::Ref(_) => word.to_owned(),
            plain => self.sample_of(Some(ref_catalog), plain, how),
        };
        if let [only] = key.as_slice() {
            return part(&only.kind);
        }
        let name = self.scope.find_exposed(ref_catalog, target).map_or(target, |e| e.styled_name(style));
        let slots: Vec<String> = key
            .iter()
            .map(|f| format!("{}={}", self.scope.styled_slot(ref_catalog, &f.name, style), part(&f.kind)))
            .collect();
        format!("{name}({})", slots.join(", "))
    }
}
