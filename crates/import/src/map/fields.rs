//! The fields of an entity: its key, then the properties of its rows, with references to other entities.
//! Invariant: no two fields have one name. A reference is to an entity whose key the row holds.

use std::collections::HashSet;

use catalog::Show;
use catalog::raw::{Declaration, FieldPath, SlotType};
use indexmap::IndexMap;
use serde_json::Value;

use super::keys::KeyPart;
use super::properties::{RowProperty, path_in_row, row_properties};
use super::{MappedEntity, Mapper};
use crate::api::types;
use crate::draft::named;
use crate::names;
use crate::spec::Scalar;

/// The number of fields beside the key. More cost more tokens to teach than they help.
const MAX_FIELDS: usize = 24;

/// The number of fields beside the key that a table names without leaving any out (docs/teaching.md).
const NAMED_FIELDS: usize = 14;

/// The number of properties above which every address counts as a link for programs.
const FEW_PROPERTIES: usize = 12;

/// The list inside a property.
struct InnerList<'a> {
    item: &'a Value,
    path: String,
    /// Whether the list stands in an envelope of its own: `subscriptions.data`.
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
            let name = names::name(property.own_name());
            // A part of the key may have this name and be known from the request. A second one would say nothing new.
            if entity.key.iter().any(|part| part.name == name) {
                continue;
            }
            let name = names::unique(&mut taken, name);
            let mut field = self.field(entity, &property);
            if field.path == Some(FieldPath::One(name.clone())) {
                field.path = None;
            }
            out.insert(name, field);
        }
        for (name, field) in &entity.extra_fields {
            out.insert(names::unique(&mut taken, name.clone()), field.clone());
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

    /// Removes the addresses of other requests, which the catalog makes itself. If there are few properties, only those are
    /// removed that are surely such: their example is one of this API, or a page for people stands beside them.
    fn remove_links(&self, properties: &mut Vec<RowProperty<'a>>) {
        let are_many = properties.len() > FEW_PROPERTIES;
        let has_page = properties.iter().any(|p| matches!(p.snake_name.as_str(), "html_url" | "web_url"));
        let is_link = |property: &RowProperty<'a>| match property.snake_name.as_str() {
            "node_id" | "gravatar_id" => true,
            "url" => has_page || self.has_example_of_this_api(property),
            name => is_link_name(name) && (are_many || self.has_example_of_this_api(property)),
        };
        // An entity that has nothing but links keeps them.
        if !properties.iter().all(is_link) {
            properties.retain(|property| !is_link(property));
        }
    }

    /// Returns whether the example of an address is one of this API.
    fn has_example_of_this_api(&self, property: &RowProperty<'a>) -> bool {
        let opened = self.reader.open(property.schema);
        let first_example = opened.get("examples").and_then(|examples| examples.get(0));
        let example = opened.get("example").or(first_example).and_then(Value::as_str);
        example.and_then(|text| text.strip_prefix(&self.origin)).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns whether an answer holds the property and it says something about the row.
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
        let mut field = self.types.field(property.schema);
        let is_long_text = field.kind == named("html")
            || matches!(property.snake_name.as_str(), "body" | "content" | "html" | "markdown");
        if is_long_text && matches!(field.kind, SlotType::Named(_)) {
            field.show = Some(Show::Artifact);
        }
        field.path = Some(FieldPath::One(property.path.clone()));
        field
    }

    /// Returns the field of a property that refers to an entity, with the path of the entity's key.
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
                // The other parts of an envelope inside of a row are of no use.
                _ => list.is_enveloped.then(|| at(named("json"), list.path)),
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

    /// Returns the list of a property, which may stand in an envelope of its own.
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

    /// Returns the entity whose row is embedded here with its whole key, if a get reads it.
    fn embedded_entity(&self, schema: &'a Value) -> Option<&MappedEntity<'a>> {
        let known = self.by_schema_name.get(&self.schema_name(schema))?;
        let holds = |part: &KeyPart| part.path_in_row().is_some_and(|path| self.row_has_path(schema, path));
        let is_whole = |entity: &&MappedEntity<'a>| !entity.key.is_empty() && entity.key.iter().all(holds);
        known.iter().map(|at| &self.entities[*at]).find(|entity| self.is_readable(entity) && is_whole(entity))
    }

    /// Returns the entity of `anyOf: [string, Customer]`, an id that the API replaces by the row when it is asked to.
    fn expandable_entity(&self, schema: &'a Value) -> Option<String> {
        let arms = self.reader.arms(self.reader.spec.follow(schema));
        if arms.len() < 2 || !arms.iter().any(|arm| self.reader.scalar(arm) == Some(Scalar::Text)) {
            return None;
        }
        let object = arms.iter().find(|arm| self.reader.is_object(arm))?;
        let known = self.by_schema_name.get(&self.schema_name(object))?;
        let mut entities = known.iter().map(|at| &self.entities[*at]);
        entities.find(|entity| entity.key.len() == 1 && self.is_readable(entity)).map(|entity| entity.name.clone())
    }

    /// Returns the entity that a property such as `project_id` names, if it has one key of the same kind.
    fn entity_named_by(&self, of: &MappedEntity<'a>, property: &RowProperty<'a>) -> Option<String> {
        let endings = ["_id", "_uuid", "_sid", "_key", "_slug"];
        let name = endings.iter().find_map(|end| property.snake_name.strip_suffix(end))?;
        let scalar = self.reader.scalar(property.schema)?;
        let target = &self.entities[*self.by_name.get(name)?];
        let [part] = target.key.as_slice() else { return None };
        let key_is_number = part.field.kind == named("integer") || part.field.kind == named("number");
        let is_number = matches!(scalar, Scalar::Integer | Scalar::Number);
        let is_other = target.name != of.name;
        (is_other && key_is_number == is_number && self.is_readable(target)).then(|| target.name.clone())
    }

    /// Returns the fields that a list's rows hold, if a get reads more of them.
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
            // A field that is in no row is known anyway.
            path.is_none_or(|path| object.props.contains_key(first_name(path)))
                || entity.key.iter().any(|part| part.name == *name)
        };
        let given: Vec<String> =
            fields.iter().filter(|(name, field)| is_given(name, field)).map(|(name, _)| name.clone()).collect();
        (self.is_readable(entity) && given.len() + 1 < fields.len()).then_some(given)
    }
}

/// Returns the first property name of a path.
fn first_name(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or_default()
}

/// Returns whether a property of this name holds the address of another request, which the catalog makes itself.
fn is_link_name(snake_name: &str) -> bool {
    let for_people =
        ["html_url", "download_url", "web_url", "clone_url", "image_url", "file_url", "public_url", "short_url"];
    let is_address = ["_url", "_uri", "_href", "_link"].iter().any(|end| snake_name.ends_with(end));
    (is_address && !for_people.contains(&snake_name))
        || matches!(snake_name, "node_id" | "gravatar_id" | "etag" | "self_link" | "odata_type")
}

/// Shortens the list of properties. A table names only the first fields of many, so the most informative ones come first, then
/// those that are always there, and addresses last. A short list keeps the order of the schema.
fn keep_most_informative(properties: &mut Vec<RowProperty<'_>>) {
    if properties.len() <= NAMED_FIELDS {
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
    properties.truncate(MAX_FIELDS);
}
