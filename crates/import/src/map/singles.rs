//! The mapping of single-row reads at a path that ends in a word: the caller's account, a repository's licence, the weather of
//! a place.
//! Invariant: the required values of the request are the entity's key. If the request needs no values, the entity is a
//! singleton.

use catalog::Kind;
use catalog::raw::Declaration;
use serde_json::Value;

use super::items::non_empty;
use super::keys::KeyPart;
use super::{Endpoint, Mapper, PlannedCapability, verbs};
use crate::api::answer::AnswerShape;
use crate::names;
use crate::spec::{Param, ParamLocation, Verb};

/// The maximum number of required query parameters that become key parts.
const MAX_KEY_PARAMS: usize = 4;

/// A key that consists of the required values of a request.
struct RequestKey {
    parts: Vec<KeyPart>,
    /// Query parameters that take a key part: the name of the parameter and the name of the key part.
    params: Vec<(String, String)>,
}

impl<'a> Mapper<'_, 'a> {
    pub(super) fn map_singles(&mut self) {
        let singles: Vec<usize> =
            (0..self.endpoints.len()).filter(|at| !self.is_done[*at] && is_read(&self.endpoints[*at])).collect();
        for endpoint in singles {
            match &self.endpoints[endpoint].answer.shape {
                AnswerShape::One { path, schema } => {
                    let rows = non_empty(path);
                    let schema = *schema;
                    self.map_single(endpoint, rows, Some(schema));
                }
                AnswerShape::Undeclared => self.map_single(endpoint, None, None),
                AnswerShape::Scalar => {
                    self.report_unmapped(endpoint, "it answers with a bare value, not with an object or a list");
                }
                AnswerShape::Unreadable(reason) => {
                    let reason = reason.clone();
                    self.report_unmapped(endpoint, reason);
                }
                AnswerShape::Rows { .. } | AnswerShape::Values { .. } | AnswerShape::Entries { .. } => {}
            }
        }
    }

    fn map_single(&mut self, endpoint: usize, rows: Option<String>, row: Option<&'a Value>) {
        if let Some(row) = row
            && let Some(entity) = self.known_entity(endpoint, row)
        {
            return self.map_single_of_known(endpoint, entity, rows, row);
        }
        let placeholders = self.endpoints[endpoint].scope_names.clone();
        let stem = self.stem(row, endpoint);
        let mut key = self.request_key(endpoint, row);
        let is_alone = key.parts.is_empty();
        if is_alone {
            let label = names::pascal_case(&stem);
            let part = row.and_then(|row| self.sure_row_key(row, &stem, &label));
            key.parts.push(part.unwrap_or_else(KeyPart::answer_date));
        }
        let name = self.name_entity(&stem, endpoint);
        let home = self.endpoints[endpoint].path.keys.clone();
        let home = (!self.entity_by_home.contains_key(&home.join("/"))).then_some(home);
        let entity = self.add_entity(endpoint, name, home, key.parts);
        match row {
            Some(row) => self.add_row_schema(entity, row),
            None => self.add_answer_field(entity),
        }
        let (kind, verb) = if is_alone { (Kind::Singleton, "read") } else { (Kind::Get, "get") };
        let mut plan = PlannedCapability::new(endpoint, entity, kind, verb, placeholders);
        plan.rows = rows;
        plan.key_params = key.params;
        self.add_plan(plan);
    }

    /// Returns the known entity with this row schema whose key is in the row or in the request.
    fn known_entity(&self, endpoint: usize, row: &'a Value) -> Option<usize> {
        let known = self.entities_by_schema_name.get(&self.schema_name(row))?;
        let fits =
            |entity: &usize| self.entities[*entity].extra_fields.is_empty() && self.fits(*entity, endpoint, row, false);
        known.iter().copied().find(fits)
    }

    fn map_single_of_known(&mut self, endpoint: usize, entity: usize, rows: Option<String>, row: &'a Value) {
        self.add_row_schema(entity, row);
        let placeholders = self.endpoints[endpoint].scope_names.clone();
        let mut plan = match self.key_param(endpoint, entity, row) {
            Some(key_param) => {
                let mut plan = PlannedCapability::new(endpoint, entity, Kind::Get, "get", placeholders);
                plan.key_params.push(key_param);
                self.entities[entity].home.get_or_insert(self.endpoints[endpoint].path.keys.clone());
                plan
            }
            None => {
                let verb = self.lookup_verb(endpoint, entity);
                PlannedCapability::new(endpoint, entity, Kind::Singleton, &verb, placeholders)
            }
        };
        plan.rows = rows;
        self.add_plan(plan);
    }

    /// Returns the query parameter that takes the entity's key, with the name of the key part: `user` in `users.info?user=U1`.
    /// Returns `None` if the entity already has a get.
    fn key_param(&self, endpoint: usize, entity: usize, row: &'a Value) -> Option<(String, String)> {
        let [part] = self.entities[entity].key.as_slice() else { return None };
        let has_get = self.plans.iter().any(|plan| plan.kind == Kind::Get && plan.entity == entity);
        let Endpoint { op, scope_names, answer, .. } = &self.endpoints[endpoint];
        if has_get || !scope_names.is_empty() || op.verb != Verb::Get {
            return None;
        }
        let key_path = part.path_in_row()?;
        let stem = names::words(&self.entities[entity].name);
        let answer_name = match &answer.shape {
            AnswerShape::One { path, .. } => names::snake_case(path),
            _ => String::new(),
        };
        let is_named_after_row = |param: &Param<'a>| {
            let name = names::singular(&names::snake_case(param.name));
            name == stem.join("_") || name == answer_name
        };
        let is_input = |param: &&Param<'a>| {
            param.location == ParamLocation::Query && !self.is_credential(param) && self.fixed_value(param).is_none()
        };
        let inputs: Vec<&Param<'a>> = op.params.iter().filter(is_input).collect();
        let required: Vec<&Param<'a>> = inputs.iter().copied().filter(|param| param.required).collect();
        let param = match required.as_slice() {
            [] => inputs.into_iter().find(|param| is_named_after_row(param))?,
            [only] => only,
            _ => return None,
        };
        let stem = if is_named_after_row(param) { names::words(param.name) } else { stem.clone() };
        let property = self.key_property(row, param.name, param.schema, &stem)?;
        (property.path == *key_path).then(|| (param.name.to_owned(), part.name.clone()))
    }

    /// Returns the key that consists of all required path and query values of the request.
    fn request_key(&self, endpoint: usize, row: Option<&'a Value>) -> RequestKey {
        let Endpoint { op, scope_names, .. } = &self.endpoints[endpoint];
        let mut key = RequestKey { parts: Vec::new(), params: Vec::new() };
        for (at, name) in scope_names.iter().enumerate() {
            let schema = self.placeholder_schema(endpoint, at);
            let kind = self.key_kind(schema);
            let has_property = row.is_some_and(|row| self.has_scalar_like(row, name, schema));
            key.parts.push(if has_property {
                KeyPart { name: name.clone(), field: Declaration::new(kind) }
            } else {
                KeyPart::from_request(name.clone(), kind)
            });
        }
        if op.verb != Verb::Get {
            return key;
        }
        let required = op.params.iter().filter(|param| param.location == ParamLocation::Query && param.required);
        for param in required.take(MAX_KEY_PARAMS) {
            let name = names::field_name(param.name);
            let is_input = self.fixed_value(param).is_none() && !self.is_credential(param);
            let is_scalar = self.reader.scalar(param.schema).is_some();
            if !is_input || !is_scalar || key.parts.iter().any(|part| part.name == name) {
                continue;
            }
            key.params.push((param.name.to_owned(), name.clone()));
            key.parts.push(KeyPart::from_request(name, self.key_kind(param.schema)));
        }
        key
    }

    /// Returns whether the row has a property of exactly this name with the same scalar type as the schema.
    fn has_scalar_like(&self, row: &'a Value, name: &str, schema: &'a Value) -> bool {
        if !self.reader.is_object(row) || !self.row_has_path(row, name) {
            return false;
        }
        let object = self.reader.object(row);
        let scalar = object.props.get(name).and_then(|property| self.reader.scalar(property.schema));
        scalar.is_some() && scalar == self.reader.scalar(schema)
    }
}

fn is_read(endpoint: &Endpoint<'_>) -> bool {
    let Endpoint { op, path, answer, .. } = endpoint;
    let reads_by_post =
        op.verb == Verb::Post && matches!(answer.shape, AnswerShape::One { .. }) && verbs::is_read_by_post(op, path);
    op.verb == Verb::Get || reads_by_post
}
