//! Compares the rows of one capability with its entity, and finds fields without a value and choices that are not in the catalog.
//! Invariant: only fields that the capability promises to return are reported.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Capability, Catalog, Row, Type};
use serde_json::{Value, json};

#[derive(Debug, Default)]
/// The fields of a capability's rows, compared with the catalog.
pub struct FieldCoverage {
    /// The fields that the capability returns according to the catalog.
    promised: Vec<String>,
    /// The fields that had a value in at least one row.
    with_value: BTreeSet<String>,
    /// For each field, the values that are not among the choices of the catalog. The catalog is then outdated or wrong.
    unknown_choices: BTreeMap<String, BTreeSet<String>>,
    rows: usize,
}

/// The largest number of unknown choices that the report names for one field.
const MAX_NAMED_CHOICES: usize = 5;

impl FieldCoverage {
    pub fn new(catalog: &Catalog, capability: &Capability) -> Self {
        let all = || catalog.entity(&capability.returns).map(|e| e.fields.keys().cloned().collect());
        let promised = capability.gives.clone().or_else(all).unwrap_or_default();
        Self { promised, ..Self::default() }
    }

    /// Adds the values of these rows to the comparison.
    pub fn count(&mut self, catalog: &Catalog, capability: &Capability, rows: &[Row]) {
        self.rows += rows.len();
        let Some(entity) = catalog.entity(&capability.returns) else { return };
        for (name, value) in rows.iter().flatten().filter(|(_, value)| !value.is_null()) {
            let Some(field) = entity.fields.get(name) else { continue };
            self.with_value.insert(name.clone());
            for choice in unknown_choices(&field.kind, value) {
                let named = self.unknown_choices.entry(name.clone()).or_default();
                if named.len() < MAX_NAMED_CHOICES {
                    named.insert(choice.chars().take(60).collect());
                }
            }
        }
    }

    /// Returns the promised fields that had no value in any row. The list is empty if no rows were counted.
    pub fn fields_without_value(&self) -> Vec<&str> {
        let without_value = self.promised.iter().filter(|name| !self.with_value.contains(*name));
        without_value.filter(|_| self.rows > 0).map(String::as_str).collect()
    }

    /// Returns the remarks for the report, one line for each.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let never = self.fields_without_value();
        if !never.is_empty() {
            remarks.push(format!("fields without a value in any row: {}", never.join(", ")));
        }
        for (field, choices) in &self.unknown_choices {
            let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
            remarks.push(format!("choices of `{field}` that the catalog does not know: {}", choices.join(", ")));
        }
        remarks
    }

    pub fn value(&self) -> Value {
        let with_value = self.promised.iter().filter(|name| self.with_value.contains(*name)).count();
        json!({
            "promised": self.promised.len(),
            "seen": with_value,
            "never_seen": self.fields_without_value(),
            "unknown_choices": self.unknown_choices,
        })
    }
}

/// Returns the choices in a value that are not among the choices of its type.
fn unknown_choices<'v>(kind: &Type, value: &'v Value) -> Vec<&'v str> {
    let (choices, values): (&[String], Vec<&Value>) = match (kind, value) {
        (Type::Select(choices), value) => (choices, vec![value]),
        (Type::MultiSelect(choices), Value::Array(items)) => (choices, items.iter().collect()),
        (Type::Array(of), Value::Array(items)) => match of.as_ref() {
            Type::Select(choices) => (choices, items.iter().collect()),
            _ => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    values.into_iter().filter_map(Value::as_str).filter(|text| !choices.iter().any(|c| c == text)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::shipped;

    fn rows(value: Value) -> Vec<Row> {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn missing_values_and_unknown_choices_are_named() {
        let demo = shipped::demo_catalog().unwrap();
        let people = demo.capability("person_list").unwrap();
        let mut fields = FieldCoverage::new(&demo, people);
        assert!(fields.remarks().is_empty(), "without rows there are no remarks");
        fields.count(
            &demo,
            people,
            &rows(json!([
                {"id": "ada", "name": "Ada", "email": null, "team": "platform", "joined": null},
                {"id": "bob", "name": "Bob", "email": null, "team": "catering", "joined": "2020-01-01"},
            ])),
        );
        assert_eq!(fields.fields_without_value(), ["email"]);
        let remarks = fields.remarks();
        assert_eq!(
            remarks,
            ["fields without a value in any row: email", "choices of `team` that the catalog does not know: catering"]
        );
        assert_eq!(fields.value()["seen"], 4);
    }

    #[test]
    fn unknown_choices_in_lists_are_found() {
        let kind = Type::MultiSelect(vec!["a".into()]);
        assert_eq!(unknown_choices(&kind, &json!(["a", "b"])), ["b"]);
        assert_eq!(unknown_choices(&Type::Array(Box::new(Type::Select(vec!["a".into()]))), &json!(["c", "a"])), ["c"]);
        assert!(unknown_choices(&Type::Integer, &json!(1)).is_empty());
    }
}
