//! Collects samples of the rows that were read so far, and makes the arguments of the next calls from these samples.
//! Invariant: all parts of one key, and all parameters that one relation fills, have values from the same row.

use std::collections::{BTreeMap, BTreeSet};

use catalog::{Args, Capability, Catalog, Row, Type, Via};
use serde_json::Value;

use super::params::{GivenParams, param_type};

/// The largest number of sample rows of one entity. With 20 rows it is likely that one of them has related rows.
const MAX_ROWS: usize = 20;
/// The largest number of argument sets that are tried for one capability, until a call returns rows.
const MAX_ARGUMENT_SETS: usize = 3;

#[derive(Default)]
pub struct Samples {
    /// The sample rows of each entity, by the name of the entity.
    rows: BTreeMap<String, Vec<Row>>,
    /// The known keys of each entity, by the name of the entity. A key comes from a row of the entity or from a field that refers to it.
    keys: BTreeMap<String, Vec<Value>>,
}

/// The parameters without a known value, because of which a capability cannot be called.
#[derive(Debug, PartialEq, Eq)]
pub struct MissingValues {
    pub params: Vec<String>,
    /// The entities whose rows would contain the missing values.
    pub entities: Vec<String>,
}

impl Samples {
    /// Adds rows of an entity as samples, with the rows that are embedded in them and the keys of all these rows.
    pub fn add(&mut self, catalog: &Catalog, entity: &str, rows: &[Row]) {
        let Some(described) = catalog.entity(entity) else { return };
        for row in rows.iter().take(MAX_ROWS) {
            self.keys.entry(entity.to_owned()).or_default().extend(described.reference(row));
            for relation in described.relations.values().filter(|r| matches!(r.via, Via::Embedded { .. })) {
                let embedded = row.get(&relation.name).and_then(Value::as_array).into_iter().flatten();
                let embedded: Vec<Row> = embedded.filter_map(|row| row.as_object().cloned()).collect();
                self.add(catalog, &relation.target, &embedded);
            }
            for field in described.fields.values() {
                let target = match &field.kind {
                    Type::Ref(target) => target,
                    _ => continue,
                };
                let value = row.get(&field.name).filter(|v| !v.is_null());
                self.keys.entry(target.clone()).or_default().extend(value.cloned());
            }
        }
        let kept = self.rows.entry(entity.to_owned()).or_default();
        kept.extend(rows.iter().take(MAX_ROWS.saturating_sub(kept.len())).cloned());
    }

    /// Returns sets of arguments for a call of a capability. The set that most likely returns rows is first.
    pub fn argument_sets(
        &self,
        catalog: &Catalog,
        capability: &Capability,
        given: &GivenParams,
    ) -> Result<Vec<Args>, MissingValues> {
        let named = capability.params.keys().chain(&capability.anchor);
        let given: Args =
            named.filter_map(|name| Some((name.clone(), given.value(catalog, capability, name)?))).collect();
        let missing: Vec<&str> =
            required_names(catalog, capability).into_iter().filter(|name| !given.contains_key(*name)).collect();
        if missing.is_empty() {
            return Ok(vec![given]);
        }
        let mut sets: Vec<Args> = Vec::new();
        for (index, related) in self.related_values(catalog, capability).into_iter().enumerate() {
            let value = |name: &&str| {
                let value =
                    related.get(*name).cloned().or_else(|| self.value_by_type(catalog, capability, name, index))?;
                Some(((*name).to_owned(), value))
            };
            let Some(values) = missing.iter().map(value).collect::<Option<Args>>() else { continue };
            let set: Args = given.clone().into_iter().chain(values).collect();
            if !sets.contains(&set) {
                sets.push(set);
            }
        }
        sets.truncate(MAX_ARGUMENT_SETS);
        if sets.is_empty() { Err(self.missing_values(catalog, capability, &missing)) } else { Ok(sets) }
    }

    /// Returns groups of arguments, each from one row: first from parents whose relation this capability follows, then from keys of the
    /// capability's own entity. Empty groups follow, because a call may need no values from a row.
    fn related_values(&self, catalog: &Catalog, capability: &Capability) -> Vec<Args> {
        let mut groups = Vec::new();
        for (parent, fill) in served_relations(catalog, capability) {
            for row in self.rows.get(&parent.name).into_iter().flatten() {
                let value = |(param, field): &(&String, &Option<String>)| {
                    let value = match field {
                        Some(field) => row.get(field).cloned(),
                        None => parent.reference(row),
                    };
                    Some(((*param).clone(), value.filter(|v| !v.is_null())?))
                };
                groups.push(fill.iter().filter_map(value).collect());
            }
        }
        for key in self.keys.get(&capability.entity).into_iter().flatten() {
            let parts = catalog.entity(&capability.entity).map(|e| e.key.as_slice()).unwrap_or_default();
            groups.push(match (parts, key) {
                (parts, Value::Object(map)) if parts.len() > 1 => {
                    parts.iter().filter_map(|part| Some((part.clone(), map.get(part)?.clone()))).collect()
                }
                ([only], key) => Args::from([(only.clone(), key.clone())]),
                _ => Args::new(),
            });
        }
        groups.extend((0..MAX_ARGUMENT_SETS).map(|_| Args::new()));
        groups
    }

