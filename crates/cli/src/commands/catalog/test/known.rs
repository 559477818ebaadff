//! What has been read so far, and what calls can be made of it.
//! Invariant: the parts of one key, and what a relation fills, come from one row.

use std::collections::BTreeMap;

use catalog::{Args, Capability, Catalog, Row, Type, Via};
use serde_json::Value;

use super::given::{Given, type_of};

/// Rows kept of each entity: enough to find one with something behind it.
const ROWS: usize = 20;
/// Ways to call one capability that are tried until one gives rows.
const WAYS: usize = 3;

#[derive(Default)]
pub struct Known {
    rows: BTreeMap<String, Vec<Row>>,
    /// Keys, of rows and of fields that refer.
    keys: BTreeMap<String, Vec<Value>>,
}

/// Why a capability cannot be called: the parameters that nothing gives a value for.
#[derive(Debug, PartialEq, Eq)]
pub struct Lacking {
    pub params: Vec<String>,
    /// The entities whose rows would give them.
    pub entities: Vec<String>,
}

impl Known {
    pub fn keep(&mut self, catalog: &Catalog, entity: &str, rows: &[Row]) {
        let Some(found) = catalog.entity(entity) else { return };
        for row in rows.iter().take(ROWS) {
            self.keys.entry(entity.to_owned()).or_default().extend(found.reference(row));
            for relation in found.relations.values().filter(|r| matches!(r.via, Via::Embedded { .. })) {
                let embedded = row.get(&relation.name).and_then(Value::as_array).into_iter().flatten();
                let embedded: Vec<Row> = embedded.filter_map(|row| row.as_object().cloned()).collect();
                self.keep(catalog, &relation.target, &embedded);
            }
            for field in found.fields.values() {
                let target = match &field.kind {
                    Type::Ref(target) => target,
                    _ => continue,
                };
                let value = row.get(&field.name).filter(|v| !v.is_null());
                self.keys.entry(target.clone()).or_default().extend(value.cloned());
            }
        }
        let kept = self.rows.entry(entity.to_owned()).or_default();
        kept.extend(rows.iter().take(ROWS.saturating_sub(kept.len())).cloned());
    }

    /// Ways to call a capability, the likeliest first.
    pub fn ways(&self, catalog: &Catalog, capability: &Capability, given: &Given) -> Result<Vec<Args>, Lacking> {
        let named = capability.params.keys().chain(&capability.anchor);
        let base: Args =
            named.filter_map(|name| Some((name.clone(), given.value(catalog, capability, name)?))).collect();
        let missing: Vec<&str> =
            needed(catalog, capability).into_iter().filter(|name| !base.contains_key(*name)).collect();
        if missing.is_empty() {
            return Ok(vec![base]);
        }
        let mut ways: Vec<Args> = Vec::new();
        for (at, frame) in self.frames(catalog, capability).into_iter().enumerate() {
            let value = |name: &&str| {
                let found = frame.get(*name).cloned().or_else(|| self.by_type(catalog, capability, name, at))?;
                Some(((*name).to_owned(), found))
            };
            let Some(found) = missing.iter().map(value).collect::<Option<Args>>() else { continue };
            let way: Args = base.clone().into_iter().chain(found).collect();
            if !ways.contains(&way) {
                ways.push(way);
            }
        }
        ways.truncate(WAYS);
        if ways.is_empty() { Err(self.lacking(catalog, capability, &missing)) } else { Ok(ways) }
    }

    /// Values that belong together: of a parent whose relation this capability serves, of a row of its own entity, of none.
    fn frames(&self, catalog: &Catalog, capability: &Capability) -> Vec<Args> {
        let mut frames = Vec::new();
        for (parent, fill) in served(catalog, capability) {
            for row in self.rows.get(&parent.name).into_iter().flatten() {
                let value = |(param, field): &(&String, &Option<String>)| {
                    let value = match field {
                        Some(field) => row.get(field).cloned(),
                        None => parent.reference(row),
                    };
                    Some(((*param).clone(), value.filter(|v| !v.is_null())?))
                };
                frames.push(fill.iter().filter_map(value).collect());
            }
        }
        for key in self.keys.get(&capability.entity).into_iter().flatten() {
            let parts = catalog.entity(&capability.entity).map(|e| e.key.as_slice()).unwrap_or_default();
            frames.push(match (parts, key) {
                (parts, Value::Object(map)) if parts.len() > 1 => {
                    parts.iter().filter_map(|part| Some((part.clone(), map.get(part)?.clone()))).collect()
                }
                ([only], key) => Args::from([(only.clone(), key.clone())]),
                _ => Args::new(),
            });
        }
        frames.extend((0..WAYS).map(|_| Args::new()));
        frames
    }

    /// A value of the right type for a parameter: a key of the entity it refers to, a word to search for, a choice.
    fn by_type(&self, catalog: &Catalog, capability: &Capability, name: &str, at: usize) -> Option<Value> {
        if capability.text.as_deref() == Some(name) {
            return self.word(catalog, &capability.entity, at).map(Value::from);
        }
        match type_of(catalog, capability, name)? {
            Type::Ref(target) => {
                let keys = self.keys.get(target).filter(|keys| !keys.is_empty())?;
                keys.get(at % keys.len()).cloned()
            }
            Type::Select(choices) => choices.first().cloned().map(Value::from),
            _ => None,
        }
    }

