//! The choice of entity keys: the row property that a path placeholder identifies, or a guessed id for rows without a path.
//! Invariant: each returned property exists in the row's schema. A key part without a property is taken from the request.

use catalog::raw::{Declaration, FieldPath, SlotType};
use serde_json::Value;

use super::Mapper;
use super::properties::{RowProperty, path_in_row, row_properties};
use crate::api::path::placeholder_words;
use crate::draft::{is_json, named_type};
use crate::spec::Scalar;

/// Names of properties that identify a row, the most reliable first.
const ID_NAMES: [&str; 22] = [
    "id", "uuid", "guid", "uid", "sid", "key", "_id", "slug", "code", "number", "login", "username", "name", "sha",
    "email", "hash", "token", "arn", "symbol", "iso", "path", "filename",
];

/// One part of an entity's key.
#[derive(Debug, Clone)]
pub struct KeyPart {
    pub name: String,
    /// The declaration of the field with the part's value.
    pub field: Declaration,
}

impl KeyPart {
    /// Returns a key part whose value is taken from the request, because no row property has it.
    pub fn from_request(name: String, kind: SlotType) -> Self {
        let field = Declaration { path: Some(from_request()), ..Declaration::new(kind) };
        Self { name, field }
    }

    /// Returns the key part for singletons whose row has no id. An entity needs a key, so the part is the time of the answer,
    /// from the header `date`.
    pub fn answer_date() -> Self {
        let field = Declaration { header: Some("date".to_owned()), ..Declaration::new(named_type("string")) };
        Self { name: "served".to_owned(), field }
    }

    pub fn is_from_request(&self) -> bool {
        self.field.path == Some(from_request())
    }

    pub fn path_in_row(&self) -> Option<&str> {
        path_in_row(&self.name, &self.field)
    }
}

/// Returns the catalog's path form for a value from the request: an empty list of paths.
fn from_request() -> FieldPath {
    FieldPath::Several(Vec::new())
}

/// A property that probably identifies a row.
pub struct GuessedKey<'a> {
    pub property: RowProperty<'a>,
    /// Whether the property has the name of an id. Otherwise the report asks a person to check the key.
    pub is_sure: bool,
}

/// Returns whether a key name such as `id` does not name the entity that it identifies.
pub fn is_generic(word: &str) -> bool {
    matches!(
        word,
        "id" | "ids" | "name" | "key" | "uuid" | "slug" | "sid" | "code" | "guid" | "number" | "uid" | "pk" | "value"
    )
}