    /// Returns a value for a parameter by its type: a key of the entity that it refers to, a word to search for, or a choice. Another
    /// `index` selects another sample.
    fn value_by_type(&self, catalog: &Catalog, capability: &Capability, name: &str, index: usize) -> Option<Value> {
        if capability.text.as_deref() == Some(name) {
            return self.search_word(catalog, &capability.entity, index).map(Value::from);
        }
        match param_type(catalog, capability, name)? {
            Type::Ref(target) => {
                let keys = self.keys.get(target).filter(|keys| !keys.is_empty())?;
                keys.get(index % keys.len()).cloned()
            }
            Type::Select(choices) => choices.first().cloned().map(Value::from),
            _ => None,
        }
    }

    /// Returns a word from the text of a sample row, because a search for this word should find the row.
    fn search_word(&self, catalog: &Catalog, entity: &str, index: usize) -> Option<String> {
        let rows = self.rows.get(entity).filter(|rows| !rows.is_empty())?;
        let row = rows.get(index % rows.len())?;
        let entity = catalog.entity(entity)?;
        let texts =
            entity.fields.values().filter(|f| matches!(f.kind, Type::String(_)) && !entity.key.contains(&f.name));
        let words = texts.filter_map(|f| row.get(&f.name)?.as_str()).flat_map(str::split_whitespace);
        words
            .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()))
            .find(|w| w.chars().count() >= 4)
            .map(str::to_owned)
    }

    /// Returns the missing parameters of a capability, and the entities whose rows would contain their values.
    fn missing_values(&self, catalog: &Catalog, capability: &Capability, missing: &[&str]) -> MissingValues {
        let parents = served_relations(catalog, capability).map(|(parent, _)| parent.name.clone());
        let needs_own_row = missing.iter().any(|name| {
            capability.text.as_deref() == Some(*name)
                || catalog.entity(&capability.entity).is_some_and(|e| e.key.iter().any(|part| part == name))
        });
        let referred = missing.iter().filter_map(|name| match param_type(catalog, capability, name)? {
            Type::Ref(target) => Some(target.clone()),
            _ => None,
        });
        let mut entities: Vec<String> =
            needs_own_row.then(|| capability.entity.clone()).into_iter().chain(referred).chain(parents).collect();
        let mut listed = BTreeSet::new();
        entities.retain(|name| listed.insert(name.clone()));
        MissingValues { params: missing.iter().map(|name| (*name).to_owned()).collect(), entities }
    }
}

/// Returns the names of the parameters and key parts that a call needs.
fn required_names<'a>(catalog: &'a Catalog, capability: &'a Capability) -> Vec<&'a str> {
    let key = catalog.entity(&capability.entity).map(|e| e.key.as_slice()).unwrap_or_default();
    let is_key = |name: &str| capability.kind == catalog::Kind::Get && key.iter().any(|part| part == name);
    let is_text = |name: &str| capability.text.as_deref() == Some(name);
    let params = capability.params.values().filter(|p| p.required || is_key(&p.name) || is_text(&p.name));
    let anchor = capability.anchor.iter().filter(|part| !capability.params.contains_key(*part));
    params.map(|p| p.name.as_str()).chain(anchor.map(String::as_str)).collect()
}

/// The parameters that a relation fills, each with the field of the parent that is its value. `None` stands for the parent's key.
type FilledParams<'a> = Vec<(&'a String, &'a Option<String>)>;

