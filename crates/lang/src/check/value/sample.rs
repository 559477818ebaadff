//! Writes sample values for corrections: placeholders in the form of a type, or one real value of a type.
//! Invariant: a real value passes the check of the slot that it is offered for. A placeholder passes the check in a
//! taught line.

use std::sync::Arc;

use catalog::{Catalog, DateFormat, Type, Union};

use super::RefCatalog;
use crate::check::Checker;
use crate::scope::NameStyle;

/// The form in which a sample is written.
#[derive(Debug, Clone, Copy)]
struct SampleForm {
    /// The style of the names in references.
    style: NameStyle,
    /// Whether the sample is a real value. Otherwise each scalar is a placeholder.
    is_real: bool,
}

impl Checker<'_> {
    /// Returns placeholders (`$`) in the form of a type, for a value that only the author knows.
    pub(in crate::check) fn write_sample(&self, ref_catalog: &Arc<Catalog>, kind: &Type, style: NameStyle) -> String {
        self.write_sample_in_form(Some(ref_catalog), kind, SampleForm { style, is_real: false })
    }

    /// Returns a real value of a type. Corrections write it in place of a placeholder.
    pub(super) fn write_real_sample(&self, ref_catalog: RefCatalog<'_>, kind: &Type) -> String {
        self.write_sample_in_form(ref_catalog, kind, SampleForm { style: NameStyle::Names, is_real: true })
    }

    /// Returns a sample of a type.
    fn write_sample_in_form(&self, ref_catalog: RefCatalog<'_>, kind: &Type, sample_form: SampleForm) -> String {
        match kind {
            Type::Array(of) if sample_form.is_real => {
                format!("[{}]", self.write_sample_in_form(ref_catalog, of, sample_form))
            }
            Type::Array(of) if matches!(of.as_ref(), Type::Union(_) | Type::Object(_)) => {
                format!("[{}]", self.write_sample_in_form(ref_catalog, of, sample_form))
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
                if !sample_form.is_real =>
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
                    .map(|(name, slot)| {
                        format!("{name}: {}", self.write_sample_in_form(ref_catalog, &slot.kind, sample_form))
                    })
                    .collect();
                format!("{{{}}}", pairs.join(", "))
            }
            Type::Union(union) => {
                let first = union.arms.keys().next().cloned().unwrap_or_default();
                self.write_arm_sample(ref_catalog, &first, union, sample_form)
            }
            Type::Ref(target) => self.write_reference_sample(ref_catalog, target, sample_form),
        }
    }

    /// Returns an arm with placeholders as the values of its required slots.
    pub(super) fn write_placeholder_arm(&self, ref_catalog: RefCatalog<'_>, name: &str, union: &Union) -> String {
        self.write_arm_sample(ref_catalog, name, union, SampleForm { style: NameStyle::Names, is_real: false })
    }

    fn write_arm_sample(
        &self,
        ref_catalog: RefCatalog<'_>,
        name: &str,
        union: &Union,
        sample_form: SampleForm,
    ) -> String {
        let slots = union.arms.get(name).into_iter().flatten();
        let pairs: Vec<String> = slots
            .filter(|(_, slot)| slot.required)
            .map(|(name, slot)| format!("{name}={}", self.write_sample_in_form(ref_catalog, &slot.kind, sample_form)))
            .collect();
        format!("{name}{{{}}}", pairs.join(", "))
    }

    /// Returns a sample of a reference: the only key part, or the entity with all parts of its key.
    fn write_reference_sample(&self, ref_catalog: RefCatalog<'_>, target: &str, sample_form: SampleForm) -> String {
        let sample_value = if sample_form.is_real { "\"words\"" } else { "$" };
        let Some((ref_catalog, entity)) = ref_catalog.and_then(|catalog| Some((catalog, catalog.entity(target)?)))
        else {
            return sample_value.to_owned();
        };
        let key: Vec<&catalog::Field> = entity.key_fields().collect();
        // A key part that is itself a reference is shown as one plain value, so that samples are not nested.
        let part = |kind: &Type| match kind {
            Type::Ref(_) => sample_value.to_owned(),
            plain => self.write_sample_in_form(Some(ref_catalog), plain, sample_form),
        };
        if let [only] = key.as_slice() {
            return part(&only.kind);
        }
        let name = self.scope.find_exposed(ref_catalog, target).map_or(target, |e| e.styled_name(sample_form.style));
        let slots: Vec<String> = key
            .iter()
            .map(|f| format!("{}={}", self.scope.styled_slot(ref_catalog, &f.name, sample_form.style), part(&f.kind)))
            .collect();
        format!("{name}({})", slots.join(", "))
    }
}
