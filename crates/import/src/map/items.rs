//! The mapping of reads by key: each `GET` of a path that ends in a placeholder and answers with one row becomes a get of an
//! entity.
//! Invariant: of several paths to rows of one schema, the shortest becomes the entity's home. Of equally short paths, the one
//! with most operations below it wins.

use std::cmp::Reverse;

use catalog::Kind;
use catalog::raw::{Declaration, FieldPath};
use serde_json::Value;

use super::keys::KeyPart;
use super::{Endpoint, Mapper, PlannedCapability};
use crate::api::answer::AnswerShape;
use crate::draft::named_type;
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
        let placeholders = self.endpoints[endpoint].scope_names.clone();
        if let Some(row) = row {
            let known = self.entities_by_schema_name.get(&self.schema_name(row)).cloned().unwrap_or_default();
            if let Some(entity) = known.into_iter().find(|entity| self.fits(*entity, endpoint, row, false)) {
                // A second path to rows of a known entity becomes a separate method.
                self.add_row_schema(entity, row);
                let verb = self.lookup_verb(endpoint, entity);
                let mut plan = PlannedCapability::new(endpoint, entity, Kind::Singleton, &verb, placeholders);
                plan.rows = rows;
                return self.add_plan(plan);
            }
        }
        let stem = self.stem(row, endpoint);
        let home = self.endpoints[endpoint].path.keys.clone();
        if let Some(entity) = self.entity_by_home.get(&home.join("/")).copied() {
            let verb = self.lookup_verb(endpoint, entity);
            return self.add_plan(PlannedCapability::new(endpoint, entity, Kind::Singleton, &verb, placeholders));
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

    /// Adds the field `answer` of type `json` with the whole answer, for operations without a declared schema.
    pub(super) fn add_answer_field(&mut self, entity: usize) {
        let note = "the specification does not say what the answer holds";
        // An empty path selects the whole answer.
        let field = Declaration { path: Some(FieldPath::One(String::new())), ..Declaration::new(named_type("json")) };
        self.entities[entity].extra_fields.push(("answer".to_owned(), field));
        self.entities[entity].comment = Some(format!("LOOK: {note}."));
        let name = self.entities[entity].name.clone();
        self.report_guess(&name, format!("{note}: all of it is the field `answer`"));
    }

    /// Returns the key of an entity whose row is at this path. Each placeholder of the path becomes one key part.
    pub(super) fn item_key(&self, endpoint: usize, row: Option<&'a Value>, stem: &[String]) -> Vec<KeyPart> {
        let Endpoint { path, scope_names, .. } = &self.endpoints[endpoint];
        let last = path.placeholders.len().saturating_sub(1);
        let mut key: Vec<KeyPart> = Vec::new();
        for (at, scope_name) in scope_names.iter().enumerate() {
            let schema = self.placeholder_schema(endpoint, at);
            if at != last {
                // A scope is often missing in the row. Then the placeholder's declared type is better than the type of an
                // embedded parent.
                let own = row.and_then(|row| self.scope_property(row, scope_name, schema));
                let kind = self.key_kind(own.as_ref().map_or(schema, |property| property.schema));
                let embedded = || self.embedded_scope_property(row?, &path.keys, at, scope_name);
                key.push(match own.or_else(embedded) {
                    Some(property) => KeyPart { name: scope_name.clone(), field: property.field(scope_name, kind) },
                    None => KeyPart::from_request(scope_name.clone(), kind),
                });
                continue;
            }
            let property = row.and_then(|row| self.key_property(row, &path.placeholders[at].name, schema, stem));
            let own_name = property.as_ref().map(|property| names::field_name(property.own_name()));
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
    endpoint.op.verb == Verb::Get && endpoint.path.ends_in_placeholder() && has_one_row
}

/// Returns the row path, or `None` if it is empty, because a catalog omits empty paths.
pub(super) fn non_empty(path: &str) -> Option<String> {
    (!path.is_empty()).then(|| path.to_owned())
}
