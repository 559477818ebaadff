//! How the rows of one capability fit its entity: which fields had a value, and which choices the catalog does not know.
//! Invariant: a field that the capability does not promise is not missed.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Capability, Catalog, Row, Type};
use serde_json::{Value, json};

#[derive(Debug, Default)]
pub struct Fields {
    promised: Vec<String>,
    seen: BTreeSet<String>,
    /// Values that are none of the catalog's choices: the API is newer, or the catalog is wrong.
    unknown: BTreeMap<String, BTreeSet<String>>,
    rows: usize,
}

/// Unknown choices that are named for one field.
const NAMED: usize = 5;

impl Fields {
    pub fn new(catalog: &Catalog, capability: &Capability) -> Self {
        let all = || catalog.entity(&capability.returns).map(|e| e.fields.keys().cloned().collect());
        let promised = capability.gives.clone().or_else(all).unwrap_or_default();
        Self { promised, ..Self::default() }
    }

    pub fn count(&mut self, catalog: &Catalog, capability: &Capability, rows: &[Row]) {
        self.rows += rows.len();
        let Some(entity) = catalog.entity(&capability.returns) else { return };
        for (name, value) in rows.iter().flatten().filter(|(_, value)| !value.is_null()) {
            let Some(field) = entity.fields.get(name) else { continue };
            self.seen.insert(name.clone());
            for choice in unknown(&field.kind, value) {
                let named = self.unknown.entry(name.clone()).or_default();
                if named.len() < NAMED {
                    named.insert(choice.chars().take(60).collect());
                }
            }
        }
    }

    /// Promised, and without a value in every row; of no rows nothing can be said.
    pub fn never_seen(&self) -> Vec<&str> {
        let lacking = self.promised.iter().filter(|name| !self.seen.contains(*name));
        lacking.filter(|_| self.rows > 0).map(String::as_str).collect()
    }

    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        let never = self.never_seen();
        if !never.is_empty() {
            remarks.push(format!("never with a value: {}", never.join(", ")));
        }
        for (field, choices) in &self.unknown {
            let choices: Vec<&str> = choices.iter().map(String::as_str).collect();
            remarks.push(format!("choices of `{field}` that the catalog does not know: {}", choices.join(", ")));
        }
        remarks
    }

    pub fn value(&self) -> Value {
        let seen = self.promised.iter().filter(|name| self.seen.contains(*name)).count();
        json!({
            "promised": self.promised.len(),
            "seen": seen,
            "never_seen": self.never_seen(),
            "unknown_choices": self.unknown,
        })
    }
}

fn unknown<'v>(kind: &Type, value: &'v Value) -> Vec<&'v str> {
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
    fn what_never_came_and_what_came_new_is_named() {
        let demo = shipped::demo().unwrap();
        let people = demo.capability("person_list").unwrap();
        let mut fields = Fields::new(&demo, people);
        assert!(fields.remarks().is_empty(), "of no rows nothing is said");
        fields.count(
            &demo,
            people,
            &rows(json!([
                {"id": "ada", "name": "Ada", "email": null, "team": "platform", "joined": null},
                {"id": "bob", "name": "Bob", "email": null, "team": "catering", "joined": "2020-01-01"},
            ])),
        );
        assert_eq!(fields.never_seen(), ["email"]);
        let remarks = fields.remarks();
        assert_eq!(
            remarks,
            ["never with a value: email", "choices of `team` that the catalog does not know: catering"]
        );
        assert_eq!(fields.value()["seen"], 4);
    }

    #[test]
    fn choices_inside_lists_count_too() {
        let kind = Type::MultiSelect(vec!["a".into()]);
        assert_eq!(unknown(&kind, &json!(["a", "b"])), ["b"]);
        assert_eq!(unknown(&Type::Array(Box::new(Type::Select(vec!["a".into()]))), &json!(["c", "a"])), ["c"]);
        assert!(unknown(&Type::Integer, &json!(1)).is_empty());
    }
}
