//! The words of one catalog, by entity.
//! Invariant: made from the catalog alone, so that an unchanged catalog's index is shared by all registries that offer it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use catalog::{Capability, Catalog, Entity, Type, Via};

use super::api_names;
use crate::words::{kind_words, parts, stems};

/// What a word counts where it stands. An entity's own name above all; what its capabilities do beside it; what its rows hold
/// below that.
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

/// Of a name of several words, what the last counts (`Run` of `WorkflowRun`) and what each of the others does.
const HEAD: f32 = 0.7;
const MODIFIER: f32 = 0.45;
/// What a word counts in its second place.
const REPEAT_FACTORS: f32 = 0.15;

#[derive(Debug)]
pub struct CatalogIndex {
    pub catalog: Arc<Catalog>,
    /// What an intent may call it.
    pub names: Vec<api_names::Name>,
    pub entities: Vec<EntityIndex>,
    /// In the catalog's order; which entity each belongs to.
    pub capabilities: Vec<(String, usize)>,
    pub terms: HashMap<String, TermIndex>,
}

/// An entity, as positions in this index.
#[derive(Debug, Default)]
pub struct EntityIndex {
    pub name: String,
    pub capabilities: Vec<usize>,
    /// Entities that a relation leads to or comes from.
    pub neighbours: Vec<usize>,
}

/// Where a stem stands.
#[derive(Debug, Default)]
pub struct TermIndex {
    /// In how many entities.
    pub entities: usize,
    /// In the entity itself: `(entity, weight)`.
    pub in_entity: Vec<(usize, f32)>,
    /// In what can be done with it: `(capability, weight)`.
    pub in_capabilities: Vec<(usize, f32)>,
}

impl CatalogIndex {
    pub fn new(catalog: Arc<Catalog>) -> Self {
        let at: HashMap<&String, usize> = catalog.entities.keys().enumerate().map(|(at, name)| (name, at)).collect();
        let owner = |c: &Capability| at.get(&c.entity).copied().unwrap_or_default();
        let capabilities: Vec<(String, usize)> =
            catalog.capabilities.values().map(|c| (c.name.clone(), owner(c))).collect();
        let mut entities: Vec<EntityIndex> =
            catalog.entities.keys().map(|name| EntityIndex { name: name.clone(), ..EntityIndex::default() }).collect();
        for (position, (_, entity)) in capabilities.iter().enumerate() {
            entities[*entity].capabilities.push(position);
        }
        for (from, entity) in catalog.entities.values().enumerate() {
            for target in entity.relations.values().filter_map(|r| at.get(&r.target)).filter(|to| **to != from) {
                entities[from].neighbours.push(*target);
                entities[*target].neighbours.push(from);
            }
        }
        for entry in &mut entities {
            entry.neighbours.sort_unstable();
            entry.neighbours.dedup();
        }
        let terms = terms(&catalog, &capabilities);
        Self { names: api_names::names_of(&catalog), entities, capabilities, terms, catalog }
    }

    /// Which entities `allowed` lets be seen: those with something that may be done, and those that only such ones hold.
    pub fn visible(&self, allowed: impl Fn(usize) -> bool) -> Vec<bool> {
        let mut visible: Vec<bool> =
            self.entities.iter().map(|entry| entry.capabilities.iter().any(|c| allowed(*c))).collect();
        for (from, entity) in self.catalog.entities.values().enumerate() {
            for relation in entity.relations.values().filter(|r| matches!(r.via, Via::Embedded { .. })) {
                let target = self.entities.iter().position(|entry| entry.name == relation.target);
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
    for (at, entity) in catalog.entities.values().enumerate() {
        for (stem, weight) in entity_weights(entity, &api) {
            holders.entry(stem.clone()).or_default().insert(at);
            terms.entry(stem).or_default().in_entity.push((at, weight));
        }
    }
    for (at, (capability, (_, entity))) in catalog.capabilities.values().zip(capabilities).enumerate() {
        for (stem, weight) in capability_weights(capability) {
            holders.entry(stem.clone()).or_default().insert(*entity);
            terms.entry(stem).or_default().in_capabilities.push((at, weight));
        }
    }
    for (stem, holders) in holders {
        terms.entry(stem).or_default().entities = holders.len();
    }
    terms
}

/// What the best place of a stem gives, and a share of the others: standing in many places makes no name of a word.
#[derive(Default)]
struct Weights(HashMap<String, f32>);

/// Of two places for one stem.
pub fn combine_weights(one: f32, other: f32) -> f32 {
    one.max(other) + REPEAT_FACTORS * one.min(other)
}

impl Weights {
    fn add<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>, weight: f32) {
        let found: BTreeSet<String> = texts.into_iter().flat_map(stems).collect();
        for stem in found {
            let known = self.0.entry(stem).or_default();
            *known = combine_weights(*known, weight);
        }
    }
}

fn entity_weights(entity: &Entity, api: &[String]) -> HashMap<String, f32> {
    let mut weights = Weights::default();
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

/// The stems of an entity's name and what each counts of it; written together it counts as one word.
fn name_parts(name: &str) -> Vec<(String, f32)> {
    let parts = parts(name);
    let Some((head, modifiers)) = parts.split_last().filter(|(_, modifiers)| !modifiers.is_empty()) else {
        return parts.into_iter().map(|only| (only, 1.0)).collect();
    };
    let together: String = name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let mut shares: Vec<(String, f32)> = stems(&together).into_iter().map(|whole| (whole, 1.0)).collect();
    shares.push((head.clone(), HEAD));
    shares.extend(modifiers.iter().map(|stem| (stem.clone(), MODIFIER)));
    shares
}

/// What a select may be: a list of `kind` says which things an entity stands for.
fn choices(kind: &Type) -> Vec<&str> {
    match kind {
        Type::Select(values) | Type::MultiSelect(values) => values.iter().map(String::as_str).collect(),
        Type::Array(item) => choices(item),
        _ => Vec::new(),
    }
}

fn capability_weights(capability: &Capability) -> HashMap<String, f32> {
    // The entity's name is in the name of each of its capabilities and says nothing more there.
    let own: BTreeSet<String> = stems(&capability.entity).into_iter().collect();
    let mut weights = Weights::default();
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

/// What the catalog is called, for all of its entities.
fn api_words(catalog: &Catalog) -> Vec<String> {
    let ids = std::iter::once(&catalog.id).chain(&catalog.aliases).map(|id| id.as_str().to_owned());
    ids.chain([catalog.title.clone()]).collect()
}
