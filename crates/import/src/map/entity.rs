//! The creation of entities: names, row schemas, and the check whether a row belongs to a known entity.
//! Invariant: entity names are unique. A row belongs to an entity only if the row or the request contains the whole key.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::keys::{GuessedKey, KeyPart};
use super::{Endpoint, MappedEntity, Mapper};
use crate::api::path::is_root_word;
use crate::names;
use crate::spec::{ParamLocation, RequestBody};

/// The maximum length of an entity's description in characters.
const MAX_DESCRIPTION_CHARS: usize = 56;

/// Words before the noun of a schema name that describe the schema and not the entity: `FullTicket` is a ticket.
const NOISE_PREFIXES: [&str; 22] = [
    "full", "minimal", "simple", "base", "basic", "nullable", "detailed", "short", "get", "list", "retrieve", "inline",
    "api", "the", "read", "compact", "public", "private", "objs", "obj", "defs", "def",
];
/// Words after the noun of a schema name that describe the schema and not the entity: `TicketResponse` is a ticket.
const NOISE_SUFFIXES: [&str; 33] = [
    "response",
    "dto",
    "model",
    "resource",
    "object",
    "out",
    "output",
    "details",
    "detail",
    "summary",
    "result",
    "results",
    "schema",
    "entity",
    "full",
    "read",
    "bean",
    "json",
    "representation",
    "base",
    "v1",
    "v2",
    "v3",
    "ok",
    "200",
    "201",
    "payload",
    "body",
    "compact",
    "vo",
    "simple",
    "short",
    "minimal",
];
/// Words that do not name an entity. A schema name of only such words is ignored.
const GENERAL_WORDS: [&str; 24] = [
    "response",
    "result",
    "object",
    "data",
    "item",
    "list",
    "collection",
    "body",
    "payload",
    "inline",
    "model",
    "entity",
    "schema",
    "success",
    "ok",
    "value",
    "resource",
    "any",
    "default",
    "root",
    "type",
    "base",
    "api",
    "page",
];

/// Returns the words of a schema name without noise words. The list is empty if the name does not name an entity.
fn clean_words(schema_name: &str) -> Vec<String> {
    let has_letter = |part: &&str| part.chars().any(|c| c.is_ascii_alphabetic());
    let local_name = schema_name.rsplit(['.', '~']).find(has_letter).unwrap_or(schema_name);
    let mut words = names::words(local_name);
    while words.len() > 1 && NOISE_PREFIXES.contains(&words[0].as_str()) {
        words.remove(0);
    }
    while words.len() > 1 && words.last().is_some_and(|last| NOISE_SUFFIXES.contains(&last.as_str())) {
        words.pop();
    }
    if let Some(last) = words.last_mut() {
        *last = names::singular(last);
    }
    let is_number = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
    if words.len() > 5 || words.iter().all(|word| GENERAL_WORDS.contains(&word.as_str()) || is_number(word)) {
        words.clear();
    }
    words
}

/// Returns the description, or an empty text if the description only repeats the entity's name.
fn informative(description: &str, name: &str) -> String {
    let name_words = names::words(name);
    let is_known = |word: &String| {
        name_words.contains(word)
            || name_words.contains(&names::singular(word))
            || NOISE_PREFIXES.contains(&word.as_str())
            || NOISE_SUFFIXES.contains(&word.as_str())
            || matches!(word.as_str(), "a" | "an" | "the" | "of" | "this")
    };
    if names::words(description).iter().all(is_known) { String::new() } else { description.to_owned() }
}