impl<'a> Mapper<'_, 'a> {
    /// Returns the row property with the value of the path's last placeholder. `stem` has the words of the entity's name.
    pub(super) fn key_property(
        &self,
        row: &'a Value,
        placeholder: &str,
        placeholder_schema: &'a Value,
        stem: &[String],
    ) -> Option<RowProperty<'a>> {
        let properties = row_properties(self.reader, row);
        let wanted = self.reader.scalar(placeholder_schema).filter(|_| !self.reader.is_any(placeholder_schema));
        let has_same_kind = |property: &RowProperty<'a>| match (wanted, self.reader.scalar(property.schema)) {
            (_, None | Some(Scalar::Boolean)) => false,
            (None, Some(_)) => true,
            (Some(a), Some(b)) => a == b || (a != Scalar::Text && b != Scalar::Text),
        };
        let is_usable =
            |property: &RowProperty<'a>| self.reader.scalar(property.schema).is_some_and(|s| s != Scalar::Boolean);
        let by_name = |name: &str| properties.iter().find(|p| p.snake_name == name);
        let of_usable_kind = |name: &str| by_name(name).filter(|p| is_usable(p)).cloned();
        let of_same_kind = |name: &str| by_name(name).filter(|p| has_same_kind(p)).cloned();

        let words = placeholder_words(placeholder);
        let placeholder_name = words.join("_");
        if let Some(property) = of_usable_kind(&placeholder_name) {
            return Some(property);
        }
        // A placeholder `issue_number` corresponds to the property `number` of an issue.
        let mut suffixes = (1..words.len()).map(|from| words[from..].join("_"));
        if let Some(property) = suffixes.find_map(|suffix| of_usable_kind(&suffix)) {
            return Some(property);
        }
        if matches!(placeholder_name.as_str(), "username" | "user_name" | "login") {
            return ["login", "username", "user_name", "name"].iter().find_map(|name| of_same_kind(name));
        }
        let last_word = words.last().map(String::as_str).unwrap_or_default();
        let names_entity = words == stem
            || stem
                .last()
                .is_some_and(|word| word.starts_with(&placeholder_name) || placeholder_name.starts_with(word.as_str()));
        let names_id =
            matches!(last_word, "id" | "sid" | "uuid" | "guid" | "uid" | "key") || is_generic(&placeholder_name);
        if !names_id && !names_entity {
            return None;
        }
        let entity_id = stem.last().map(|word| format!("{word}_id"));
        let ids = ["id", "uuid", "guid", "uid", "sid", "key", "login", "slug", "name", "number", "code"];
        let mut candidates = entity_id.iter().map(String::as_str).chain(ids);
        candidates
            .find_map(of_same_kind)
            // A placeholder of type text often takes a numeric id. A placeholder with the entity's name may take a name
            // instead, so it is excluded.
            .or_else(|| of_usable_kind("id").filter(|_| !names_entity))
    }

    /// Returns the row property that identifies the row's parent: `project_id`, `project.id` or `owner.login` for a placeholder
    /// of that name.
    pub(super) fn scope_property(
        &self,
        row: &'a Value,
        placeholder: &str,
        placeholder_schema: &'a Value,
    ) -> Option<RowProperty<'a>> {
        let properties = row_properties(self.reader, row);
        let wanted = self.reader.scalar(placeholder_schema).unwrap_or(Scalar::Text);
        let has_kind = |schema: &'a Value| self.reader.scalar(schema) == Some(wanted);
        if let Some(property) = properties.iter().find(|p| p.snake_name == placeholder && has_kind(p.schema)) {
            return Some(property.clone());
        }
        let endings = ["_id", "_key", "_uuid", "_sid", "_slug", "_name", "_number"];
        let owner = endings.iter().find_map(|end| placeholder.strip_suffix(end)).unwrap_or(placeholder);
        let outer = properties.iter().find(|p| p.snake_name == owner && self.reader.is_object(p.schema))?;
        let object = self.reader.object(outer.schema);
        let ending =
            placeholder.strip_prefix(owner).map(|end| end.trim_start_matches('_')).filter(|end| !end.is_empty());
        let ids = ["login", "id", "slug", "key", "name", "username", "number"];
        let (name, prop) = ending.into_iter().chain(ids).find_map(|name| {
            let (name, prop) = object.props.get_key_value(name)?;
            has_kind(prop.schema).then_some((*name, prop))
        })?;
        Some(RowProperty {
            path: format!("{}.{name}", outer.path),
            snake_name: placeholder.to_owned(),
            required: false,
            schema: prop.schema,
        })
    }

    /// Returns the key property inside an embedded parent row, such as `repository.owner.login`. `home` has the keys of the
    /// row's path, and `placeholder` is the index of the placeholder that identifies the parent.
    pub(super) fn embedded_scope_property(
        &self,
        row: &'a Value,
        home: &[String],
        placeholder: usize,
        name: &str,
    ) -> Option<RowProperty<'a>> {
        let parent = (1..home.len()).rev().find_map(|end| self.entity_by_home.get(&home[..end].join("/")))?;
        let parent = &self.entities[*parent];
        let placeholders = parent.count_home_placeholders();
        if placeholder >= placeholders || placeholders != parent.key.len() {
            return None;
        }
        let part = parent.key.get(placeholder)?;
        let path = part.path_in_row()?;
        let holder = row_properties(self.reader, row).into_iter().find(|property| {
            let schema_name = self.schema_name(property.schema);
            !schema_name.is_empty()
                && parent.schema_names.contains(&schema_name)
                && self.reader.is_object(property.schema)
        })?;
        self.row_has(holder.schema, part).then(|| RowProperty {
            path: format!("{}.{path}", holder.path),
            snake_name: name.to_owned(),
            required: false,
            schema: holder.schema,
        })
    }

    /// Returns the property that probably identifies a row without a path: an id, else a property that ends like an id, else a
    /// required one.
    pub(super) fn guess_key(&self, row: &'a Value, stem: &[String]) -> Option<GuessedKey<'a>> {
        let mut properties = row_properties(self.reader, row);
        properties.retain(|property| {
            matches!(self.reader.scalar(property.schema), Some(Scalar::Text | Scalar::Integer | Scalar::Number))
        });
        let noun = stem.last().cloned().unwrap_or_default();
        let own_ids = ["id", "key", "uuid", "name", "code", "sid", "number"].map(|end| format!("{noun}_{end}"));
        let ids = ["id".to_owned()].into_iter().chain(own_ids).chain(ID_NAMES.iter().map(|id| (*id).to_owned()));
        for id in ids {
            if let Some(property) = properties.iter().find(|property| property.snake_name == id) {
                return Some(GuessedKey { property: property.clone(), is_sure: true });
            }
        }
        let ends_like_id =
            |property: &&RowProperty<'a>| ["_id", "_key", "_code"].iter().any(|end| property.snake_name.ends_with(end));
        let nearest = properties
            .iter()
            .find(ends_like_id)
            .or_else(|| properties.iter().find(|property| property.required))
            .or_else(|| properties.first());
        nearest.map(|property| GuessedKey { property: property.clone(), is_sure: false })
    }

    /// Returns the type of a key part: a named scalar type or a select. Any other type becomes `string`.
    pub(super) fn key_kind(&self, schema: &'a Value) -> SlotType {
        match self.types.flat_type(schema) {
            Some(kind @ SlotType::Named(_)) if !is_json(&kind) && kind != named_type("boolean") => kind,
            Some(kind @ SlotType::Select(_)) => kind,
            _ => named_type("string"),
        }
    }

    /// Returns whether rows of this schema contain a key part. A part from an answer header is available for every row.
    pub(super) fn row_has(&self, row: &'a Value, part: &KeyPart) -> bool {
        part.field.header.is_some() || part.path_in_row().is_some_and(|path| self.row_has_path(row, path))
    }

    pub(super) fn row_has_path(&self, row: &'a Value, path: &str) -> bool {
        let mut schema = row;
        for name in path.split('.') {
            if !self.reader.is_object(schema) {
                return false;
            }
            match self.reader.object(schema).props.get(name) {
                Some(prop) => schema = prop.schema,
                None => return false,
            }
        }
        true
    }
}
