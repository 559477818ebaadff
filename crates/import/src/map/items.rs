//! Reads by a key: each `GET` of a path that ends in a hole, with one row in its answer, makes an entity or reads a known one.
//! Invariant: of several paths to rows of one kind, the shortest is the home of the entity; of those, the one with most operations
//! below it.

use std::cmp::Reverse;

use catalog::Kind;
use catalog::raw::{Declaration, FieldPath};
use serde_json::Value;

use super::keys::KeyPart;
use super::{Endpoint, Mapper, PlannedCapability};
use crate::api::answer::AnswerShape;
use crate::draft::named;
use crate::names;
use crate::spec::Verb;

impl<'a> Mapper<'_, 'a> {
    pub(super) fn map_items(&mut self) {
        let mut items: Vec<usize> = (0..self.endpoints.len()).filter(|at| is_item(&self.endpoints[*at])).collect();
        items.sort_by_key(|at| {
            let Endpoint { path, answer, .. } = &self.endpoints[*at];
            let is_undeclared = matches!(answer.shape, AnswerShape::Undeclared);
            let below = self.operations_below.get(&path.keys.join("/")).copied().unwrap_or(0);
            (is_undeclared, path.keys.len(), Reverse(below), *at)
        });
        for endpoint in items {
            self.map_item(endpoint);
        }
    }

    fn map_item(&mut self, endpoint: usize) {
        let (rows, row) = match &self.endpoints[endpoint].answer.shape {
            AnswerShape::One { path, schema } => (non_empty(path), Some(*schema)),
            _ => (None, None),
        };
        let holes = self.endpoints[endpoint].scope_names.clone();
        if let Some(row) = row {
            let known = self.by_schema_name.get(&self.schema_name(row)).cloned().unwrap_or_default();
            if let Some(entity) = known.into_iter().find(|entity| self.fits(*entity, endpoint, row, false)) {
                // A second path to rows of a known entity is a method of its own.
                self.add_row_schema(entity, row);
                let verb = self.lookup_verb(endpoint, entity);
                let mut plan = PlannedCapability::new(endpoint, entity, Kind::Singleton, &verb, holes);
                plan.rows = rows;
                return self.add_plan(plan);
            }
        }
        let stem = self.stem(row, endpoint);
        let home = self.endpoints[endpoint].path.keys.clone();
        if let Some(entity) = self.by_home.get(&home.join("/")).copied() {
            let verb = self.lookup_verb(endpoint, entity);
            return self.add_plan(PlannedCapability::new(endpoint, entity, Kind::Singleton, &verb, holes));
        }
        let key = self.item_key(endpoint, row, &stem);
        let key_names: Vec<String> = key.iter().map(|part| part.name.clone()).collect();
        let name = self.name_entity(&stem, endpoint);
        let entity = self.add_entity(endpoint, name, Some(home), key);
        match row {
            Some(row) => self.add_row_schema(entity, row),
            None => self.add_answer_field(entity),
        }
        let mut plan = PlannedCapability::new(endpoint, entity, Kind::Get, "get", key_names);
        plan.rows = rows;
        self.add_plan(plan);
    }

    /// Adds the field `answer`, which holds the whole of an undeclared answer.
    pub(super) fn add_answer_field(&mut self, entity: usize) {
        let note = "the specification does not say what the answer holds";
        // The empty path is the answer itself.
        let field = Declaration { path: Some(FieldPath::One(String::new())), ..Declaration::new(named("json")) };
        self.entities[entity].extra_fields.push(("answer".to_owned(), field));
        self.entities[entity].comment = Some(format!("LOOK: {note}."));
        let name = self.entities[entity].name.clone();
        self.guess(&name, format!("{note}: all of it is the field `answer`"));
    }

    /// Returns the key that the holes of an item's path make.
    pub(super) fn item_key(&self, endpoint: usize, row: Option<&'a Value>, stem: &[String]) -> Vec<KeyPart> {
        let Endpoint { path, scope_names, .. } = &self.endpoints[endpoint];
        let last = path.holes.len().saturating_sub(1);
        let mut key: Vec<KeyPart> = Vec::new();
        for (at, scope_name) in scope_names.iter().enumerate() {
            let schema = self.hole_schema(endpoint, at);
            if at != last {
                // A scope is often no property of the row, so the hole says its type better than an embedded parent.
                let own = row.and_then(|row| self.scope_property(row, scope_name, schema));
                let kind = self.key_kind(own.as_ref().map_or(schema, |property| property.schema));
                let embedded = || self.embedded_scope_property(row?, &path.keys, at, scope_name);
                key.push(match own.or_else(embedded) {
                    Some(property) => KeyPart { name: scope_name.clone(), field: property.field(scope_name, kind) },
                    None => KeyPart::from_request(scope_name.clone(), kind),
                });
                continue;
            }
            let property = row.and_then(|row| self.key_property(row, &path.holes[at].name, schema, stem));
            let own_name = property.as_ref().map(|property| names::name(property.own_name()));
            let name =
                own_name.filter(|name| !scope_names[..last].contains(name)).unwrap_or_else(|| scope_name.clone());
            key.push(match property {
                Some(property) => {
                    let kind = self.key_kind(property.schema);
                    KeyPart { field: property.field(&name, kind), name }
                }
                None => KeyPart::from_request(name, self.key_kind(schema)),
            });
        }
        key
    }
}

fn is_item(endpoint: &Endpoint<'_>) -> bool {
    let has_one_row = matches!(endpoint.answer.shape, AnswerShape::One { .. } | AnswerShape::Undeclared);
    endpoint.op.verb == Verb::Get && endpoint.path.ends_in_hole() && has_one_row
}

/// Returns the path of rows as a catalog declares it, where the empty path is left out.
pub(super) fn non_empty(path: &str) -> Option<String> {
    (!path.is_empty()).then(|| path.to_owned())
}
