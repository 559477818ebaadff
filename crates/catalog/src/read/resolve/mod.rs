//! Shape to meaning: every name is looked up, every mapping is checked against the keys it needs.
//! Invariant: all mistakes of a file are found in one go; a catalog comes out only when there is none.

mod capability;
mod reach;
mod relation;

use base::{CatalogId, Diagnostic, Origin, Span, near};
use indexmap::IndexMap;

use super::raw::{self, SlotType, Text};
use crate::codes;
use crate::model::{Capability, Catalog, Entity, Field};
use crate::path::DataPath;
use crate::types::{DateFormat, TextStyle, Type};

pub fn resolve(raw: raw::Catalog, text: &str) -> Result<Catalog, Vec<Diagnostic>> {
    let mut cx = Cx { text, raw: &raw, found: Vec::new() };
    let id = cx.catalog_id(&raw.catalog);
    let aliases = raw.aliases.iter().filter_map(|alias| cx.catalog_id(alias)).collect();
    let origin = cx.origin(&raw.origin);
    let mut entities: IndexMap<String, Entity> =
        raw.entities.iter().map(|(name, entity)| (name.clone(), cx.entity(name, entity))).collect();
    let capabilities: IndexMap<String, Capability> = raw
        .capabilities
        .iter()
        .filter_map(|(name, capability)| Some((name.clone(), cx.capability(name, capability, &entities)?)))
        .collect();
    for (name, entity) in &raw.entities {
        let relations = cx.relations(name, entity, &entities, &capabilities);
        if let Some(entity) = entities.get_mut(name) {
            entity.relations = relations;
        }
    }
    cx.names();
    cx.insecure(origin.as_ref());
    cx.unreachable(&entities, &capabilities);
    cx.key_rings(&entities);
    match (id, origin, cx.found) {
        (Some(id), Some((origin, base_path)), found) if found.is_empty() => Ok(Catalog {
            id,
            version: raw.version,
            title: raw.title.clone(),
            aliases,
            origin,
            base_path,
            auth: raw.auth.clone(),
            entities,
            capabilities,
            digest: base::Digest::of(b""),
        }),
        (_, _, found) => Err(found),
    }
}

struct Cx<'a> {
    text: &'a str,
    raw: &'a raw::Catalog,
    found: Vec<Diagnostic>,
}

impl Cx<'_> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    /// Where a name stands; one whose place the reader did not keep is looked for in the text.
    fn place(&self, text: &Text) -> Span {
        let span = super::place_of(text.referenced);
        if span.end > 0 { span } else { self.place_of_word(&text.value) }
    }

    fn place_of_word(&self, word: &str) -> Span {
        self.text.find(word).map(|at| Span::new(at, at + word.len())).unwrap_or_default()
    }

    fn catalog_id(&mut self, text: &Text) -> Option<CatalogId> {
        CatalogId::parse(&text.value)
            .map_err(|error| self.report(Diagnostic::error(codes::NAME, self.place(text), error.to_string())))
            .ok()
    }

    fn origin(&mut self, text: &Text) -> Option<(Origin, String)> {
        let after_scheme = text.value.find("://").map_or(0, |at| at + 3);
        let path_at = text.value[after_scheme..].find('/').map_or(text.value.len(), |at| after_scheme + at);
        let (origin, path) = text.value.split_at(path_at);
        let path = path.trim_end_matches('/');
        if let Some(bad) = path.chars().find(|c| matches!(c, '?' | '#' | '{' | '\\') || c.is_whitespace()) {
            let message = format!("`{bad}` is not allowed in the path of an origin");
            self.report(Diagnostic::error(codes::ORIGIN, self.place(text), message));
            return None;
        }
        Origin::parse(origin)
            .map(|origin| (origin, path.to_owned()))
            .map_err(|error| self.report(Diagnostic::error(codes::ORIGIN, self.place(text), error.to_string())))
            .ok()
    }

    fn slot_type(&mut self, slot: &SlotType) -> Type {
        match slot {
            SlotType::Named(name) => self.named_type(name),
            SlotType::Array(of) => Type::Array(Box::new(self.named_type(of))),
            SlotType::Ref(entity) => {
                self.entity_name(entity);
                Type::Ref(entity.value.clone())
            }
        }
    }

    fn named_type(&mut self, name: &Text) -> Type {
        match name.value.as_str() {
            "string" => Type::String(TextStyle::Short),
            "markdown" => Type::String(TextStyle::Markdown),
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            "time" => Type::Date(DateFormat::Rfc3339),
            "date" => Type::Date(DateFormat::IsoDate),
            "json" => Type::Json,
            other => match self.raw.types.get(other) {
                Some(named) => Type::Select(named.select.clone()),
                None => {
                    let builtin = ["string", "markdown", "integer", "number", "boolean", "time", "date", "json"];
                    let known = builtin.into_iter().chain(self.raw.types.keys().map(String::as_str));
                    let alternatives = near(other, known);
                    let message = format!("no type `{other}`");
                    let place = self.place(name);
                    self.report(Diagnostic::error(codes::NAME, place, message).with_alternatives(alternatives));
                    Type::Json
                }
            },
        }
    }

    fn entity_name(&mut self, name: &Text) -> bool {
        if self.raw.entities.contains_key(&name.value) {
            return true;
        }
        let alternatives = near(&name.value, self.raw.entities.keys().map(String::as_str));
        let message = format!("no entity `{}`", name.value);
        let place = self.place(name);
        self.report(Diagnostic::error(codes::NAME, place, message).with_alternatives(alternatives));
        false
    }

    fn entity(&mut self, name: &str, raw: &raw::Entity) -> Entity {
        let mut fields = IndexMap::new();
        for (field, slot) in &raw.fields {
            let kind = self.slot_type(&slot.kind);
            let path = DataPath::from(slot.path.clone().unwrap_or_else(|| field.clone()));
            let show = slot.show.unwrap_or_default();
            fields.insert(field.clone(), Field { name: field.clone(), kind, path, show });
        }
        if raw.key.is_empty() {
            let message = format!("{name} has no key; name the fields that identify a row");
            self.report(Diagnostic::error(codes::NAME, self.place_of_word(name), message));
        }
        for part in raw.key.iter().filter(|part| !raw.fields.contains_key(&part.value)) {
            let alternatives = near(&part.value, raw.fields.keys().map(String::as_str));
            let message = format!("key `{}` is not a field of {name}", part.value);
            let place = self.place(part);
            self.report(Diagnostic::error(codes::NAME, place, message).with_alternatives(alternatives));
        }
        let key = raw.key.iter().map(|part| part.value.clone()).collect();
        Entity { name: name.to_owned(), about: raw.about.clone(), key, fields, relations: IndexMap::new() }
    }
}
