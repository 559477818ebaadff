//! The fields of an entity: the key, then the properties of its rows, with references to other entities.
//! Invariant: field names are unique within an entity. A field refers to another entity only if the row contains that entity's
//! key.

use std::collections::HashSet;

use catalog::Show;
use catalog::raw::{Declaration, FieldPath, SlotType};
use indexmap::IndexMap;
use serde_json::Value;

use super::keys::KeyPart;
use super::properties::{RowProperty, path_in_row, row_properties};
use super::{MappedEntity, Mapper};
use crate::api::types;
use crate::draft::named_type;
use crate::names;
use crate::spec::Scalar;

/// The maximum number of fields beside the key. Each further field would cost tokens in every taught table.
const MAX_FIELDS_PER_ENTITY: usize = 24;

/// The number of fields beside the key that a taught table shows. The table omits further fields (docs/teaching.md).
const FIELDS_SHOWN_IN_TABLE: usize = 14;

/// The number of properties up to which URL properties are kept unless they clearly point to this API.
const MAX_PROPERTIES_WITH_LINKS: usize = 12;

/// A list that a row property contains.
struct InnerList<'a> {
    item: &'a Value,
    path: String,
    /// Whether the list is inside an envelope object: `subscriptions.data`.
    is_enveloped: bool,
}

