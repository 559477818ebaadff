//! The resolver: makes a catalog from the parsed shape of a YAML file. It looks up every name and checks every
//! mapping (the description of how a call becomes a request).
//! Invariant: one pass finds all mistakes of a file, and a catalog is made only if the file has no mistake.

mod answer;
mod body;
mod capability;
mod effect;
mod graphql;
mod http;
mod mapping;
mod paging;
mod relation;
mod text_rules;
mod top_level;
mod types;
mod whole_catalog;

pub use text_rules::is_reserved_header;

use base::{Code, Diagnostic, Pace, similar_names};
use indexmap::IndexMap;

use super::raw;
use super::spans::{SpanTree, YamlPath, YamlTarget};
use crate::codes;
use crate::model::{Capability, Catalog, Entity, FieldSource};
use crate::types::Type;

/// The path of the top of the file, with which the path of each mistake begins.
const TOP: YamlPath<'static> = YamlPath::TOP;

/// Makes the catalog without its digest, or returns the mistakes of the file. `text` is used only to find the
/// positions of mistakes.
pub fn resolve(raw: &raw::Catalog, text: &str) -> Result<Catalog, Vec<Diagnostic>> {
    let mut resolver = CatalogResolver { raw, mistakes: Vec::new(), slot_count: 0 };
    let (id, aliases) = resolver.resolve_ids();
    let origin = resolver.resolve_origin(&raw.origin);
    resolver.check_named_types();
    // The order matters: fields need only the names of entities, capabilities need the keys of all entities, and
    // relations need the parameters of all queries.
    let mut entities: IndexMap<String, Entity> =
        raw.entities.iter().map(|(name, entity)| (name.clone(), resolver.resolve_entity(name, entity))).collect();
    resolver.check_reference_parts(&entities);
    let capabilities: IndexMap<String, Capability> = raw
        .capabilities
        .iter()
        .filter_map(|(name, capability)| {
            Some((name.clone(), resolver.resolve_capability(name, capability, &entities)?))
        })
        .collect();
    for (name, entity) in &raw.entities {
        let relations = resolver.resolve_relations(name, entity, &entities, &capabilities);
        if let Some(entity) = entities.get_mut(name) {
            entity.relations = relations;
        }
    }
    resolver.check_names();
    resolver.check_settings(origin.as_ref());
    resolver.check_probes_and_undos(&entities, &capabilities);
    resolver.check_whole_catalog(&entities, &capabilities);
    let failure = resolver.resolve_failure();
    match (id, origin, resolver.mistakes) {
        (Some(id), Some((origin, base_path)), mistakes) if mistakes.is_empty() => Ok(Catalog {
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
            hidden_entities: Vec::new(),
            by_entity: Default::default(),
        }),
        (_, _, mistakes) => Err(make_diagnostics(mistakes, text)),
    }
}

/// Returns the diagnostics for the mistakes, in the order of their positions. A mistake in a named type is found at
/// each use of the type, so equal diagnostics are removed.
fn make_diagnostics(mistakes: Vec<Mistake>, text: &str) -> Vec<Diagnostic> {
    let spans = SpanTree::new(text);
    let mut diagnostics: Vec<Diagnostic> = mistakes
        .into_iter()
        .map(|mistake| Diagnostic {
            copy: mistake.copy,
            ..Diagnostic::error(mistake.code, spans.span(text, &mistake.target), mistake.message)
                .with_alternatives(mistake.alternatives)
        })
        .collect();
    diagnostics.sort_by(|a, b| (a.span.start, a.code, &a.message).cmp(&(b.span.start, b.code, &b.message)));
    diagnostics.dedup();
    diagnostics
}

/// A mistake of the catalog's author, before its position in the text is looked up.
struct Mistake {
    code: Code,
    /// The key, value or word with the mistake.
    target: YamlTarget,
    message: String,
    /// The names or forms that the author may have meant.
    alternatives: Vec<String>,
    /// A text that the author can copy to repair the mistake.
    copy: Option<String>,
}

impl Mistake {
    fn new(code: Code, target: YamlTarget, message: impl Into<String>) -> Self {
        Self { code, target, message: message.into(), alternatives: Vec::new(), copy: None }
    }

    fn with_alternatives(mut self, alternatives: impl IntoIterator<Item = String>) -> Self {
        self.alternatives = alternatives.into_iter().collect();
        self
    }

    fn with_copy(mut self, line: impl Into<String>) -> Self {
        self.copy = Some(line.into());
        self
    }
}

/// The state of resolving one file. The methods are in the modules of this folder, one module for each part of the
/// format.
struct CatalogResolver<'a> {
    raw: &'a raw::Catalog,
    mistakes: Vec<Mistake>,
    /// The number of slots (members of object types) in all types so far, with named types expanded.
    /// `types::MAX_EXPANDED_SLOTS` is the maximum.
    slot_count: usize,
}

impl CatalogResolver<'_> {
    fn report(&mut self, mistake: Mistake) {
        self.mistakes.push(mistake);
    }

    /// Reports a name that is no entity of the catalog. Returns whether the name is an entity.
    fn check_entity_name(&mut self, at: &YamlPath<'_>, name: &str) -> bool {
        if self.raw.entities.contains_key(name) {
            return true;
        }
        let near = similar_names(name, self.raw.entities.keys().map(String::as_str));
        self.report(Mistake::new(codes::NAME, at.on_value(), format!("no entity `{name}`")).with_alternatives(near));
        false
    }

    fn resolve_entity(&mut self, name: &str, raw: &raw::Entity) -> Entity {
        let all = TOP.key("entities");
        let at = all.key(name);
        let slots = at.key("fields");
        let mut fields = IndexMap::with_capacity(raw.fields.len());
        for (field, slot) in &raw.fields {
            fields.insert(field.clone(), self.resolve_field(&slots.key(field), field, slot));
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
        self.check_key(&at.key("key"), &entity);
        // The value of a field without a path is taken from the call's arguments, which contain only the parts of the
        // key.
        let without_path = entity.fields.values().filter(|f| f.source == FieldSource::Paths(Vec::new()));
        for field in without_path.filter(|f| !entity.key.contains(&f.name)) {
            let message =
                format!("`{}` has no path at all; only a part of the key may be left to what was asked", field.name);
            self.report(Mistake::new(codes::SHAPE, slots.key(&field.name).key("path").on_key(), message));
        }
        entity
    }

    fn check_key(&mut self, at: &YamlPath<'_>, entity: &Entity) {
        let name = &entity.name;
        if entity.key.is_empty() {
            let message = format!("{name} has no key; name the fields that identify a row");
            self.report(Mistake::new(codes::NAME, at.on_key(), message).with_copy("key: [id]"));
        }
        for (n, part) in entity.key.iter().enumerate() {
            let target = || at.item(n).on_value();
            let Some(field) = entity.fields.get(part) else {
                let near = similar_names(part, entity.fields.keys().map(String::as_str));
                let message = format!("key `{part}` is not a field of {name}");
                self.report(Mistake::new(codes::NAME, target(), message).with_alternatives(near));
                continue;
            };
            if entity.key[..n].contains(part) {
                self.report(Mistake::new(codes::NAME, target(), format!("`{part}` is in the key of {name} twice")));
            }
            if matches!(
                field.kind,
                Type::Json | Type::Array(_) | Type::Object(_) | Type::Union(_) | Type::MultiSelect(_)
            ) {
                let message =
                    format!("`{part}` cannot identify a {name}: a key is text, a number, a moment or a reference");
                self.report(Mistake::new(codes::MAPPING, target(), message).with_copy(format!("{part}: string")));
            }
        }
    }
}
