//! Writes values to copy: places to fill in the form of each type, and one real value of each type.
//! Invariant: a real value passes the check where it is offered, and a place to fill passes it in a taught line.

use std::sync::Arc;

use catalog::{Catalog, DateFormat, Type, Union};

use super::RefCatalog;
use crate::check::Checker;
use crate::scope::NameStyle;

/// The form of a sample.
#[derive(Debug, Clone, Copy)]
struct SampleForm {
    /// The style of the names in references.
    style: NameStyle,
    /// Whether the sample is a real value. Otherwise scalars are places to fill.
    is_real: bool,
}

impl Checker<'_> {
    /// Returns places to fill (`$`) in the form that the type has, for a value that only the author knows.
    pub(in crate::check) fn sample(&self, ref_catalog: &Arc<Catalog>, kind: &Type, style: NameStyle) -> String {
        self.sample_of(Some(ref_catalog), kind, SampleForm { style, is_real: false })
    }

    /// Returns a real value of a type, to correct a place that was left open.
    pub(super) fn real_sample(&self, ref_catalog: RefCatalog<'_>, kind: &Type) -> String {
        self.sample_of(ref_catalog, kind, SampleForm { style: NameStyle::Names, is_real: true })
    }

    /// Returns a sample of a type.
    fn sample_of(&self, ref_catalog: RefCatalog<'_>, kind: &Type, form: SampleForm) -> String {
        match kind {
            Type::Array(of) if form.is_real => format!("[{}]", self.sample_of(ref_catalog, of, form)),
            Type::Array(of) if matches!(of.as_ref(), Type::Union(_) | Type::Object(_)) => {
                format!("[{}]", self.sample_of(ref_catalog, of, form))
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
                if !form.is_real =>
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
                    .map(|(name, slot)| format!("{name}: {}", self.sample_of(ref_catalog, &slot.kind, form)))
                    .collect();
                format!("{{{}}}", pairs.join(", "))
            }
            Type::Union(union) => {
                let first = union.arms.keys().next().cloned().unwrap_or_default();
                self.sample_arm(ref_catalog, &first, union, form)
            }
            Type::Ref(target) => self.sample_reference(ref_catalog, target, form),
        }
    }

    /// Returns an arm with places to fill.
    pub(super) fn placeholder_arm(&self, ref_catalog: RefCatalog<'_>, name: &str, union: &Union) -> String {
        self.sample_arm(ref_catalog, name, union, SampleForm { style: NameStyle::Names, is_real: false })
    }

    fn sample_arm(&self, ref_catalog: RefCatalog<'_>, name: &str, union: &Union, form: SampleForm) -> String {
        let slots = union.arms.get(name).into_iter().flatten();
        let pairs: Vec<String> = slots
            .filter(|(_, slot)| slot.required)
            .map(|(name, slot)| format!("{name}={}", self.sample_of(ref_catalog, &slot.kind, form)))
            .collect();
        format!("{name}{{{}}}", pairs.join(", "))
    }

    /// Returns a sample of a reference: its only part, or the entity with all parts of its key.
    fn sample_reference(&self, ref_catalog: RefCatalog<'_>, target: &str, form: SampleForm) -> String {
        let word = if form.is_real { "\"words\"" } else { "$" };
        let Some((ref_catalog, entity)) = ref_catalog.and_then(|catalog| Some((catalog, catalog.entity(target)?)))
        else {
            return word.to_owned();
        };
        let key: Vec<&catalog::Field> = entity.key_fields().collect();
        // A key part that is a reference itself is shown as a plain word, so that samples do not nest.
        let part = |kind: &Type| match kind {
            Type::Ref(_) => word.to_owned(),
            plain => self.sample_of(Some(ref_catalog), plain, form),
        };
        if let [only] = key.as_slice() {
            return part(&only.kind);
        }
        let name = self.scope.find_exposed(ref_catalog, target).map_or(target, |e| e.styled_name(form.style));
        let slots: Vec<String> = key
            .iter()
            .map(|f| format!("{}={}", self.scope.styled_slot(ref_catalog, &f.name, form.style), part(&f.kind)))
            .collect();
        format!("{name}({})", slots.join(", "))
    }
}
