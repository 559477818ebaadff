//! Lists and searches: each `GET`, or `POST` that only reads, with many rows in its answer.
//! Invariant: no two lists of one entity need the same parameters. The second one becomes a list of an entity of its own.

use std::collections::BTreeSet;

use catalog::Kind;
use catalog::raw::{Declaration, FieldPath};
use serde_json::Value;

use super::items::non_empty;
use super::keys::KeyPart;
use super::{Endpoint, Mapper, PlannedCapability, verbs};
use crate::api::answer::AnswerShape;
use crate::api::path::OperationPath;
use crate::draft::named;
use crate::names;
use crate::spec::{Param, ParamLocation, Scalar, Verb};

/// Names of parameters that take the words of a search, in snake case.
const SEARCH_PARAMS: [&str; 10] =
    ["q", "query", "search", "search_term", "text", "term", "keyword", "keywords", "search_text", "search_query"];

impl<'a> Mapper<'_, 'a> {
    pub(super) fn map_lists(&mut self) {
        let is_open_list = |at: &usize| !self.is_done[*at] && is_list(&self.endpoints[*at]);
        let mut lists: Vec<usize> = (0..self.endpoints.len()).filter(is_open_list).collect();
        // The plain list of an entity is the one beside its get. After those, the shortest path comes first.
        lists.sort_by_key(|at| {
            let Endpoint { op, path, .. } = &self.endpoints[*at];
            let is_beside_get = self.by_home.contains_key(&item_path(path));
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
        let mut needs = self.needs(endpoint);
        let entity = match is_entries {
            true => None,
            false => self
                .listed_entity(endpoint, row, &needs)
                .or_else(|| self.listed_entity_with_named_scope(endpoint, row, &mut needs)),
        };
        let Some(entity) = entity.or_else(|| self.add_listed_entity(endpoint, row, is_entries)) else {
            return self.refuse(endpoint, "its rows have nothing that could identify them");
        };
        self.add_row_schema(entity, row);
        self.by_list.entry(self.endpoints[endpoint].path.keys.join("/")).or_insert(entity);
        let holes = self.endpoints[endpoint].scope_names.clone();
        if let Some(search_param) = self.search_param(endpoint, true) {
            needs.remove(&names::name(&search_param));
            if self.entities[entity].search_needs.contains(&needs) {
                let why = format!("{} has a search that needs the same", self.entities[entity].name);
                return self.refuse(endpoint, why);
            }
            return self.add_search(endpoint, entity, search_param, needs, rows);
        }
        self.entities[entity].query_needs.push(needs.clone());
        let mut plan = PlannedCapability::new(endpoint, entity, Kind::Query, "list", holes);
        plan.rows = rows.clone();
        plan.entries = is_entries.then(|| "key".to_owned());
        // A list that can take words is a search too.
        let search_param = self
            .search_param(endpoint, false)
            .filter(|_| !is_entries && !self.entities[entity].search_needs.contains(&needs));
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
        self.entities[entity].search_needs.push(needs);
        let holes = self.endpoints[endpoint].scope_names.clone();
        let mut plan = PlannedCapability::new(endpoint, entity, Kind::Search, "search", holes);
        plan.rows = rows;
        plan.search_param = Some(search_param);
        self.add_plan(plan);
    }

    /// Returns the known entity whose rows these are, where it has no list that needs the same.
    fn listed_entity(&self, endpoint: usize, row: &'a Value, needs: &BTreeSet<String>) -> Option<usize> {
        let path = &self.endpoints[endpoint].path;
        let is_free = |entity: &usize| {
            let known = &self.entities[*entity];
            known.extra_fields.is_empty()
                && !known.query_needs.contains(needs)
                && self.fits(*entity, endpoint, row, true)
        };
        if let Some(entity) = self.by_home.get(&item_path(path)).copied().filter(is_free) {
            return Some(entity);
        }
        // Of the entities with such rows, the one whose home shares most of the path.
        let shared_keys = |entity: &usize| {
            let home = self.entities[*entity].home.as_deref().unwrap_or_default();
            home.iter().zip(&path.keys).take_while(|(a, b)| a == b).count()
        };
        let with_rows = self.by_schema_name.get(&self.schema_name(row)).into_iter().flatten().copied();
        let nearest = with_rows.filter(is_free).max_by_key(|entity| (shared_keys(entity), std::cmp::Reverse(*entity)));
        // `/search/issues` may give rows of another schema, which are issues nevertheless.
        let of_name = || {
            let name = names::singular(&names::snake(path.last_word()));
            let entity = self.first_named.get(&name).copied()?;
            (is_free(&entity) && self.shares_most_properties(entity, row)).then_some(entity)
        };
        nearest.or_else(of_name)
    }

    /// Returns the known entity whose rows a second list gives for the same scope. The last scope is then named after the list,
    /// so that a program can tell the lists apart: `Task{subtasks_of="7"}`.
    fn listed_entity_with_named_scope(
        &mut self,
        endpoint: usize,
        row: &'a Value,
        needs: &mut BTreeSet<String>,
    ) -> Option<usize> {
        let Endpoint { path, scope_names, .. } = &self.endpoints[endpoint];
        let last = scope_names.len().checked_sub(1)?;
        let name = names::name(&format!("{}_of", names::snake(path.last_word())));
        if path.ends_in_hole() || scope_names.contains(&name) {
            return None;
        }
        let plain_name = std::mem::replace(&mut self.endpoints[endpoint].scope_names[last], name);
        let renamed_needs = self.needs(endpoint);
        let entity = self.listed_entity(endpoint, row, &renamed_needs);
        match entity {
            Some(_) => *needs = renamed_needs,
            None => self.endpoints[endpoint].scope_names[last] = plain_name,
        }
        entity
    }

    /// Adds an entity that only lists have. Returns `None` where nothing identifies its rows.
    fn add_listed_entity(&mut self, endpoint: usize, row: &'a Value, is_entries: bool) -> Option<usize> {
        let stem = self.list_stem(endpoint, row);
        let item = self.item_of_list(endpoint);
        let key = if is_entries {
            vec![KeyPart { name: "key".to_owned(), field: Declaration::new(named("string")) }]
        } else {
            self.list_key(item, row, &stem)?
        };
        let home = item.map(|item| self.endpoints[item].path.keys.clone());
        let home = home.filter(|home| !self.by_home.contains_key(&home.join("/")));
        let name = self.name_entity(&stem, endpoint);
        Some(self.add_entity(endpoint, name, home, key))
    }

    /// Returns the words of the name for an entity of these rows. A second kind of the same rows is named after its path:
    /// `/gists/starred` lists a `StarredGist`.
    fn list_stem(&self, endpoint: usize, row: &'a Value) -> Vec<String> {
        let stem = self.stem(Some(row), endpoint);
        let is_taken = self.entity_names.contains(&names::pascal(&stem).to_ascii_lowercase());
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

    /// Returns the key of rows that only a list gives: that of the path to one of them, else a property of the row.
    fn list_key(&mut self, item: Option<usize>, row: &'a Value, stem: &[String]) -> Option<Vec<KeyPart>> {
        let label = names::pascal(stem);
        let Some(item) = item else {
            if let Some(part) = self.row_key(row, stem, &label) {
                return Some(vec![part]);
            }
            self.guess(&label, "its rows have no field that could identify them".to_owned());
            return Some(vec![KeyPart::answer_date()]);
        };
        let key = self.item_key(item, Some(row), stem);
        // A list says nothing about one row, so a key that is only known from the request is no key here.
        match key.as_slice() {
            [only] if only.is_from_request() => Some(vec![self.row_key(row, stem, &label)?]),
            _ => Some(key),
        }
    }

    /// Returns an operation whose path is that of this list with a hole after it.
    fn item_of_list(&self, endpoint: usize) -> Option<usize> {
        let path = &self.endpoints[endpoint].path;
        // Most lists have nothing below them, and a search through all operations is slow.
        self.operations_below.get(&item_path(path))?;
        self.endpoints.iter().position(|other| {
            other.path.keys.len() == path.keys.len() + 1
                && other.path.ends_in_hole()
                && other.path.keys.starts_with(&path.keys)
        })
    }

    /// Maps a list of values that are no objects, or that are undeclared. Each value becomes the field `value` of a row.
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
                let field = Declaration { path, ..Declaration::new(named("json")) };
                self.entities[entity].extra_fields.push(("value".to_owned(), field));
                let guess = "the specification does not say what its rows hold: each is the field `value`";
                self.guess(&name, guess.to_owned());
                entity
            }
        };
        let needs = self.needs(endpoint);
        self.entities[entity].query_needs.push(needs);
        let holes = self.endpoints[endpoint].scope_names.clone();
        let mut plan = PlannedCapability::new(endpoint, entity, Kind::Query, "list", holes);
        plan.rows = rows;
        plan.wrap = Some("value".to_owned());
        self.add_plan(plan);
    }

    /// Returns the parameter that takes the words of a search.
    fn search_param(&self, endpoint: usize, required: bool) -> Option<String> {
        let takes_words = |param: &&Param<'a>| {
            param.location == ParamLocation::Query
                && param.required == required
                && self.reader.scalar(param.schema) == Some(Scalar::Text)
                && self.reader.open(param.schema).get("enum").is_none()
        };
        let params: Vec<&Param<'a>> = self.endpoints[endpoint].op.params.iter().filter(takes_words).collect();
        let by_name = |name: &&str| params.iter().find(|param| names::is_snake(param.name, name));
        SEARCH_PARAMS.iter().find_map(by_name).map(|param| param.name.to_owned())
    }
}

fn is_list(endpoint: &Endpoint<'_>) -> bool {
    let Endpoint { op, path, answer, .. } = endpoint;
    match answer.shape {
        AnswerShape::Rows { .. } | AnswerShape::Values { .. } | AnswerShape::Entries { .. } => {
            op.verb == Verb::Get || (op.verb == Verb::Post && verbs::is_read_by_post(op, path))
        }
        // An undeclared answer of `/tickets` is probably a list.
        AnswerShape::Undeclared => op.verb == Verb::Get && !path.ends_in_hole() && names::is_plural(path.last_word()),
        _ => false,
    }
}

/// Returns the path to one row of a list, as a home.
fn item_path(path: &OperationPath) -> String {
    format!("{}/{{}}", path.keys.join("/"))
}
