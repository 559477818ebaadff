//! Shape to meaning: every name is looked up, every mapping is checked against the keys it needs.
//! Invariant: all mistakes of a file are found in one go; a catalog comes out only when there is none.

mod always;
mod answer;
mod body;
mod capability;
mod effect;
mod graphql;
mod http;
mod mapping;
mod paging;
mod reach;
mod relation;
mod twins;
mod types;
mod words;

pub use words::is_reserved_header;

use base::{Code, Diagnostic, Pace, similar_names};
use indexmap::IndexMap;

use super::places::{At, Places, Spot};
use super::raw;
use crate::codes;
use crate::model::{Capability, Catalog, Entity, Failure, Field, Source};
use crate::types::Type;

const TOP: At<'static> = At::TOP;

pub fn resolve(raw: &raw::Catalog, text: &str) -> Result<Catalog, Vec<Diagnostic>> {
    let mut cx = Cx { raw, found: Vec::new(), slots: 0 };
    let (id, aliases) = cx.ids();
    let origin = cx.origin(&raw.origin);
    cx.types();
    let mut entities: IndexMap<String, Entity> =
        raw.entities.iter().map(|(name, entity)| (name.clone(), cx.entity(name, entity))).collect();
    cx.parts(&entities);
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
    cx.always(origin.as_ref());
    cx.between(&entities, &capabilities);
    cx.unreachable(&entities, &capabilities);
    cx.key_rings(&entities);
    let failure = cx.failure();
    match (id, origin, cx.found) {
        (Some(id), Some((origin, base_path)), found) if found.is_empty() => Ok(Catalog {
            id,
            version: raw.version,
            title: raw.title.clone(),
            aliases,
            origin,
            base_path,
            auth: raw.auth.clone(),
            anonymous: raw.anonymous,
            headers: raw.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            pace: raw.pace.as_ref().map(|p| Pace {
                per_second: p.per_second,
                burst: p.burst,
                concurrent: p.concurrent,
            }),
            failure,
            entities,
            capabilities,
            digest: base::Digest::of(b""),
            hidden: Vec::new(),
            by_entity: Default::default(),
        }),
        (_, _, found) => Err(placed(found, text)),
    }
}

/// In the order of their places; what is wrong in a type is said once, however often the type is used.
fn placed(found: Vec<Mistake>, text: &str) -> Vec<Diagnostic> {
    let places = Places::of(text);
    let mut diagnostics: Vec<Diagnostic> = found
        .into_iter()
        .map(|mistake| Diagnostic {
            copy: mistake.copy,
            ..Diagnostic::error(mistake.code, places.place(text, &mistake.spot), mistake.message)
                .with_alternatives(mistake.alternatives)
        })
        .collect();
    diagnostics.sort_by(|a, b| (a.span.start, a.code, &a.message).cmp(&(b.span.start, b.code, &b.message)));
    diagnostics.dedup();
    diagnostics
}

/// What is wrong, and at which spot of the text: the place is looked up once everything is known.
struct Mistake {
    code: Code,
    spot: Spot,
    message: String,
    alternatives: Vec<String>,
    copy: Option<String>,
}

impl Mistake {
    fn new(code: Code, spot: Spot, message: impl Into<String>) -> Self {
        Self { code, spot, message: message.into(), alternatives: Vec::new(), copy: None }
    }

    fn any_of(mut self, alternatives: impl IntoIterator<Item = String>) -> Self {
        self.alternatives = alternatives.into_iter().collect();
        self
    }

    fn write(mut self, line: impl Into<String>) -> Self {
        self.copy = Some(line.into());
        self
    }
}

struct Cx<'a> {
    raw: &'a raw::Catalog,
    found: Vec<Mistake>,
    /// Slots of all types so far, named types unfolded.
    slots: usize,
}

impl Cx<'_> {
    fn report(&mut self, mistake: Mistake) {
        self.found.push(mistake);
    }

    fn entity_name(&mut self, at: &At<'_>, name: &str) -> bool {
        if self.raw.entities.contains_key(name) {
            return true;
        }
        let near = similar_names(name, self.raw.entities.keys().map(String::as_str));
        self.report(Mistake::new(codes::NAME, at.value(), format!("no entity `{name}`")).any_of(near));
        false
    }

    fn entity(&mut self, name: &str, raw: &raw::Entity) -> Entity {
        let all = TOP.key("entities");
        let at = all.key(name);
        let slots = at.key("fields");
        let mut fields = IndexMap::with_capacity(raw.fields.len());
        for (field, slot) in &raw.fields {
            fields.insert(field.clone(), self.field(&slots.key(field), field, slot));
        }
        let entity = Entity {
            name: name.to_owned(),
            about: raw.about.clone(),
            words: raw.words.clone(),
            key: raw.key.clone(),
            fields,
            relations: IndexMap::new(),
            primary_read: raw.primary_read.clone(),
        };
        self.key(&at.key("key"), &entity);
        // What no answer holds must be known from what was asked, and only the key is.
        let nowhere = |f: &&Field| matches!(&f.source, Source::Paths(paths) if paths.is_empty());
        for field in entity.fields.values().filter(nowhere).filter(|f| !entity.key.contains(&f.name)) {
            let message =
                format!("`{}` has no path at all; only a part of the key may be left to what was asked", field.name);
            self.report(Mistake::new(codes::SHAPE, slots.key(&field.name).key("path").here(), message));
        }
        entity
    }

    fn key(&mut self, at: &At<'_>, entity: &Entity) {
        let name = &entity.name;
        if entity.key.is_empty() {
            let message = format!("{name} has no key; name the fields that identify a row");
            self.report(Mistake::new(codes::NAME, at.here(), message).write("key: [id]"));
        }
        for (n, part) in entity.key.iter().enumerate() {
            let spot = || at.item(n).value();
            let Some(field) = entity.fields.get(part) else {
                let near = similar_names(part, entity.fields.keys().map(String::as_str));
                let message = format!("key `{part}` is not a field of {name}");
                self.report(Mistake::new(codes::NAME, spot(), message).any_of(near));
                continue;
            };
            if entity.key[..n].contains(part) {
                self.report(Mistake::new(codes::NAME, spot(), format!("`{part}` is in the key of {name} twice")));
            }
            if matches!(
                field.kind,
                Type::Json | Type::Array(_) | Type::Object(_) | Type::Union(_) | Type::MultiSelect(_)
            ) {
                let message =
                    format!("`{part}` cannot identify a {name}: a key is text, a number, a moment or a reference");
                self.report(Mistake::new(codes::MAPPING, spot(), message).write(format!("{part}: string")));
            }
        }
    }

    fn failure(&mut self) -> Option<Failure> {
        let raw = self.raw.failure.as_ref()?;
        let at = TOP.key("failure");
        for (key, path) in [("flag", &raw.flag), ("says", &raw.says)] {
            if path.is_empty() {
                let message = format!("`{key}` of `failure` is empty; write the path of it in the answer");
                self.report(Mistake::new(codes::SHAPE, at.key(key).value(), message));
            }
        }
        Some(Failure {
            flag: self.data_path(&at.key("flag"), &raw.flag),
            says: self.data_path(&at.key("says"), &raw.says),
        })
    }
}
