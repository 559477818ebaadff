//! The choice of GraphQL types that become entities, and the fields of their rows. An entity needs a key and a query that reads
//! it.
//! Invariant: each path of a field exists in the schema and needs no arguments.

use std::collections::HashSet;

use catalog::Show;
use catalog::raw::{Declaration, Entity, FieldPath, SlotType};
use indexmap::IndexMap;

use super::schema::{Arg, Field, TypeDef, TypeKind};
use super::{SchemaEntity, SchemaMapper, types};
use crate::draft::DraftEntity;
use crate::names;

/// The maximum number of fields of an entity. Each further field would cost tokens in every taught table.
const MAX_FIELDS_PER_ENTITY: usize = 24;

/// The maximum number of fields that are taken from one embedded object.
const MAX_EMBEDDED_FIELDS: usize = 2;

/// A path into a row, with the type of the value at that path.
struct TypedPath {
    path: String,
    kind: SlotType,
}

impl SchemaMapper<'_> {
    pub(super) fn add_entities(&mut self, queries: &[Field]) {
        for type_name in self.read_types(queries) {
            let Some(def) = self.schema.get(&type_name).filter(|def| def.kind == TypeKind::Object) else { continue };
            let is_internal = def.name.starts_with("__") || type_name == self.schema.query;
            if is_internal || self.entities.contains_key(&type_name) {
                continue;
            }
            let Some(key) = key_of(def) else { continue };
            let name = names::pascal_case(&names::words(&def.name));
            if self.entities.values().any(|entity| entity.draft.name == name) {
                continue;
            }
            let about = names::first_sentence(&def.description, 80);
            let about = if about.is_empty() { names::with_article(&def.name) } else { about };
            let raw = Entity { about, key: vec![key], ..Entity::default() };
            let entity = SchemaEntity {
                draft: DraftEntity { name, raw, comment: None },
                get: None,
                methods: HashSet::new(),
                query_required_inputs: Vec::new(),
                search_required_inputs: Vec::new(),
            };
            self.entities.insert(type_name, entity);
        }
        // Fields are added in a second pass, because a field can refer to any entity and all entities must exist first.
        for at in 0..self.entities.len() {
            let fields = self.entities.get_index(at).map(|(name, entity)| self.fields(name, entity));
            if let Some((_, entity)) = self.entities.get_index_mut(at) {
                entity.draft.raw.fields = fields.unwrap_or_default();
            }
        }
    }

    /// Returns the names of the types that a query reads or lists, and of the types that `node` reads by id.
    fn read_types(&self, queries: &[Field]) -> Vec<String> {
        let row_type = |field: &Field| {
            let connection = self.connection(&field.ty.name);
            connection.map_or_else(|| field.ty.name.clone(), |connection| connection.node.name.clone())
        };
        let mut out: Vec<String> = queries.iter().map(row_type).collect();
        if self.has_node_query() {
            let objects = self.schema.types.values().filter(|def| def.kind == TypeKind::Object);
            out.extend(objects.filter(|def| def.is_node()).map(|def| def.name.clone()));
        }
        out
    }

    /// Returns whether any row with an id can be read by `node(id: ID!): Node`.
    pub(super) fn has_node_query(&self) -> bool {
        let field = self.schema.get(&self.schema.query).and_then(|query| query.fields.get("node"));
        field.is_some_and(|field| field.ty.name == "Node" && field.args.iter().any(|arg| arg.name == "id"))
    }

    fn fields(&self, type_name: &str, entity: &SchemaEntity) -> IndexMap<String, Declaration> {
        let mut out: IndexMap<String, Declaration> = IndexMap::new();
        let Some(def) = self.schema.get(type_name) else { return out };
        let is_key = |field: &&Field| entity.draft.raw.key.contains(&field.name);
        let is_usable = |field: &&Field| {
            let needs_arguments = field.args.iter().any(Arg::is_required);
            !is_key(field) && !field.deprecated && !needs_arguments && !is_noise(&field.name)
        };
        // Many schemas list fields alphabetically. The most informative fields are moved to the front, so that the limit
        // removes the others.
        let mut others: Vec<&Field> = def.fields.values().filter(is_usable).collect();
        others.sort_by_key(|field| (!names::is_informative(&names::snake_case(&field.name)), !field.ty.required));
        let mut taken: HashSet<String> = HashSet::new();
        for field in def.fields.values().filter(is_key).chain(others) {
            if out.len() >= MAX_FIELDS_PER_ENTITY {
                break;
            }
            for TypedPath { path, kind } in self.paths(field) {
                let is_reference = matches!(kind, SlotType::Ref(_)) || path.contains("[].");
                let name = if is_reference {
                    names::field_name(&field.name)
                } else {
                    names::field_name(&path.replace('.', "_").replace("[]", ""))
                };
                let name = names::reserve_unique(&mut taken, name);
                let is_long = matches!(field.name.as_str(), "body" | "bodyHTML" | "content" | "bodyText");
                let mut declaration = Declaration::new(kind);
                declaration.path = (path != name).then_some(FieldPath::One(path));
                declaration.show = is_long.then_some(Show::Artifact);
                out.insert(name, declaration);
            }
        }
        out
    }

    /// Returns the row paths for one GraphQL field: the field itself, the key of a referenced entity, or some scalars of a
    /// small object.
    fn paths(&self, field: &Field) -> Vec<TypedPath> {
        if let Some(kind) = types::output_type(self.schema, &field.ty) {
            return vec![TypedPath { path: field.name.clone(), kind }];
        }
        if let Some(entity) = self.entities.get(&field.ty.name) {
            let target = SlotType::Ref(entity.draft.name.clone());
            let key = entity.key();
            return vec![if field.ty.is_list {
                TypedPath { path: format!("{}[].{key}", field.name), kind: SlotType::Array(Box::new(target)) }
            } else {
                TypedPath { path: format!("{}.{key}", field.name), kind: target }
            }];
        }
        let Some(def) = self.schema.get(&field.ty.name).filter(|_| !field.ty.is_list) else { return Vec::new() };
        if !matches!(def.kind, TypeKind::Object | TypeKind::Interface) || def.fields.contains_key("pageInfo") {
            return Vec::new();
        }
        let informative =
            ["login", "name", "title", "amount", "currencyCode", "currency", "id", "url", "value", "code"];
        let is_leaf = |inner: &&Field| {
            !is_noise(&inner.name)
                && !inner.ty.is_list
                && inner.args.is_empty()
                && types::leaf_type(self.schema, &inner.ty.name).is_some()
        };
        let leaves: Vec<&Field> = def.fields.values().filter(is_leaf).collect();
        let are_few = leaves.len() <= 4;
        let chosen = leaves.into_iter().filter(|inner| are_few || informative.contains(&inner.name.as_str()));
        let typed = |inner: &Field| {
            let kind = types::output_type(self.schema, &inner.ty)?;
            Some(TypedPath { path: format!("{}.{}", field.name, inner.name), kind })
        };
        chosen.take(MAX_EMBEDDED_FIELDS).filter_map(typed).collect()
    }
}

/// Returns whether a field repeats another field (`bodyHTML`) or describes the caller instead of the row (`viewerCanEdit`).
fn is_noise(name: &str) -> bool {
    name.ends_with("HTML") || name.ends_with("ResourcePath") || name == "resourcePath" || name.starts_with("viewer")
}

/// Returns the name of the field that identifies a row: `id`, else a field of type `ID`, else a field such as `slug` or `name`.
fn key_of(def: &TypeDef) -> Option<String> {
    let is_single = |field: &&Field| !field.ty.is_list && field.args.is_empty();
    let by_name = |name: &str| def.fields.get(name).filter(is_single).filter(|field| !field.deprecated);
    let ids = ["id", "uuid", "key", "slug", "code", "login", "handle", "name", "number", "title"];
    let can_be_key = |field: &&Field| matches!(field.ty.name.as_str(), "ID" | "String" | "Int");
    let key = by_name("id")
        .or_else(|| def.fields.values().filter(is_single).find(|field| field.ty.name == "ID"))
        .or_else(|| ids.iter().find_map(|name| by_name(name).filter(can_be_key)));
    key.map(|field| field.name.clone())
}