/// Returns the entities with a relation that this capability follows, each with the parameters that the relation fills.
fn served_relations<'a>(
    catalog: &'a Catalog,
    capability: &'a Capability,
) -> impl Iterator<Item = (&'a catalog::Entity, FilledParams<'a>)> {
    let relations = catalog.entities.values().flat_map(|e| e.relations.values().map(move |r| (e, &r.via)));
    relations.filter_map(|(entity, via)| match via {
        Via::Call { capability: by, fill } if *by == capability.name => Some((entity, fill.iter().collect())),
        _ => None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    const TRACKER: &str = r#"
catalog: tracker
version: 1
title: Tracker
origin: https://tracker.example
types:
  State: {select: [open, done]}
entities:
  Project:
    about: work
    key: [key]
    fields: {key: string, name: string}
    relations:
      tickets: {many: Ticket, by: ticket_list, with: {project: key}}
  Ticket:
    about: a unit
    key: [project, number]
    fields: {project: string, number: integer, title: string, owner: {ref: Person}}
  Person:
    about: someone
    key: [id]
    fields: {id: string}
capabilities:
  project_list: {query: Project, http: GET /projects}
  ticket_list:
    query: Ticket
    params: {project: {type: string, required: true}, state: State}
    http: GET /projects/{project}/tickets?state={state}
  ticket_get: {get: Ticket, http: "GET /projects/{project}/tickets/{number}"}
  ticket_search: {search: Ticket, text: q, http: "GET /search?q={q}"}
  person_get: {get: Person, http: "GET /people/{id}"}
  person_list: {query: Person, params: {state: {type: State, required: true}}, http: "GET /people?with={state}"}
"#;

    fn rows(value: Value) -> Vec<Row> {
        serde_json::from_value(value).unwrap()
    }

    fn tracker() -> Catalog {
        catalog::read("tracker.yaml", TRACKER).unwrap()
    }

    fn argument_sets(samples: &Samples, capability: &str, params: &[&str]) -> Result<Value, MissingValues> {
        let catalog = tracker();
        let params: Vec<String> = params.iter().map(|p| (*p).to_owned()).collect();
        let given = GivenParams::parse(&params).unwrap();
        samples.argument_sets(&catalog, catalog.capability(capability).unwrap(), &given).map(|sets| json!(sets))
    }

    #[test]
    fn without_samples_the_missing_values_are_named() {
        let none = Samples::default();
        assert_eq!(argument_sets(&none, "project_list", &[]), Ok(json!([{}])));
        let missing = |params: &[&str], entities: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
            Err(MissingValues { params: owned(params), entities: owned(entities) })
        };
        assert_eq!(argument_sets(&none, "ticket_list", &[]), missing(&["project"], &["Ticket", "Project"]));
        assert_eq!(argument_sets(&none, "ticket_get", &["number=3"]), missing(&["project"], &["Ticket"]));
        assert_eq!(argument_sets(&none, "ticket_search", &[]), missing(&["q"], &["Ticket"]));
        assert_eq!(
            argument_sets(&none, "person_list", &[]),
            Ok(json!([{"state": "open"}])),
            "the first choice is used"
        );
        assert_eq!(argument_sets(&none, "ticket_search", &["q=rust"]), Ok(json!([{"q": "rust"}])));
    }

    #[test]
    fn a_relation_fills_parameters_from_its_parent() {
        let mut samples = Samples::default();
        samples.add(&tracker(), "Project", &rows(json!([{"key": "OPS", "name": "x"}, {"key": "API", "name": "y"}])));
        let expected = json!([{"project": "OPS"}, {"project": "API"}]);
        assert_eq!(argument_sets(&samples, "ticket_list", &[]), Ok(expected));
        assert_eq!(
            argument_sets(&samples, "ticket_list", &["project=WEB", "state=done"]),
            Ok(json!([{"project": "WEB", "state": "done"}]))
        );
    }

    #[test]
    fn keys_come_whole_from_one_row_and_words_from_its_text() {
        let mut samples = Samples::default();
        let tickets = json!([
            {"project": "OPS", "number": 1, "title": "The login fails", "owner": "ada"},
            {"project": "API", "number": 2, "title": "Slow", "owner": null},
        ]);
        samples.add(&tracker(), "Ticket", &rows(tickets));
        let expected = json!([{"project": "OPS", "number": 1}, {"project": "API", "number": 2}]);
        assert_eq!(argument_sets(&samples, "ticket_get", &[]), Ok(expected));
        assert_eq!(argument_sets(&samples, "ticket_search", &[]), Ok(json!([{"q": "login"}, {"q": "Slow"}])));
        assert_eq!(
            argument_sets(&samples, "person_get", &[]),
            Ok(json!([{"id": "ada"}])),
            "a field that refers to a person gives the person's key"
        );
    }

    #[test]
    fn the_number_of_samples_and_argument_sets_is_limited() {
        let mut samples = Samples::default();
        let many: Vec<Value> = (0..100).map(|n| json!({"key": format!("P{n}"), "name": "x"})).collect();
        for _ in 0..3 {
            samples.add(&tracker(), "Project", &rows(json!(many)));
        }
        assert_eq!(samples.rows["Project"].len(), MAX_ROWS);
        assert_eq!(argument_sets(&samples, "ticket_list", &[]).unwrap().as_array().unwrap().len(), MAX_ARGUMENT_SETS);
    }
}
