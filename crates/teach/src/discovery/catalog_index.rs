//! The search index of one catalog: the stems of its words, with a weight for each entity and capability. A stem is a word
//! without its ending.
//! Invariant: the index depends only on the catalog, so all registries with the same catalog share one index.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use catalog::{Capability, Catalog, Entity, Type, Via};

use super::api_names;
use crate::words::{kind_words, parts, stems};

/// The weight of a word by the place where it occurs. Names of entities have the largest weight, then words of capabilities,
/// then words of fields. The weights were tuned on the labelled intents (docs/benchmarks.md).
mod weight {
    pub const NAME: f32 = 4.0;
    pub const WORDS: f32 = 2.6;
    pub const ABOUT: f32 = 1.4;
    pub const RELATION: f32 = 0.5;
    pub const FIELD: f32 = 0.7;
    pub const FIELD_ABOUT: f32 = 0.35;
    pub const CHOICE: f32 = 0.4;
    pub const API: f32 = 0.5;
    pub const CAPABILITY: f32 = 1.0;
    pub const CAPABILITY_WORDS: f32 = 1.3;
    pub const CAPABILITY_ABOUT: f32 = 0.9;
    pub const PARAM: f32 = 0.35;
    pub const KIND: f32 = 0.3;
}

/// The factor for the last word in a name of several words: `Run` in `WorkflowRun`.
const LAST_WORD_FACTOR: f32 = 0.7;
/// The factor for each earlier word in a name of several words: `Workflow` in `WorkflowRun`.
const EARLIER_WORD_FACTOR: f32 = 0.45;
/// The factor with which a weaker place of a word is added to its strongest place.
const WEAKER_PLACE_FACTOR: f32 = 0.15;

#[derive(Debug)]
pub struct CatalogIndex {
    pub catalog: Arc<Catalog>,
    /// The names of the API that an intent may contain.
    pub names: Vec<api_names::ApiName>,
    /// The entities in the order of the catalog. Other parts of the index refer to them by position.
    pub entities: Vec<EntityIndex>,
    /// The names of the capabilities in the order of the catalog, each with the position of its entity.
    pub capabilities: Vec<(String, usize)>,
    /// The places of each stem in the catalog.
    pub terms: HashMap<String, TermIndex>,
}

/// An entity of the index. Its capabilities and neighbours are positions in the lists of [`CatalogIndex`].
#[derive(Debug, Default)]
pub struct EntityIndex {
    pub name: String,
    pub capabilities: Vec<usize>,
    /// The positions of the entities that a relation connects with this entity.
    pub neighbours: Vec<usize>,
}

/// The entities and capabilities that contain a stem.
#[derive(Debug, Default)]
pub struct TermIndex {
    /// The number of entities that contain the stem in their own words or in a capability.
    pub entities: usize,
    /// The weights in the entities' own words: pairs of entity position and weight.
    pub in_entity: Vec<(usize, f32)>,
    /// The weights in capabilities: pairs of capability position and weight. They are separate because a caller may not be
    /// allowed to use every capability.
    pub in_capabilities: Vec<(usize, f32)>,
}

impl CatalogIndex {
    pub fn new(catalog: Arc<Catalog>) -> Self {
        let positions: HashMap<&String, usize> =
            catalog.entities.keys().enumerate().map(|(position, name)| (name, position)).collect();
        let owner = |c: &Capability| positions.get(&c.entity).copied().unwrap_or_default();
        let capabilities: Vec<(String, usize)> =
            catalog.capabilities.values().map(|c| (c.name.clone(), owner(c))).collect();
        let mut entities: Vec<EntityIndex> =
            catalog.entities.keys().map(|name| EntityIndex { name: name.clone(), ..EntityIndex::default() }).collect();
        for (capability, (_, entity)) in capabilities.iter().enumerate() {
            entities[*entity].capabilities.push(capability);
        }
        for (from, entity) in catalog.entities.values().enumerate() {
            let targets = entity.relations.values().filter_map(|r| positions.get(&r.target));
            for target in targets.filter(|target| **target != from) {
                entities[from].neighbours.push(*target);
                entities[*target].neighbours.push(from);
            }
        }
        for entity in &mut entities {
            entity.neighbours.sort_unstable();
            entity.neighbours.dedup();
        }
        let terms = terms(&catalog, &capabilities);
        Self { names: api_names::names_of(&catalog), entities, capabilities, terms, catalog }
    }

    /// Returns, for each entity, whether the caller may see it. An entity is visible if it has an allowed capability, or if it
    /// has no capability and is embedded in a visible entity.
    pub fn visible(&self, allowed: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut visible: Vec<bool> =
            self.entities.iter().map(|entity| entity.capabilities.iter().any(|c| allowed(*c))).collect();
        for (from, entity) in self.catalog.entities.values().enumerate() {
            for relation in entity.relations.values().filter(|r| matches!(r.via, Via::Embedded { .. })) {
                let target = self.entities.iter().position(|entity| entity.name == relation.target);
                if let Some(target) = target.filter(|target| self.entities[*target].capabilities.is_empty()) {
                    visible[target] |= visible[from];
                }
            }
        }
        visible
    }
}

