//! The mapping of lists and searches: each `GET`, or read-only `POST`, that answers with many rows.
//! Invariant: the lists of one entity differ in their required parameters. A list that does not differ becomes a list of a new
//! entity.

use std::collections::BTreeSet;

use catalog::Kind;
use catalog::raw::{Declaration, FieldPath};
use serde_json::Value;

use super::items::non_empty;
use super::keys::KeyPart;
use super::{Endpoint, Mapper, PlannedCapability, verbs};
use crate::api::answer::AnswerShape;
use crate::api::path::OperationPath;
use crate::draft::named_type;
use crate::names;
use crate::spec::{Param, ParamLocation, Scalar, Verb};

/// Names of parameters for search words, in snake case.
const SEARCH_PARAMS: [&str; 10] =
    ["q", "query", "search", "search_term", "text", "term", "keyword", "keywords", "search_text", "search_query"];

impl<'a> Mapper<'_, 'a> {
    pub(super) fn map_lists(&mut self) {
        let is_open_list = |at: &usize| !self.is_done[*at] && is_list(&self.endpoints[*at]);
        let mut lists: Vec<usize> = (0..self.endpoints.len()).filter(is_open_list).collect();
        // A list next to the entity's get path is mapped first, so that it becomes the plain list. Then shorter paths come
        // first.
        lists.sort_by_key(|at| {
            let Endpoint { op, path, .. } = &self.endpoints[*at];
            let is_beside_get = self.entity_by_home.contains_key(&item_path(path));
            (!is_beside_get, op.verb != Verb::Get, path.keys.len(), *at)
        });
        for endpoint in lists {
            self.map_list(endpoint);
        }
    }

    fn map_list(&mut self, endpoint: usize) {
        let (path, row, is_entries) = match &self.endpoints[endpoint].answer.shape {
            AnswerShape::Rows { path, item } => (path, *item, false),
            AnswerShape::Entries { path, item } => (path, *item, true),
            AnswerShape::Values { path, item } => {
                let rows = non_empty(path);
                let item = *item;
                return self.map_values(endpoint, rows, Some(item));
            }
            _ => return self.map_values(endpoint, None, None),
        };
        let rows = non_empty(path);
        let mut needs = self.required_inputs(endpoint);
        let entity = match is_entries {
            true => None,
            false => self
                .listed_entity(endpoint, row, &needs)
                .or_else(|| self.listed_entity_with_named_scope(endpoint, row, &mut needs)),
        };
        let Some(entity) = entity.or_else(|| self.add_listed_entity(endpoint, row, is_entries)) else {
            return self.report_unmapped(endpoint, "its rows have nothing that could identify them");
        };
        self.add_row_schema(entity, row);
        self.entity_by_list_path.entry(self.endpoints[endpoint].path.keys.join("/")).or_insert(entity);
        let placeholders = self.endpoints[endpoint].scope_names.clone();
        if let Some(search_param) = self.search_param(endpoint, true) {
            needs.remove(&names::field_name(&search_param));
            if self.entities[entity].search_required_inputs.contains(&needs) {
                let why = format!("{} has a search that needs the same", self.entities[entity].name);
                return self.report_unmapped(endpoint, why);
            }
            return self.add_search(endpoint, entity, search_param, needs, rows);
        }
        self.entities[entity].query_required_inputs.push(needs.clone());
        let mut plan = PlannedCapability::new(endpoint, entity, Kind::Query, "list", placeholders);
        plan.rows = rows.clone();
        plan.entries = is_entries.then(|| "key".to_owned());
        // A list with an optional parameter for words becomes a query and a search.
        let search_param = self
            .search_param(endpoint, false)
            .filter(|_| !is_entries && !self.entities[entity].search_required_inputs.contains(&needs));
        plan.hidden_param = search_param.clone();
        self.add_plan(plan);
        if let Some(search_param) = search_param {
            self.add_search(endpoint, entity, search_param, needs, rows);
        }
    }

    fn add_search(
        &mut self,
        endpoint: usize,
        entity: usize,
        search_param: String,
        needs: BTreeSet<String>,
        rows: Option<String>,
    ) {
        self.entities[entity].search_required_inputs.push(needs);
        let placeholders = self.endpoints[endpoint].scope_names.clone();
        let mut plan = PlannedCapability::new(endpoint, entity, Kind::Search, "search", placeholders);
        plan.rows = rows;
        plan.search_param = Some(search_param);
        self.add_plan(plan);
    }

    /// Returns the known entity of these rows, if it has no other list with the same required parameters.
    fn listed_entity(&self, endpoint: usize, row: &'a Value, needs: &BTreeSet<String>) -> Option<usize> {
        let path = &self.endpoints[endpoint].path;
        let is_free = |entity: &usize| {
            let known = &self.entities[*entity];
            known.extra_fields.is_empty()
                && !known.query_required_inputs.contains(needs)
                && self.fits(*entity, endpoint, row, true)
        };
        if let Some(entity) = self.entity_by_home.get(&item_path(path)).copied().filter(is_free) {
            return Some(entity);
        }
        // Of several entities with this row schema, the one whose home shares the longest path prefix wins.
        let shared_keys = |entity: &usize| {
            let home = self.entities[*entity].home.as_deref().unwrap_or_default();
            home.iter().zip(&path.keys).take_while(|(a, b)| a == b).count()
        };
        let with_rows = self.entities_by_schema_name.get(&self.schema_name(row)).into_iter().flatten().copied();
        let nearest = with_rows.filter(is_free).max_by_key(|entity| (shared_keys(entity), std::cmp::Reverse(*entity)));
        // `/search/issues` may return rows with another schema. They are issues if most properties agree.
        let of_name = || {
            let name = names::singular(&names::snake_case(path.last_word()));
            let entity = self.first_entity_by_name.get(&name).copied()?;
            (is_free(&entity) && self.shares_most_properties(entity, row)).then_some(entity)
        };
        nearest.or_else(of_name)
    }

    /// Returns the known entity of a second list within the same scope. The last scope parameter is renamed after the list, so
    /// that the lists differ in their required parameters: `Task{subtasks_of="7"}`.
    fn listed_entity_with_named_scope(
        &mut self,
        endpoint: usize,
        row: &'a Value,
        needs: &mut BTreeSet<String>,
    ) -> Option<usize> {
        let Endpoint { path, scope_names, .. } = &self.endpoints[endpoint];
        let last = scope_names.len().checked_sub(1)?;
        let name = names::field_name(&format!("{}_of", names::snake_case(path.last_word())));
        if path.ends_in_placeholder() || scope_names.contains(&name) {
            return None;
        }
        let plain_name = std::mem::replace(&mut self.endpoints[endpoint].scope_names[last], name);
        let renamed_needs = self.required_inputs(endpoint);
        let entity = self.listed_entity(endpoint, row, &renamed_needs);
        match entity {
            Some(_) => *needs = renamed_needs,
            None => self.endpoints[endpoint].scope_names[last] = plain_name,
        }
        entity
    }

    /// Adds an entity that no get reads. Returns `None` if no key was found for its rows.
    fn add_listed_entity(&mut self, endpoint: usize, row: &'a Value, is_entries: bool) -> Option<usize> {
        let stem = self.list_stem(endpoint, row);
        let item = self.item_of_list(endpoint);
        let key = if is_entries {
            vec![KeyPart { name: "key".to_owned(), field: Declaration::new(named_type("string")) }]
        } else {
            self.list_key(item, row, &stem)?
        };
        let home = item.map(|item| self.endpoints[item].path.keys.clone());
        let home = home.filter(|home| !self.entity_by_home.contains_key(&home.join("/")));
        let name = self.name_entity(&stem, endpoint);
        Some(self.add_entity(endpoint, name, home, key))
    }

    /// Returns the stem of the name for a new entity with these rows. If an entity of the name exists, a path word is put in
    /// front: `/gists/starred` lists a `StarredGist`.
    fn list_stem(&self, endpoint: usize, row: &'a Value) -> Vec<String> {
        let stem = self.stem(Some(row), endpoint);
        let is_taken = self.entity_names.contains(&names::pascal_case(&stem).to_ascii_lowercase());
        let mut path_words = names::words(self.endpoints[endpoint].path.last_word());
        for word in &mut path_words {
            *word = names::singular(word);
        }
        if !is_taken || path_words.is_empty() || path_words.last() == stem.last() || path_words.len() > 3 {
            return stem;
        }
        path_words.retain(|word| !stem.contains(word));
        path_words.into_iter().chain(stem).collect()
    }

    /// Returns the key of rows that no get reads: the key of an operation on one such row, else a row property.
    fn list_key(&mut self, item: Option<usize>, row: &'a Value, stem: &[String]) -> Option<Vec<KeyPart>> {
        let label = names::pascal_case(stem);
        let Some(item) = item else {
            if let Some(part) = self.row_key(row, stem, &label) {
                return Some(vec![part]);
            }
            self.report_guess(&label, "its rows have no field that could identify them".to_owned());
            return Some(vec![KeyPart::answer_date()]);
        };
        let key = self.item_key(item, Some(row), stem);
        // The request of a list does not identify one row, so a key part from the request cannot be the whole key.
        match key.as_slice() {
            [only] if only.is_from_request() => Some(vec![self.row_key(row, stem, &label)?]),
            _ => Some(key),
        }
    }

    /// Returns the index of an endpoint whose path is this list's path plus one placeholder.
    fn item_of_list(&self, endpoint: usize) -> Option<usize> {
        let path = &self.endpoints[endpoint].path;
        // This lookup avoids the scan below for most lists. A scan of all endpoints for each list would be quadratic.
        self.operations_below.get(&item_path(path))?;
        self.endpoints.iter().position(|other| {
            other.path.keys.len() == path.keys.len() + 1
                && other.path.ends_in_placeholder()
                && other.path.keys.starts_with(&path.keys)
        })
    }

    /// Maps a list of scalars or of undeclared items. Each item becomes the field `value` of a row.
    fn map_values(&mut self, endpoint: usize, rows: Option<String>, item: Option<&'a Value>) {
        let mut stem: Vec<String> = names::words(self.endpoints[endpoint].path.last_word());
        if let Some(last) = stem.last_mut() {
            *last = names::singular(last);
        }
        let name = self.name_entity(&stem, endpoint);
        let key_item = item.filter(|item| self.reader.scalar(item).is_some_and(|scalar| scalar != Scalar::Boolean));
        let entity = match key_item {
            Some(item) => {
                let field = Declaration::new(self.key_kind(item));
                self.add_entity(endpoint, name, None, vec![KeyPart { name: "value".to_owned(), field }])
            }
            None => {
                let entity = self.add_entity(endpoint, name.clone(), None, vec![KeyPart::answer_date()]);
                let path = Some(FieldPath::One("value".to_owned()));
                let field = Declaration { path, ..Declaration::new(named_type("json")) };
                self.entities[entity].extra_fields.push(("value".to_owned(), field));
                let guess = "the specification does not say what its rows hold: each is the field `value`";
                self.report_guess(&name, guess.to_owned());
                entity
            }
        };
        let needs = self.required_inputs(endpoint);
        self.entities[entity].query_required_inputs.push(needs);
        let placeholders = self.endpoints[endpoint].scope_names.clone();
        let mut plan = PlannedCapability::new(endpoint, entity, Kind::Query, "list", placeholders);
        plan.rows = rows;
        plan.wrap = Some("value".to_owned());
        self.add_plan(plan);
    }

    /// Returns the name of the text parameter for search words. `required` selects required or optional parameters.
    fn search_param(&self, endpoint: usize, required: bool) -> Option<String> {
        let takes_words = |param: &&Param<'a>| {
            param.location == ParamLocation::Query
                && param.required == required
                && self.reader.scalar(param.schema) == Some(Scalar::Text)
                && self.reader.open(param.schema).get("enum").is_none()
        };
        let params: Vec<&Param<'a>> = self.endpoints[endpoint].op.params.iter().filter(takes_words).collect();
        let by_name = |name: &&str| params.iter().find(|param| names::has_snake_case(param.name, name));
        SEARCH_PARAMS.iter().find_map(by_name).map(|param| param.name.to_owned())
    }
}

fn is_list(endpoint: &Endpoint<'_>) -> bool {
    let Endpoint { op, path, answer, .. } = endpoint;
    match answer.shape {
        AnswerShape::Rows { .. } | AnswerShape::Values { .. } | AnswerShape::Entries { .. } => {
            op.verb == Verb::Get || (op.verb == Verb::Post && verbs::is_read_by_post(op, path))
        }
        // An undeclared answer at a plural path such as `/tickets` is probably a list.
        AnswerShape::Undeclared => {
            op.verb == Verb::Get && !path.ends_in_placeholder() && names::is_plural(path.last_word())
        }
        _ => false,
    }
}

/// Returns the path of one row of a list in the form of `MappedEntity::home`, joined by `/`.
fn item_path(path: &OperationPath) -> String {
    format!("{}/{{}}", path.keys.join("/"))
}
