//! The mapping of writes: creates, updates, deletes, and actions on a row or on the whole API.
//! Invariant: a write belongs to the entity whose path contains it, else to the nearest entity. Its answer is read only if it
//! contains a row of an entity.

use catalog::Kind;
use serde_json::Value;

use super::items::non_empty;
use super::keys::KeyPart;
use super::{Endpoint, MappedEntity, Mapper, PlannedCapability};
use crate::api::answer::AnswerShape;
use crate::api::path::is_root_word;
use crate::names;
use crate::spec::Verb;

/// The relation of a write's path to the home of its entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathRelation {
    /// The path is the entity's home: it addresses one row.
    Row,
    /// The path addresses all rows: it is the home without the last placeholder.
    Collection,
    /// The path continues below the entity's home.
    BelowRow,
    /// The path has another relation to the entity, such as the same tag.
    Near,
}

impl<'a> Mapper<'_, 'a> {
    pub(super) fn map_writes(&mut self) {
        let mut writes: Vec<usize> = (0..self.endpoints.len()).filter(|at| !self.is_done[*at]).collect();
        writes.sort_by_key(|at| {
            let Endpoint { op, path, .. } = &self.endpoints[*at];
            let path_key = path.keys.join("/");
            // Writes at an entity's home or collection are mapped first, so that they get the plain verbs.
            let is_at_home = self.entity_by_home.contains_key(&path_key)
                || self.entity_by_home.contains_key(&format!("{path_key}/{{}}"));
            // If both PATCH and PUT exist, PATCH becomes `update`, because it can change a part of a row.
            let rank = match op.verb {
                Verb::Patch => 0,
                Verb::Post => 2,
                _ => 1,
            };
            (!is_at_home, rank, *at)
        });
        for endpoint in writes {
            self.map_write(endpoint);
        }
    }

    fn map_write(&mut self, endpoint: usize) {
        let (entity, relation) =
            self.owner(endpoint).unwrap_or_else(|| (self.entity_of_answer(endpoint), PathRelation::Near));
        let (kind, verb) = self.kind_and_verb(endpoint, entity, relation);
        let mut placeholders = self.endpoints[endpoint].scope_names.clone();
        let leads_to_row = matches!(relation, PathRelation::Row | PathRelation::BelowRow);
        let on_row = leads_to_row && self.name_placeholders_after_key(entity, &mut placeholders);
        if kind != Kind::Action && leads_to_row && !on_row {
            // The path does not contain the whole key, so the write cannot be an update or delete of a row.
            let verb = self.action_verb(endpoint, entity);
            return self.add_write(PlannedCapability::new(endpoint, entity, Kind::Action, &verb, placeholders));
        }
        let mut plan = PlannedCapability::new(endpoint, entity, kind, &verb, placeholders);
        plan.on_row = on_row;
        self.add_write(plan);
    }

    fn add_write(&mut self, mut plan: PlannedCapability) {
        self.plan_answer(&mut plan);
        plan.verb = self.free_verb(plan.entity, &plan.verb, plan.endpoint);
        self.add_plan(plan);
    }

    fn kind_and_verb(&self, endpoint: usize, entity: usize, relation: PathRelation) -> (Kind, String) {
        let is_free = |verb: &str| !self.entities[entity].methods.contains(verb);
        let (kind, verb) = match (relation, self.endpoints[endpoint].op.verb) {
            (PathRelation::Row, Verb::Patch | Verb::Put) if is_free("update") => (Kind::Update, "update"),
            (PathRelation::Row, Verb::Put) if is_free("replace") => (Kind::Update, "replace"),
            (PathRelation::Row, Verb::Post) if is_free("update") && self.may_answer_with(endpoint, entity) => {
                (Kind::Update, "update")
            }
            (PathRelation::Row, Verb::Delete) if is_free("delete") => (Kind::Delete, "delete"),
            (PathRelation::Collection, Verb::Post) if is_free("create") && self.creates(endpoint, entity) => {
                (Kind::Create, "create")
            }
            // `conversations.create` is not at the collection's path, but its answer is the new row.
            (PathRelation::Near, Verb::Post) if is_free("create") && self.is_named_create(endpoint, entity) => {
                (Kind::Create, "create")
            }
            (PathRelation::Near, Verb::Post) => {
                let kind = self.kind_of_method_name(endpoint).unwrap_or(Kind::Action);
                return (kind, self.action_verb(endpoint, entity));
            }
            _ => return (Kind::Action, self.action_verb(endpoint, entity)),
        };
        (kind, verb.to_owned())
    }

    /// Renames the placeholders of the entity's home to the names of the key parts. Returns false if a key part has no
    /// placeholder.
    fn name_placeholders_after_key(&self, entity: usize, placeholders: &mut [String]) -> bool {
        let entity = &self.entities[entity];
        let count = entity.count_home_placeholders();
        if count != entity.key.len() || count == 0 || placeholders.len() < count {
            return false;
        }
        for (placeholder, part) in placeholders.iter_mut().zip(&entity.key) {
            part.name.clone_into(placeholder);
        }
        // A further placeholder with the name of a key part would also be filled from the key, so it is renamed.
        for placeholder in placeholders.iter_mut().skip(count) {
            if entity.key.iter().any(|part| part.name == *placeholder) {
                placeholder.push_str("_2");
            }
        }
        true
    }

    /// Returns the entity whose path is a prefix of the write's path, else the nearest entity.
    fn owner(&self, endpoint: usize) -> Option<(usize, PathRelation)> {
        let Endpoint { path, op, .. } = &self.endpoints[endpoint];
        let path_key = path.keys.join("/");
        if let Some(entity) = self.entity_by_home.get(&path_key) {
            return Some((*entity, PathRelation::Row));
        }
        if let Some(entity) = self.entity_by_home.get(&format!("{path_key}/{{}}")) {
            return Some((*entity, PathRelation::Collection));
        }
        if let Some(entity) = self.entity_by_list_path.get(&path_key)
            && op.verb == Verb::Post
            && self.creates(endpoint, *entity)
        {
            return Some((*entity, PathRelation::Collection));
        }
        for end in (1..path.keys.len()).rev() {
            let outer_key = path.keys[..end].join("/");
            if let Some(entity) = self.entity_by_home.get(&outer_key) {
                // An entity with a home without placeholders is a singleton. It has no key that could fill the request.
                let is_single =
                    self.entities[*entity].home.is_some() && self.entities[*entity].count_home_placeholders() == 0;
                let relation = if is_single { PathRelation::Near } else { PathRelation::BelowRow };
                return Some((*entity, relation));
            }
            let below = self
                .entity_by_list_path
                .get(&outer_key)
                .or_else(|| self.entity_by_home.get(&format!("{outer_key}/{{}}")));
            if let Some(entity) = below {
                return Some((*entity, PathRelation::Near));
            }
        }
        self.nearest_entity(endpoint).map(|entity| (entity, PathRelation::Near))
    }

    /// Returns the first entity with the same tag, else the entity whose home shares the longest path prefix.
    fn nearest_entity(&self, endpoint: usize) -> Option<usize> {
        let Endpoint { op, path, .. } = &self.endpoints[endpoint];
        let tag = op.tags.first().copied().unwrap_or_default();
        if let Some(entity) = self.entity_by_tag.get(tag) {
            return Some(*entity);
        }
        let shared_words = |entity: &MappedEntity<'a>| {
            let home = entity.home.as_deref().unwrap_or_default();
            let shared = home.iter().zip(&path.keys).take_while(|(a, b)| a == b && *a != "{}" && !is_root_word(a));
            shared.count()
        };
        let (nearest, entity) = self
            .entities
            .iter()
            .enumerate()
            .max_by_key(|(at, entity)| (shared_words(entity), std::cmp::Reverse(*at)))?;
        (shared_words(entity) > 0).then_some(nearest)
    }

    /// Adds an entity for a write without an owner: an entity of the answer's rows, else an entity for all writes of the tag.
    fn entity_of_answer(&mut self, endpoint: usize) -> usize {
        let Endpoint { op, answer, .. } = &self.endpoints[endpoint];
        if let AnswerShape::One { schema, .. } = &answer.shape {
            let row = *schema;
            let stem = self.stem(Some(row), endpoint);
            let part = self.sure_row_key(row, &stem, "").unwrap_or_else(KeyPart::answer_date);
            let name = self.name_entity(&stem, endpoint);
            let entity = self.add_entity(endpoint, name, None, vec![part]);
            self.add_row_schema(entity, row);
            return entity;
        }
        let tag_words = op.tags.first().map(|tag| names::words(tag));
        let stem = tag_words.filter(|words| !words.is_empty() && words.len() <= 3);
        let stem = stem.unwrap_or_else(|| self.stem(None, endpoint));
        let name = self.name_entity(&stem, endpoint);
        self.add_entity(endpoint, name, None, vec![KeyPart::answer_date()])
    }

    /// Returns whether the answer may be a row of the entity: its schema is a row schema of the entity or has no name.
    fn may_answer_with(&self, endpoint: usize, entity: usize) -> bool {
        match &self.endpoints[endpoint].answer.shape {
            AnswerShape::One { schema, .. } => {
                let schema_name = self.schema_name(schema);
                schema_name.is_empty() || self.entities[entity].schema_names.contains(&schema_name)
            }
            _ => true,
        }
    }

    fn is_named_create(&self, endpoint: usize, entity: usize) -> bool {
        let Endpoint { path, answer, .. } = &self.endpoints[endpoint];
        let AnswerShape::One { schema, .. } = &answer.shape else { return false };
        let first_word = names::words(path.last_word()).into_iter().next().unwrap_or_default();
        first_word == "create" && self.entities[entity].schema_names.contains(&self.schema_name(schema))
    }

    /// Returns the kind of a method such as `chat.postMessage`, judged by its name. APIs of this style use `POST` for all
    /// writes, so only the name shows the kind.
    fn kind_of_method_name(&self, endpoint: usize) -> Option<Kind> {
        let Endpoint { path, op, .. } = &self.endpoints[endpoint];
        let last_segment = op.path.rsplit('/').next()?;
        if !last_segment.contains('.') || last_segment.contains('{') {
            return None;
        }
        let words = names::words(path.last_word());
        match words.first()?.as_str() {
            "delete" if words.len() == 1 => Some(Kind::Delete),
            "update" | "edit" if words.len() == 1 => Some(Kind::Update),
            "create" | "open" | "insert" if words.len() == 1 => Some(Kind::Create),
            "post" | "send" => Some(Kind::Create),
            _ => None,
        }
    }

    /// Returns whether a `POST` to a collection creates a row, judged by the words of its operation id and by its answer.
    fn creates(&self, endpoint: usize, entity: usize) -> bool {
        let id = self.endpoints[endpoint].op.id;
        let words = names::words(id);
        let has_word = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
        let is_create = has_word(&["create", "add", "insert", "post", "new", "open"]);
        let is_other = has_word(&["delete", "remove", "search", "query", "batch", "bulk", "export"]);
        id.is_empty() || is_create || (!is_other && self.may_answer_with(endpoint, entity))
    }

    /// Sets the entity and the row path of the answer, or marks the answer as ignored.
    fn plan_answer(&mut self, plan: &mut PlannedCapability) {
        let shape = self.endpoints[plan.endpoint].answer.shape.clone();
        if let AnswerShape::One { path, schema } = shape
            && let Some(entity) = self.answered_entity(plan, schema)
        {
            let is_other = entity != plan.entity || matches!(plan.kind, Kind::Action | Kind::Delete);
            plan.returns = is_other.then_some(entity);
            plan.rows = non_empty(&path);
        } else {
            plan.ignores_answer = matches!(plan.kind, Kind::Create | Kind::Update);
        }
    }

    /// Returns the entity of the answer's row. If no known entity has such rows, a new entity is added.
    fn answered_entity(&mut self, plan: &PlannedCapability, row: &'a Value) -> Option<usize> {
        if plan.kind == Kind::Delete {
            return None;
        }
        let fits = |entity: usize| {
            let known = &self.entities[entity];
            let is_in_request =
                |part: &KeyPart| (plan.on_row && entity == plan.entity) || plan.placeholder_names.contains(&part.name);
            known.extra_fields.is_empty() && known.key.iter().all(|part| is_in_request(part) || self.row_has(row, part))
        };
        let schema_name = self.schema_name(row);
        let own = &self.entities[plan.entity];
        let has_own_rows =
            own.schema_names.contains(&schema_name) || own.row_schemas.iter().any(|known| std::ptr::eq(*known, row));
        if has_own_rows && fits(plan.entity) {
            return Some(plan.entity);
        }
        let mut with_rows = self.entities_by_schema_name.get(&schema_name).into_iter().flatten().copied();
        if let Some(entity) = with_rows.find(|entity| fits(*entity)) {
            return Some(entity);
        }
        if schema_name.is_empty()
            && matches!(plan.kind, Kind::Create | Kind::Update)
            && fits(plan.entity)
            && self.shares_most_properties(plan.entity, row)
        {
            self.add_row_schema(plan.entity, row);
            return Some(plan.entity);
        }
        self.add_result_entity(plan, row)
    }

    /// Returns whether the entity's rows have at least half of the properties of this row.
    pub(super) fn shares_most_properties(&self, entity: usize, row: &'a Value) -> bool {
        let Some(known) = self.entities[entity].row_schemas.first() else { return false };
        let known = self.reader.object(known);
        let new = self.reader.object(row);
        let shared = new.props.keys().filter(|name| known.props.contains_key(*name)).count();
        shared * 2 >= new.props.len().max(1)
    }

    /// Adds an entity for the answer of a write. Returns `None` if the answer only has status properties such as `ok`.
    fn add_result_entity(&mut self, plan: &PlannedCapability, row: &'a Value) -> Option<usize> {
        let status_words =
            ["ok", "success", "message", "status", "error", "code", "errors", "result", "detail", "msg", "warnings"];
        let object = self.reader.object(row);
        if object.props.keys().all(|name| status_words.contains(&names::snake_case(name).as_str())) {
            return None;
        }
        let schema_name = self.schema_name(row);
        let stem: Vec<String> = if schema_name.is_empty() {
            let entity_words = names::words(&self.entities[plan.entity].name);
            let words = entity_words.into_iter().chain(names::words(&plan.verb)).chain(["result".to_owned()]);
            words.take(5).collect()
        } else {
            names::words(&schema_name)
        };
        let name = self.name_entity(&stem, plan.endpoint);
        let entity = self.add_entity(plan.endpoint, name, None, vec![KeyPart::answer_date()]);
        self.add_row_schema(entity, row);
        Some(entity)
    }
}