fn terms(catalog: &Catalog, capabilities: &[(String, usize)]) -> HashMap<String, TermIndex> {
    let mut terms: HashMap<String, TermIndex> = HashMap::new();
    let mut holders: HashMap<String, BTreeSet<usize>> = HashMap::new();
    let api: Vec<String> = api_words(catalog);
    for (position, entity) in catalog.entities.values().enumerate() {
        for (stem, weight) in entity_weights(entity, &api) {
            holders.entry(stem.clone()).or_default().insert(position);
            terms.entry(stem).or_default().in_entity.push((position, weight));
        }
    }
    for (position, (capability, (_, entity))) in catalog.capabilities.values().zip(capabilities).enumerate() {
        for (stem, weight) in capability_weights(capability) {
            holders.entry(stem.clone()).or_default().insert(*entity);
            terms.entry(stem).or_default().in_capabilities.push((position, weight));
        }
    }
    for (stem, holders) in holders {
        terms.entry(stem).or_default().entities = holders.len();
    }
    terms
}

/// Combines the weights of a stem in two places: the larger weight plus a small part of the smaller weight. With the full sum,
/// a word in many places would weigh as much as a name.
pub fn combine_weights(one: f32, other: f32) -> f32 {
    one.max(other) + WEAKER_PLACE_FACTOR * one.min(other)
}

/// Stems with their combined weights.
#[derive(Default)]
struct StemWeights(HashMap<String, f32>);

impl StemWeights {
    /// Adds the stems of one place with its weight. A stem that occurs several times in these texts is counted once.
    fn add<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>, weight: f32) {
        let distinct: BTreeSet<String> = texts.into_iter().flat_map(stems).collect();
        for stem in distinct {
            let known = self.0.entry(stem).or_default();
            *known = combine_weights(*known, weight);
        }
    }
}

fn entity_weights(entity: &Entity, api: &[String]) -> HashMap<String, f32> {
    let mut weights = StemWeights::default();
    for (stem, share) in name_parts(&entity.name) {
        weights.0.insert(stem, weight::NAME * share);
    }
    weights.add(entity.words.iter().map(String::as_str), weight::WORDS);
    weights.add([entity.about.as_str()], weight::ABOUT);
    weights.add(entity.relations.keys().map(String::as_str), weight::RELATION);
    weights.add(entity.relations.values().map(|r| r.about.as_str()), weight::FIELD_ABOUT);
    weights.add(entity.fields.keys().map(String::as_str), weight::FIELD);
    weights.add(entity.fields.values().map(|f| f.about.as_str()), weight::FIELD_ABOUT);
    weights.add(entity.fields.values().flat_map(|f| choices(&f.kind)), weight::CHOICE);
    weights.add(api.iter().map(String::as_str), weight::API);
    weights.0
}

/// Returns the stems of an entity's name with their factors. The whole name as one word has the factor 1.
fn name_parts(name: &str) -> Vec<(String, f32)> {
    let parts = parts(name);
    let Some((head, modifiers)) = parts.split_last().filter(|(_, modifiers)| !modifiers.is_empty()) else {
        return parts.into_iter().map(|only| (only, 1.0)).collect();
    };
    let together: String = name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let mut shares: Vec<(String, f32)> = stems(&together).into_iter().map(|whole| (whole, 1.0)).collect();
    shares.push((head.clone(), LAST_WORD_FACTOR));
    shares.extend(modifiers.iter().map(|stem| (stem.clone(), EARLIER_WORD_FACTOR)));
    shares
}

/// Returns the choices of a select type. They can describe the entity: a field `kind` with the choice `invoice`, for example.
fn choices(kind: &Type) -> Vec<&str> {
    match kind {
        Type::Select(values) | Type::MultiSelect(values) => values.iter().map(String::as_str).collect(),
        Type::Array(item) => choices(item),
        _ => Vec::new(),
    }
}

fn capability_weights(capability: &Capability) -> HashMap<String, f32> {
    // Most capability names contain the entity's name, which is already indexed for the entity.
    let own: BTreeSet<String> = stems(&capability.entity).into_iter().collect();
    let mut weights = StemWeights::default();
    weights.add([capability.name.as_str()], weight::CAPABILITY);
    weights.0.retain(|stem, _| !own.contains(stem));
    weights.add(capability.words.iter().map(String::as_str), weight::CAPABILITY_WORDS);
    weights.add([capability.about.as_str()], weight::CAPABILITY_ABOUT);
    weights.add(capability.params.keys().map(String::as_str), weight::PARAM);
    weights.add(capability.params.values().map(|p| p.about.as_str()), weight::PARAM);
    weights.add(capability.params.values().flat_map(|p| choices(&p.kind)), weight::PARAM);
    weights.add(kind_words(capability.kind).iter().copied(), weight::KIND);
    weights.0
}

/// Returns the words of the catalog's names. They are indexed for each entity of the catalog.
fn api_words(catalog: &Catalog) -> Vec<String> {
    let ids = std::iter::once(&catalog.id).chain(&catalog.aliases).map(|id| id.as_str().to_owned());
    ids.chain([catalog.title.clone()]).collect()
}