impl<'a> Mapper<'_, 'a> {
    /// Returns the name of a row's schema without noise words, in snake case. It is empty for an unnamed schema.
    pub(super) fn schema_name(&self, row: &'a Value) -> String {
        let words = self.reader.schema_name(row).map(clean_words).unwrap_or_default();
        words.join("_")
    }

    /// Returns the stem of an entity's name: the words of its schema name, or else words of its path.
    pub(super) fn stem(&self, row: Option<&'a Value>, endpoint: usize) -> Vec<String> {
        let schema_words = row.and_then(|row| self.reader.schema_name(row)).map(clean_words).unwrap_or_default();
        if !schema_words.is_empty() && schema_words.len() <= 4 {
            return schema_words;
        }
        let Endpoint { op, path, .. } = &self.endpoints[endpoint];
        let mut words = names::words(path.last_word());
        // In a method path such as `users.list`, the entity is named by the word before the verb.
        let is_verb = matches!(
            words.as_slice(),
            [only] if matches!(only.as_str(), "list" | "info" | "get" | "show" | "all" | "search" | "find" | "lookup")
        );
        if let Some(word_before) = path.words().rev().nth(1).filter(|_| is_verb) {
            words = names::words(word_before);
        }
        // A singular word such as `usage` is too general for a name, so the path word before it is added.
        if words.last().is_some_and(|last| !names::is_plural(last)) {
            let outer_word = path.words().rev().filter(|word| !is_root_word(word)).nth(1).unwrap_or_default();
            let mut outer: Vec<String> = names::words(outer_word).iter().map(|word| names::singular(word)).collect();
            outer.retain(|word| !words.contains(word));
            words = outer.into_iter().chain(words).collect();
        }
        if let Some(last) = words.last_mut() {
            *last = names::singular(last);
        }
        if words.is_empty() {
            words = names::words(op.id);
        }
        if words.is_empty() { vec!["item".to_owned()] } else { words }
    }

    /// Reserves an unused entity name: the stem, then the stem with path words in front, then the stem with a number.
    pub(super) fn name_entity(&mut self, stem: &[String], endpoint: usize) -> String {
        let mut words: Vec<String> = stem.to_vec();
        let path = &self.endpoints[endpoint].path;
        for outer in path.words().rev().filter(|word| !is_root_word(word)) {
            if !self.entity_names.contains(&names::pascal_case(&words).to_ascii_lowercase()) {
                break;
            }
            let singular: Vec<String> = names::words(outer).iter().map(|word| names::singular(word)).collect();
            let outer = names::words(&singular.join("_"));
            let is_said = outer.iter().all(|word| words.iter().any(|own| own.starts_with(word.as_str())));
            if !is_said {
                words = outer.into_iter().chain(words).collect();
            }
        }
        let name = names::pascal_case(&words);
        let mut free_name = name.clone();
        let mut n = 2;
        while !self.entity_names.insert(free_name.to_ascii_lowercase()) {
            free_name = format!("{name}{n}");
            n += 1;
        }
        free_name
    }

    pub(super) fn add_entity(
        &mut self,
        endpoint: usize,
        name: String,
        home: Option<Vec<String>>,
        key: Vec<KeyPart>,
    ) -> usize {
        let at = self.entities.len();
        let op = self.endpoints[endpoint].op;
        self.first_entity_by_name.entry(names::snake_case(&name)).or_insert(at);
        if let Some(tag) = op.tags.first().filter(|tag| !tag.is_empty()) {
            self.entity_by_tag.entry((*tag).to_owned()).or_insert(at);
        }
        if let Some(home) = &home {
            self.entity_by_home.entry(home.join("/")).or_insert(at);
        }
        self.entities.push(MappedEntity {
            name,
            about: String::new(),
            home,
            key,
            row_schemas: Vec::new(),
            schema_names: HashSet::new(),
            query_required_inputs: Vec::new(),
            search_required_inputs: Vec::new(),
            extra_fields: Vec::new(),
            methods: HashSet::new(),
            comment: None,
        });
        at
    }

    /// Adds a row schema to an entity, and indexes the entity by the schema's names.
    pub(super) fn add_row_schema(&mut self, entity: usize, row: &'a Value) {
        let opened = self.reader.open(row);
        let arms = self.reader.alternatives(opened);
        let schema_names: Vec<String> = [row].into_iter().chain(arms).map(|schema| self.schema_name(schema)).collect();
        let known = &mut self.entities[entity];
        if known.row_schemas.iter().any(|other| std::ptr::eq(*other, row)) {
            return;
        }
        known.row_schemas.push(row);
        if known.about.is_empty() {
            let parts = opened.get("allOf").and_then(Value::as_array).into_iter().flatten();
            let own_parts = parts.filter(|part| part.get("$ref").is_none());
            let description = [opened].into_iter().chain(own_parts).find_map(|part| part.get("description")?.as_str());
            let sentence = names::first_sentence(description.unwrap_or_default(), MAX_DESCRIPTION_CHARS);
            known.about = informative(&sentence, &known.name);
        }
        for schema_name in schema_names {
            if !schema_name.is_empty() && known.schema_names.insert(schema_name.clone()) {
                self.entities_by_schema_name.entry(schema_name).or_default().push(entity);
            }
        }
    }

    /// Returns whether the rows of an operation, or its request, contain each key part of the entity. In a list, a single-part
    /// key must be in the row, because the request is the same for all rows.
    pub(super) fn fits(&self, entity: usize, endpoint: usize, row: &'a Value, is_list: bool) -> bool {
        let Endpoint { scope_names, op, .. } = &self.endpoints[endpoint];
        let key = &self.entities[entity].key;
        let is_in_query = |part: &KeyPart| {
            op.params.iter().any(|p| p.location == ParamLocation::Query && p.required && p.name == part.name)
        };
        let is_in_request = |part: &KeyPart| {
            let is_only_part = is_list && key.len() == 1;
            !is_only_part && (scope_names.contains(&part.name) || is_in_query(part))
        };
        key.iter().all(|part| is_in_request(part) || self.row_has(row, part))
    }

    /// Returns a key of one row property, for rows without a path of their own. `label` is the entity's name in the report.
    pub(super) fn row_key(&mut self, row: &'a Value, stem: &[String], label: &str) -> Option<KeyPart> {
        let GuessedKey { property, is_sure } = self.guess_key(row, stem)?;
        let name = names::field_name(property.own_name());
        if !is_sure {
            self.report_guess(label, format!("`{name}` is taken for what identifies it"));
        }
        let kind = self.key_kind(property.schema);
        Some(KeyPart { field: property.field(&name, kind), name })
    }

    /// Returns a key of one row property, only if the property has an id's name and is required.
    pub(super) fn sure_row_key(&mut self, row: &'a Value, stem: &[String], label: &str) -> Option<KeyPart> {
        self.guess_key(row, stem).filter(|guessed| guessed.is_sure && guessed.property.required)?;
        self.row_key(row, stem, label)
    }

    /// Returns the names of all required inputs of an operation: path placeholders, parameters and body properties.
    pub(super) fn required_inputs(&self, endpoint: usize) -> BTreeSet<String> {
        let Endpoint { op, scope_names, .. } = &self.endpoints[endpoint];
        let mut out: BTreeSet<String> = scope_names.iter().cloned().collect();
        let is_sent = |location: ParamLocation| matches!(location, ParamLocation::Query | ParamLocation::Header);
        out.extend(op.params.iter().filter(|p| p.required && is_sent(p.location)).map(|p| names::field_name(p.name)));
        match &op.body {
            RequestBody::Content { schema, .. } if self.reader.is_object(schema) => {
                let object = self.reader.object(schema);
                out.extend(
                    object.props.iter().filter(|(_, prop)| prop.required).map(|(name, _)| names::field_name(name)),
                );
            }
            RequestBody::Form { fields, .. } => {
                out.extend(fields.iter().filter(|field| field.required).map(|field| names::field_name(field.name)));
            }
            _ => {}
        }
        out
    }
}
