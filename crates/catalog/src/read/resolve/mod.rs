//! Shape to meaning: every name is looked up, every mapping is checked against the keys it needs.
//! Invariant: all mistakes of a file are found in one go; a catalog comes out only when there is none.

mod capability;
mod effect;
mod graphql;
mod http;
mod paging;
mod reach;
mod relation;
mod types;

use base::{CatalogId, Diagnostic, Origin, Pace, Span, near};
use indexmap::IndexMap;

use super::raw::{self, Text};
use crate::codes;
use crate::model::{Capability, Catalog, Entity, Failure};
use crate::path::DataPath;

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
    cx.sent_always();
    cx.between(&entities, &capabilities);
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
            headers: raw.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            pace: raw.pace.as_ref().map(|p| Pace {
                per_second: p.per_second,
                burst: p.burst,
                concurrent: p.concurrent,
            }),
            failure: raw
                .failure
                .as_ref()
                .map(|f| Failure { flag: DataPath::from(f.flag.clone()), says: DataPath::from(f.says.clone()) }),
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

    /// What goes with every request, and how many of them.
    fn sent_always(&mut self) {
        let raw = self.raw;
        for (name, value) in &raw.headers {
            self.header_name(name);
            if value.chars().any(char::is_control) {
                let message = format!("the value of `{name}` has a control character");
                self.report(Diagnostic::error(codes::MAPPING, self.place_of_word(name), message));
            }
        }
        if let Some(pace) = &raw.pace
            && !(pace.per_second.is_finite() && pace.per_second > 0.0 && pace.concurrent != Some(0))
        {
            let message = "a pace is more than zero a second and at least one call at a time";
            self.report(Diagnostic::error(codes::MAPPING, self.place_of_word("pace"), message));
        }
        if let Some(path) = raw.graphql.as_deref().filter(|p| !p.is_empty() && !p.starts_with('/')) {
            let message = format!("`{path}` is not a path; write `graphql: /graphql`");
            self.report(Diagnostic::error(codes::MAPPING, self.place_of_word(path), message));
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
            fields.insert(field.clone(), self.field(field, slot));
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
        Entity {
            name: name.to_owned(),
            about: raw.about.clone(),
            words: raw.words.clone(),
            key,
            fields,
            relations: IndexMap::new(),
            primary_read: raw.primary_read.as_ref().map(|t| t.value.clone()),
        }
    }
}