impl<'a> Mapper<'_, 'a> {
    pub(super) fn fields(&self, entity: usize) -> IndexMap<String, Declaration> {
        let entity = &self.entities[entity];
        let mut taken: HashSet<String> = HashSet::new();
        let mut out: IndexMap<String, Declaration> = IndexMap::new();
        for part in &entity.key {
            taken.insert(part.name.clone());
            out.insert(part.name.clone(), part.field.clone());
        }
        for property in self.field_properties(entity) {
            let name = names::field_name(property.own_name());
            // A key part that is taken from the request may have this name. The row's property would have the same value.
            if entity.key.iter().any(|part| part.name == name) {
                continue;
            }
            let name = names::reserve_unique(&mut taken, name);
            let mut field = self.field(entity, &property);
            if field.path == Some(FieldPath::One(name.clone())) {
                field.path = None;
            }
            out.insert(name, field);
        }
        for (name, field) in &entity.extra_fields {
            out.insert(names::reserve_unique(&mut taken, name.clone()), field.clone());
        }
        out
    }

    /// Returns the properties of the entity's rows that become fields beside the key.
    fn field_properties(&self, entity: &MappedEntity<'a>) -> Vec<RowProperty<'a>> {
        let key_paths: HashSet<&str> = entity.key.iter().filter_map(KeyPart::path_in_row).collect();
        let mut out: Vec<RowProperty<'a>> = Vec::new();
        for row in &entity.row_schemas {
            for property in row_properties(self.reader, row) {
                let path = property.path.as_str();
                let is_known = key_paths.contains(path) || out.iter().any(|other| other.path == path);
                if !is_known && self.is_readable_property(&property) {
                    out.push(property);
                }
            }
        }
        self.remove_links(&mut out);
        keep_most_informative(&mut out);
        out
    }

    /// Removes URL properties that point to other requests, because the catalog builds requests itself. A row with few
    /// properties keeps a URL unless its example is a URL of this API or a page URL exists beside it.
    fn remove_links(&self, properties: &mut Vec<RowProperty<'a>>) {
        let are_many = properties.len() > MAX_PROPERTIES_WITH_LINKS;
        let has_page = properties.iter().any(|p| matches!(p.snake_name.as_str(), "html_url" | "web_url"));
        let is_link = |property: &RowProperty<'a>| match property.snake_name.as_str() {
            "node_id" | "gravatar_id" => true,
            "url" => has_page || self.has_example_of_this_api(property),
            name => is_link_name(name) && (are_many || self.has_example_of_this_api(property)),
        };
        // An entity whose properties are all links keeps them; otherwise it would have no fields.
        if !properties.iter().all(is_link) {
            properties.retain(|property| !is_link(property));
        }
    }

    /// Returns whether the example of a URL property is a URL of this API.
    fn has_example_of_this_api(&self, property: &RowProperty<'a>) -> bool {
        let opened = self.reader.open(property.schema);
        let first_example = opened.get("examples").and_then(|examples| examples.get(0));
        let example = opened.get("example").or(first_example).and_then(Value::as_str);
        example.and_then(|text| text.strip_prefix(&self.origin)).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns whether a property is useful as a field: not write-only, deprecated, constant or hypertext.
    fn is_readable_property(&self, property: &RowProperty<'a>) -> bool {
        let opened = self.reader.open(property.schema);
        let is_hypertext =
            matches!(property.snake_name.as_str(), "links" | "self" | "embedded" | "relationships" | "managed_fields");
        let is_constant = opened.get("enum").and_then(Value::as_array).is_some_and(|choices| choices.len() == 1);
        !is_hypertext && !is_constant && !types::is_write_only(opened) && !types::is_deprecated(opened)
    }

    fn field(&self, entity: &MappedEntity<'a>, property: &RowProperty<'a>) -> Declaration {
        if let Some(reference) = self.reference(entity, property) {
            return reference;
        }
        let mut field = self.types.field_declaration(property.schema);
        let is_long_text = field.kind == named_type("html")
            || matches!(property.snake_name.as_str(), "body" | "content" | "html" | "markdown");
        if is_long_text && matches!(field.kind, SlotType::Named(_)) {
            field.show = Some(Show::Artifact);
        }
        field.path = Some(FieldPath::One(property.path.clone()));
        field
    }

    /// Returns a reference field for a property that identifies another entity, with the path of the entity's key in the row.
    fn reference(&self, entity: &MappedEntity<'a>, property: &RowProperty<'a>) -> Option<Declaration> {
        let at =
            |kind: SlotType, path: String| Declaration { path: Some(FieldPath::One(path)), ..Declaration::new(kind) };
        if let Some(list) = self.inner_list(property) {
            let target = self.embedded_entity(list.item);
            return match target.map(|target| (target, target.key.as_slice())) {
                Some((target, [part])) => {
                    let kind = SlotType::Array(Box::new(SlotType::Ref(target.name.clone())));
                    Some(at(kind, format!("{}[].{}", list.path, part.path_in_row()?)))
                }
                // Only the list is useful in an envelope inside a row, so the field points at the list.
                _ => list.is_enveloped.then(|| at(named_type("json"), list.path)),
            };
        }
        if let Some(target) = self.expandable_entity(property.schema) {
            return Some(at(SlotType::Ref(target), property.path.clone()));
        }
        if !self.reader.is_object(property.schema) {
            let target = self.entity_named_by(entity, property)?;
            return Some(at(SlotType::Ref(target), property.path.clone()));
        }
        let target = self.embedded_entity(property.schema)?;
        let kind = SlotType::Ref(target.name.clone());
        if let [part] = target.key.as_slice() {
            return Some(at(kind, format!("{}.{}", property.path, part.path_in_row()?)));
        }
        let mut paths = IndexMap::new();
        for part in &target.key {
            paths.insert(part.name.clone(), format!("{}.{}", property.path, part.path_in_row()?));
        }
        Some(Declaration { path: Some(FieldPath::Parts(paths)), ..Declaration::new(kind) })
    }

    /// Returns the list in a property; `None` if the property is neither a list nor an envelope with a list.
    fn inner_list(&self, property: &RowProperty<'a>) -> Option<InnerList<'a>> {
        if let Some(item) = self.reader.items(property.schema) {
            return Some(InnerList { item, path: property.path.clone(), is_enveloped: false });
        }
        if !self.reader.is_object(property.schema) {
            return None;
        }
        let object = self.reader.object(property.schema);
        if !object.props.contains_key("has_more") && !object.props.contains_key("total_count") {
            return None;
        }
        let name = ["data", "items", "results"].into_iter().find(|name| object.props.contains_key(name))?;
        let item = self.reader.items(object.props.get(name)?.schema)?;
        Some(InnerList { item, path: format!("{}.{name}", property.path), is_enveloped: true })
    }

    /// Returns the entity whose row the schema embeds, if the embedded row has the whole key and a get reads the entity.
    fn embedded_entity(&self, schema: &'a Value) -> Option<&MappedEntity<'a>> {
        let known = self.entities_by_schema_name.get(&self.schema_name(schema))?;
        let holds = |part: &KeyPart| part.path_in_row().is_some_and(|path| self.row_has_path(schema, path));
        let is_whole = |entity: &&MappedEntity<'a>| !entity.key.is_empty() && entity.key.iter().all(holds);
        known.iter().map(|at| &self.entities[*at]).find(|entity| self.is_readable(entity) && is_whole(entity))
    }

    /// Returns the entity of an expandable id, `anyOf: [string, Customer]`. The API sends the id, or the whole row on request.
    fn expandable_entity(&self, schema: &'a Value) -> Option<String> {
        let arms = self.reader.alternatives(self.reader.spec.follow(schema));
        if arms.len() < 2 || !arms.iter().any(|arm| self.reader.scalar(arm) == Some(Scalar::Text)) {
            return None;
        }
        let object = arms.iter().find(|arm| self.reader.is_object(arm))?;
        let known = self.entities_by_schema_name.get(&self.schema_name(object))?;
        let mut entities = known.iter().map(|at| &self.entities[*at]);
        entities.find(|entity| entity.key.len() == 1 && self.is_readable(entity)).map(|entity| entity.name.clone())
    }

    /// Returns the entity that a property such as `project_id` names, if the entity's key has one part of the same type.
    fn entity_named_by(&self, of: &MappedEntity<'a>, property: &RowProperty<'a>) -> Option<String> {
        let endings = ["_id", "_uuid", "_sid", "_key", "_slug"];
        let name = endings.iter().find_map(|end| property.snake_name.strip_suffix(end))?;
        let scalar = self.reader.scalar(property.schema)?;
        let target = &self.entities[*self.entity_by_name.get(name)?];
        let [part] = target.key.as_slice() else { return None };
        let key_is_number = part.field.kind == named_type("integer") || part.field.kind == named_type("number");
        let is_number = matches!(scalar, Scalar::Integer | Scalar::Number);
        let is_other = target.name != of.name;
        (is_other && key_is_number == is_number && self.is_readable(target)).then(|| target.name.clone())
    }

    /// Returns the names of the fields that a list's rows contain. Returns `None` if the rows contain nearly all fields or no
    /// get can read the others.
    pub(super) fn fields_of_list(
        &self,
        entity: usize,
        item: &'a Value,
        fields: &IndexMap<String, Declaration>,
    ) -> Option<Vec<String>> {
        let entity = &self.entities[entity];
        let object = self.reader.object(item);
        let is_given = |name: &String, field: &Declaration| {
            let path = match &field.path {
                Some(FieldPath::Parts(parts)) => parts.values().next().map(String::as_str),
                _ => path_in_row(name, field),
            };
            // A field without a row path is taken from the request or a header, so every row has it.
            path.is_none_or(|path| object.props.contains_key(first_name(path)))
                || entity.key.iter().any(|part| part.name == *name)
        };
        let given: Vec<String> =
            fields.iter().filter(|(name, field)| is_given(name, field)).map(|(name, _)| name.clone()).collect();
        (self.is_readable(entity) && given.len() + 1 < fields.len()).then_some(given)
    }
}

/// Returns the first property name of a dotted path.
fn first_name(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or_default()
}

/// Returns whether a property of this name is a link for API clients (a URL of another request, an etag) and not for people.
fn is_link_name(snake_name: &str) -> bool {
    let for_people =
        ["html_url", "download_url", "web_url", "clone_url", "image_url", "file_url", "public_url", "short_url"];
    let is_address = ["_url", "_uri", "_href", "_link"].iter().any(|end| snake_name.ends_with(end));
    (is_address && !for_people.contains(&snake_name))
        || matches!(snake_name, "node_id" | "gravatar_id" | "etag" | "self_link" | "odata_type")
}

/// Sorts and shortens a long list of properties: informative ones first, then required ones, links last. A short list keeps the
/// order of the schema. The taught table shows only the first fields, so the order matters.
fn keep_most_informative(properties: &mut Vec<RowProperty<'_>>) {
    if properties.len() <= FIELDS_SHOWN_IN_TABLE {
        return;
    }
    properties.sort_by_key(|property| {
        if is_link_name(&property.snake_name) {
            3
        } else if names::is_informative(&property.snake_name) {
            0
        } else if property.required {
            1
        } else {
            2
        }
    });
    properties.truncate(MAX_FIELDS_PER_ENTITY);
}
