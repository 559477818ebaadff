//! Which types are entities: those that something reads and a key can be said of; and what fields their rows have.
//! Invariant: a field's path selects what the schema has, without arguments that must be given.

use std::collections::HashSet;

use super::schema::{Def, Field, Form};
use super::{Ent, Mapper, types};
use crate::draft::{self, Entity, Place, Ty};
use crate::names;

const MAX_FIELDS: usize = 24;

impl Mapper<'_> {
    pub(super) fn entities(&mut self, queries: &[Field]) {
        let mut found: Vec<String> = Vec::new();
        for field in queries {
            let name = self.connection(&field.ty.name).map_or(field.ty.name.clone(), |c| c.node.name.clone());
            found.push(name);
        }
        // What has an id and can be asked for by it, wherever it is read.
        if self.has_node() {
            let nodes = self.schema.types.values().filter(|def| def.form == Form::Object);
            found.extend(nodes.filter(|def| def.implements.iter().any(|i| i == "Node")).map(|def| def.name.clone()));
        }
        let mut seen: HashSet<String> = HashSet::new();
        for name in found {
            let Some(def) = self.schema.get(&name).filter(|def| def.form == Form::Object) else { continue };
            if !seen.insert(name.clone()) || def.name.starts_with("__") || *name == self.schema.query {
                continue;
            }
            let Some(key) = key_of(def) else { continue };
            let words = names::words(&def.name);
            let entity = names::pascal(&words);
            if self.ents.values().any(|ent| ent.entity.name == entity) {
                continue;
            }
            let about = names::sentence(&def.about, 80);
            let about = if about.is_empty() { names::a(&def.name) } else { about };
            let entity = Entity { name: entity, about, key: vec![key], ..Entity::default() };
            let ent = Ent { entity, get: None, verbs: HashSet::new(), queries: Vec::new(), searches: Vec::new() };
            self.ents.insert(name, ent);
        }
        let all: Vec<String> = self.ents.keys().cloned().collect();
        for name in all {
            let fields = self.fields(&name);
            if let Some(ent) = self.ents.get_mut(&name) {
                ent.entity.fields = fields;
            }
        }
    }

    /// Whether anything with an id can be asked for: `node(id: ID!): Node`.
    pub(super) fn has_node(&self) -> bool {
        let field = self.schema.get(&self.schema.query).and_then(|query| query.fields.get("node"));
        field.is_some_and(|field| field.ty.name == "Node" && field.args.iter().any(|arg| arg.name == "id"))
    }

    fn fields(&self, name: &str) -> Vec<draft::Field> {
        let (Some(def), Some(ent)) = (self.schema.get(name), self.ents.get(name)) else { return Vec::new() };
        let mut taken: HashSet<String> = HashSet::new();
        let mut out: Vec<draft::Field> = Vec::new();
        let key = &ent.entity.key;
        let first = def.fields.values().filter(|field| key.contains(&field.name));
        let usable = |field: &&Field| {
            let asks = field.args.iter().any(|arg| arg.ty.required && !arg.default);
            !key.contains(&field.name) && !field.deprecated && !asks && !is_noise(&field.name)
        };
        // Schemas are written in any order, often that of the alphabet: what tells most is kept.
        let mut rest: Vec<&Field> = def.fields.values().filter(usable).collect();
        rest.sort_by_key(|field| (!names::is_telling(&names::snake(&field.name)), !field.ty.required));
        for field in first.chain(rest) {
            if out.len() >= MAX_FIELDS {
                break;
            }
            for (path, ty) in self.field(field) {
                let name = names::name(&path.replace('.', "_").replace("[]", ""));
                let name =
                    if matches!(ty, Ty::Ref(_)) || path.contains("[].") { names::name(&field.name) } else { name };
                let name = names::unique(&mut taken, name);
                let place = if path == name { Place::Own } else { Place::At(path) };
                let long = matches!(field.name.as_str(), "body" | "bodyHTML" | "content" | "bodyText");
                out.push(draft::Field { name, ty, place, as_text: false, long });
            }
        }
        out
    }

    /// The paths that a field gives, each with its type: itself, the key of what it refers to, or a few leaves of a small object.
    fn field(&self, field: &Field) -> Vec<(String, Ty)> {
        if let Some(ty) = types::field(self.schema, &field.ty) {
            return vec![(field.name.clone(), ty)];
        }
        if let Some(ent) = self.ents.get(&field.ty.name) {
            let [key] = ent.entity.key.as_slice() else { return Vec::new() };
            let target = Ty::Ref(ent.entity.name.clone());
            return match field.ty.list {
                true => vec![(format!("{}[].{key}", field.name), Ty::Array(Box::new(target)))],
                false => vec![(format!("{}.{key}", field.name), target)],
            };
        }
        let Some(def) = self.schema.get(&field.ty.name).filter(|_| !field.ty.list) else { return Vec::new() };
        if !matches!(def.form, Form::Object | Form::Interface) || def.fields.contains_key("pageInfo") {
            return Vec::new();
        }
        let known = ["login", "name", "title", "amount", "currencyCode", "currency", "id", "url", "value", "code"];
        let leaf = |inner: &&Field| {
            !is_noise(&inner.name)
                && !inner.ty.list
                && inner.args.is_empty()
                && types::leaf(self.schema, &inner.ty.name).is_some()
        };
        let leaves: Vec<&Field> = def.fields.values().filter(leaf).collect();
        let few = leaves.len() <= 4;
        let chosen = leaves.into_iter().filter(|inner| few || known.contains(&inner.name.as_str())).take(2);
        chosen
            .filter_map(|inner| Some((format!("{}.{}", field.name, inner.name), types::field(self.schema, &inner.ty)?)))
            .collect()
    }
}

/// What says the same again, or something about who is asking.
fn is_noise(name: &str) -> bool {
    name.ends_with("HTML") || name.ends_with("ResourcePath") || name == "resourcePath" || name.starts_with("viewer")
}

/// The field that identifies a row: its id, or the nearest to one.
fn key_of(def: &Def) -> Option<String> {
    let leaf = |name: &str| def.fields.get(name).filter(|f| !f.ty.list && f.args.is_empty() && !f.deprecated);
    let ids = ["id", "uuid", "key", "slug", "code", "login", "handle", "name", "number", "title"];
    let by_type =
        || def.fields.values().find(|f| f.ty.name == "ID" && !f.ty.list && f.args.is_empty()).map(|f| f.name.clone());
    let found = leaf("id").map(|f| f.name.clone()).or_else(by_type);
    let plain = |f: &&Field| matches!(f.ty.name.as_str(), "ID" | "String" | "Int");
    found.or_else(|| ids.iter().find_map(|name| leaf(name).filter(plain)).map(|f| f.name.clone()))
}