    /// A word that a row of the entity has in its text, so that a search for it finds something.
    fn word(&self, catalog: &Catalog, entity: &str, at: usize) -> Option<String> {
        let rows = self.rows.get(entity).filter(|rows| !rows.is_empty())?;
        let row = rows.get(at % rows.len())?;
        let entity = catalog.entity(entity)?;
        let texts =
            entity.fields.values().filter(|f| matches!(f.kind, Type::String(_)) && !entity.key.contains(&f.name));
        let words = texts.filter_map(|f| row.get(&f.name)?.as_str()).flat_map(str::split_whitespace);
        words
            .map(|w| w.trim_matches(|c: char| !c.is_alphanumeric()))
            .find(|w| w.chars().count() >= 4)
            .map(str::to_owned)
    }

    fn lacking(&self, catalog: &Catalog, capability: &Capability, missing: &[&str]) -> Lacking {
        let parents = served(catalog, capability).map(|(parent, _)| parent.name.clone());
        let own = missing.iter().any(|name| {
            capability.text.as_deref() == Some(*name)
                || catalog.entity(&capability.entity).is_some_and(|e| e.key.iter().any(|part| part == name))
        });
        let referred = missing.iter().filter_map(|name| match type_of(catalog, capability, name)? {
            Type::Ref(target) => Some(target.clone()),
            _ => None,
        });
        let mut entities: Vec<String> =
            own.then(|| capability.entity.clone()).into_iter().chain(referred).chain(parents).collect();
        let mut seen = Vec::new();
        entities.retain(|name| {
            let new = !seen.contains(name);
            seen.push(name.clone());
            new
        });
        Lacking { params: missing.iter().map(|name| (*name).to_owned()).collect(), entities }
    }
}

/// What a call cannot do without.
fn needed<'a>(catalog: &'a Catalog, capability: &'a Capability) -> Vec<&'a str> {
    let key = catalog.entity(&capability.entity).map(|e| e.key.as_slice()).unwrap_or_default();
    let is_key = |name: &str| capability.kind == catalog::Kind::Get && key.iter().any(|part| part == name);
    let is_text = |name: &str| capability.text.as_deref() == Some(name);
    let params = capability.params.values().filter(|p| p.required || is_key(&p.name) || is_text(&p.name));
    let anchor = capability.anchor.iter().filter(|part| !capability.params.contains_key(*part));
    params.map(|p| p.name.as_str()).chain(anchor.map(String::as_str)).collect()
}

/// Parameter to the parent's field, or to none for the parent itself.
type Fill<'a> = Vec<(&'a String, &'a Option<String>)>;

/// The entities with a relation that this capability serves, and what that fills from the parent.
fn served<'a>(
    catalog: &'a Catalog,
    capability: &'a Capability,
) -> impl Iterator<Item = (&'a catalog::Entity, Fill<'a>)> {
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

    fn ways(known: &Known, capability: &str, params: &[&str]) -> Result<Value, Lacking> {
        let catalog = tracker();
        let params: Vec<String> = params.iter().map(|p| (*p).to_owned()).collect();
        let given = Given::parse(&params).unwrap();
        known.ways(&catalog, catalog.capability(capability).unwrap(), &given).map(|ways| json!(ways))
    }

    #[test]
    fn nothing_known_says_what_to_pass_and_what_would_do() {
        let none = Known::default();
        assert_eq!(ways(&none, "project_list", &[]), Ok(json!([{}])));
        let lacking = |params: &[&str], entities: &[&str]| {
            let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
            Err(Lacking { params: owned(params), entities: owned(entities) })
        };
        assert_eq!(ways(&none, "ticket_list", &[]), lacking(&["project"], &["Ticket", "Project"]));
        assert_eq!(ways(&none, "ticket_get", &["number=3"]), lacking(&["project"], &["Ticket"]));
        assert_eq!(ways(&none, "ticket_search", &[]), lacking(&["q"], &["Ticket"]));
        assert_eq!(ways(&none, "person_list", &[]), Ok(json!([{"state": "open"}])), "a choice is as good as any");
        assert_eq!(ways(&none, "ticket_search", &["q=rust"]), Ok(json!([{"q": "rust"}])));
    }

    #[test]
    fn a_relation_says_what_a_parent_fills() {
        let mut known = Known::default();
        known.keep(&tracker(), "Project", &rows(json!([{"key": "OPS", "name": "x"}, {"key": "API", "name": "y"}])));
        let wanted = json!([{"project": "OPS"}, {"project": "API"}]);
        assert_eq!(ways(&known, "ticket_list", &[]), Ok(wanted));
        assert_eq!(
            ways(&known, "ticket_list", &["project=WEB", "state=done"]),
            Ok(json!([{"project": "WEB", "state": "done"}]))
        );
    }

    #[test]
    fn keys_come_whole_from_one_row_and_words_from_its_text() {
        let mut known = Known::default();
        let tickets = json!([
            {"project": "OPS", "number": 1, "title": "The login fails", "owner": "ada"},
            {"project": "API", "number": 2, "title": "Slow", "owner": null},
        ]);
        known.keep(&tracker(), "Ticket", &rows(tickets));
        let wanted = json!([{"project": "OPS", "number": 1}, {"project": "API", "number": 2}]);
        assert_eq!(ways(&known, "ticket_get", &[]), Ok(wanted));
        assert_eq!(ways(&known, "ticket_search", &[]), Ok(json!([{"q": "login"}, {"q": "Slow"}])));
        assert_eq!(ways(&known, "person_get", &[]), Ok(json!([{"id": "ada"}])), "a field that refers gives a key");
    }

    #[test]
    fn only_so_much_is_kept() {
        let mut known = Known::default();
        let many: Vec<Value> = (0..100).map(|n| json!({"key": format!("P{n}"), "name": "x"})).collect();
        for _ in 0..3 {
            known.keep(&tracker(), "Project", &rows(json!(many)));
        }
        assert_eq!(known.rows["Project"].len(), ROWS);
        assert_eq!(ways(&known, "ticket_list", &[]).unwrap().as_array().unwrap().len(), WAYS);
    }
}
