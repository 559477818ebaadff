//! The ranking of entities for an intent by score. The score is BM25, a standard formula of text search, over the words of an
//! entity and its allowed capabilities.
//! Invariant: entities with equal scores are ordered by API and entity name, so the order is always the same.

use std::cell::RefCell;

use catalog::Catalog;

use super::catalog_index::{CatalogIndex, TermIndex, combine_weights};
use super::query::{self, IntentWord, IntentWords};
use super::{Allowed, DiscoveryResult, Hit, Index, Query};

/// The parameter `k` of BM25. With a smaller value, a larger weight of one word adds less to the score.
const BM25_K: f32 = 1.6;
/// The factor for the score of an entity if the intent names its API.
const NAMED_API_FACTOR: f32 = 1.5;
/// The score of an entity if the intent matches only the name of its API.
const API_NAME_ONLY_SCORE: f32 = 0.4;
/// The factor for the score of an entity if the intent names only other APIs.
const OTHER_API_FACTOR: f32 = 0.5;
/// The share of its best neighbour's score that is added to an entity's score. Neighbours are entities connected by a relation.
const NEIGHBOUR_SHARE: f32 = 0.12;
/// The factor for each further row of the same API, so that one API does not fill the result. It depends on whether the intent
/// names one API, no API or several APIs.
const NEXT_ROW_ONE_NAMED: f32 = 1.0;
const NEXT_ROW_NONE_NAMED: f32 = 0.93;
const NEXT_ROW_SEVERAL_NAMED: f32 = 0.8;
/// The minimum score of a hit, as a share of the best score.
const MIN_HIT_SHARE: f32 = 0.15;
/// The number of first rows that count for the answered share.
const ROWS_FOR_ANSWERED_SHARE: usize = 5;

/// The position of an entity: the position of its catalog among the searched catalogs, and the entity's position in the
/// catalog.
type EntityPosition = (usize, usize);

pub fn discover(index: &Index, query: &Query, allowed: Allowed<'_>) -> DiscoveryResult {
    let is_searched = |c: &CatalogIndex| query.apis.is_empty() || query.apis.contains(&c.catalog.id);
    let catalogs: Vec<&CatalogIndex> = index.catalogs.iter().map(AsRef::as_ref).filter(|c| is_searched(c)).collect();
    let intent = query::parse(&query.intent, &catalogs, &index.synonyms);
    let permissions: Vec<PermissionCache<'_>> = catalogs.iter().map(|c| PermissionCache::new(c, allowed)).collect();
    let mut scoreboard = Scoreboard::new(&catalogs, &permissions);
    for word in &intent.words {
        scoreboard.count(word);
    }
    let order = spread_over_apis(&catalogs, &intent, scoreboard.scores(&intent));
    let limit = query.limit.clamp(1, super::MAX_LIMIT);
    let named_apis = catalogs.iter().zip(&intent.named_apis.strength).filter(|(_, strength)| **strength >= 1.0);
    DiscoveryResult {
        rows: order.iter().take(limit).map(|((c, entity), score)| hit(catalogs[*c], *entity, *score)).collect(),
        omitted: order.len().saturating_sub(limit),
        answered_share: scoreboard.answered_share(&intent, &order),
        match_total: order.first().map_or(0.0, |(best, _)| scoreboard.match_total(&intent, *best)),
        named_apis: named_apis.map(|(c, _)| c.catalog.id.clone()).collect(),
    }
}

fn hit(index: &CatalogIndex, entity: usize, score: f32) -> Hit {
    let name = index.entities[entity].name.clone();
    let description = index.catalog.entity(&name).map(|e| e.about.split_whitespace().collect::<Vec<_>>().join(" "));
    Hit { api: index.catalog.id.clone(), entity: name, description: description.unwrap_or_default(), score }
}

/// The cached results of `allowed` for one catalog. `allowed` compares patterns, and a word may match thousands of
/// capabilities, so each capability is tested at most once.
struct PermissionCache<'a> {
    index: &'a CatalogIndex,
    allowed: Allowed<'a>,
    /// The result for each capability, by position; `None` until it is needed.
    known: RefCell<Vec<Option<bool>>>,
}

impl<'a> PermissionCache<'a> {
    fn new(index: &'a CatalogIndex, allowed: Allowed<'a>) -> Self {
        Self { index, allowed, known: RefCell::new(vec![None; index.capabilities.len()]) }
    }

    fn permits(&self, capability: usize) -> bool {
        let mut known = self.known.borrow_mut();
        *known[capability].get_or_insert_with(|| {
            let catalog: &Catalog = &self.index.catalog;
            let (name, _) = &self.index.capabilities[capability];
            catalog.capability(name).is_some_and(|c| (self.allowed)(catalog, c))
        })
    }
}

/// The scores of all entities while the words of an intent are added. The entities of all catalogs share one numbering, so that
/// each value is a plain array.
struct Scoreboard<'a> {
    catalogs: &'a [&'a CatalogIndex],
    permissions: &'a [PermissionCache<'a>],
    /// The number of the first entity of each catalog.
    first_entity: Vec<usize>,
    /// The score of each entity over the words added so far.
    sums: Vec<f32>,
    /// The best match of the current word in each entity: the score with the word's rarity, and the strength without it. All
    /// values are zero between words.
    best: Vec<(f32, f32)>,
    /// The weight of the current variant in each entity. All values are zero between variants.
    weights: Vec<f32>,
    /// The matches of each word of the intent.
    word_hits: Vec<WordHits>,
}

/// The entities that match one word of the intent.
struct WordHits {
    /// Pairs of entity number and strength of the match, 0 to 1.
    hits: Vec<(usize, f32)>,
    /// The weight of the word. A rare word has a larger weight.
    worth: f32,
}

impl<'a> Scoreboard<'a> {
    fn new(catalogs: &'a [&'a CatalogIndex], permissions: &'a [PermissionCache<'a>]) -> Self {
        let mut first_entity = Vec::with_capacity(catalogs.len());
        let mut entities = 0;
        for catalog in catalogs {
            first_entity.push(entities);
            entities += catalog.entities.len();
        }
        Self {
            catalogs,
            permissions,
            first_entity,
            sums: vec![0.0; entities],
            best: vec![(0.0, 0.0); entities],
            weights: vec![0.0; entities],
            word_hits: Vec::new(),
        }
    }

    /// Adds a word to the scores. Each entity gets the best match among the word and its synonyms.
    fn count(&mut self, word: &IntentWord) {
        // The rarity is that of the word itself, or of its first synonym if no catalog contains the word.
        let mut word_rarity = None;
        let mut touched: Vec<usize> = Vec::new();
        for (stem, factor) in &word.variants {
            let terms: Vec<(usize, &TermIndex)> = self
                .catalogs
                .iter()
                .enumerate()
                .filter_map(|(catalog, index)| Some((catalog, index.terms.get(stem)?)))
                .collect();
            if terms.is_empty() {
                continue;
            }
            let rarity = self.rarity(terms.iter().map(|(_, term)| term.entities).sum());
            word_rarity.get_or_insert(rarity);
            for (catalog, term) in terms {
                for entity in self.weigh(catalog, term) {
                    let weight = std::mem::take(&mut self.weights[entity]);
                    let strength = factor * weight / (weight + BM25_K);
                    if self.best[entity].0 == 0.0 {
                        touched.push(entity);
                    }
                    if rarity * strength > self.best[entity].0 {
                        self.best[entity] = (rarity * strength, strength);
                    }
                }
            }
        }
        let mut hits = Vec::with_capacity(touched.len());
        for entity in touched {
            let (score, strength) = std::mem::take(&mut self.best[entity]);
            self.sums[entity] += word.weight * score;
            hits.push((entity, strength));
        }
        let rarity = word_rarity.unwrap_or_else(|| self.rarity(0));
        self.word_hits.push(WordHits { hits, worth: word.weight * rarity });
    }

    /// Stores the weights of a stem for the entities of one catalog in `weights`. Returns the numbers of these entities.
    fn weigh(&mut self, catalog: usize, term: &TermIndex) -> Vec<usize> {
        let index = self.catalogs[catalog];
        let first = self.first_entity[catalog];
        let mut touched = Vec::with_capacity(term.entities);
        // Only the best capability of an entity counts, so that an entity does not win because it has many capabilities.
        let permissions = &self.permissions[catalog];
        for (capability, weight) in term.in_capabilities.iter().filter(|(c, _)| permissions.permits(*c)) {
            let entity = first + index.capabilities[*capability].1;
            if self.weights[entity] == 0.0 {
                touched.push(entity);
            }
            self.weights[entity] = self.weights[entity].max(*weight);
        }
        for (entity, weight) in &term.in_entity {
            let entity = first + entity;
            if self.weights[entity] == 0.0 {
                touched.push(entity);
            }
            self.weights[entity] = combine_weights(self.weights[entity], *weight);
        }
        touched
    }

    /// Returns BM25's inverse document frequency of a word that `with_word` entities contain. It is larger for rarer words.
    fn rarity(&self, with_word: usize) -> f32 {
        let all = self.sums.len() as f32;
        let with_word = with_word as f32;
        (1.0 + (all - with_word + 0.5).max(0.0) / (with_word + 0.5)).ln()
    }

    /// Returns the final scores of the visible entities, including the effects of API names and neighbours.
    fn scores(&self, intent: &IntentWords) -> Vec<(EntityPosition, f32)> {
        let any_named = intent.named_apis.strength.iter().any(|strength| *strength > 0.0);
        let mut scores = Vec::new();
        for (catalog, index) in self.catalogs.iter().enumerate() {
            let strength = intent.named_apis.strength[catalog];
            let first = self.first_entity[catalog];
            let sums = &self.sums[first..first + index.entities.len()];
            if strength == 0.0 && sums.iter().all(|sum| *sum == 0.0) {
                continue;
            }
            let factor = match (any_named, strength > 0.0) {
                (false, _) => 1.0,
                (true, true) => 1.0 + NAMED_API_FACTOR * strength,
                (true, false) => OTHER_API_FACTOR,
            };
            let visible = index.visible(|capability| self.permissions[catalog].permits(capability));
            for (entity, entry) in index.entities.iter().enumerate().filter(|(entity, _)| visible[*entity]) {
                let neighbours = entry.neighbours.iter().filter(|neighbour| visible[**neighbour]);
                let best_neighbour = neighbours.map(|neighbour| sums[*neighbour]).fold(0.0, f32::max);
                let score = (sums[entity] + NEIGHBOUR_SHARE * best_neighbour) * factor + API_NAME_ONLY_SCORE * strength;
                if score > 0.0 {
                    scores.push(((catalog, entity), score));
                }
            }
        }
        scores
    }

    /// Returns the weighted share of the intent's words that the first rows match together.
    fn answered_share(&self, intent: &IntentWords, order: &[(EntityPosition, f32)]) -> f32 {
        let rows: Vec<usize> = order
            .iter()
            .take(ROWS_FOR_ANSWERED_SHARE)
            .map(|((catalog, entity), _)| self.first_entity[*catalog] + entity)
            .collect();
        let mut answered = 0.0;
        let mut all = 0.0;
        for (word_hits, word) in self.word_hits.iter().zip(&intent.words) {
            let hits = word_hits.hits.iter().filter(|(entity, _)| rows.contains(entity));
            let best = hits.map(|(_, strength)| *strength).fold(0.0, f32::max);
            answered += word_hits.worth * best;
            // Unmatched values are ignored, because values occur in the rows of an API and not in catalogs.
            if !word.is_value || best > 0.0 {
                all += word_hits.worth;
            }
        }
        if all > 0.0 { answered / all } else { 0.0 }
    }

    /// Returns the sum of the match strengths of the intent's words in one entity, without names of APIs.
    fn match_total(&self, intent: &IntentWords, (catalog, entity): EntityPosition) -> f32 {
        let number = self.first_entity[catalog] + entity;
        let strength = |word_hits: &WordHits| {
            word_hits.hits.iter().find(|(entity, _)| *entity == number).map_or(0.0, |(_, strength)| *strength)
        };
        let words = self.word_hits.iter().zip(&intent.words).filter(|(_, word)| !word.names_api);
        words.map(|(word_hits, word)| word.weight * strength(word_hits)).sum()
    }
}

/// Sorts the entities by score and lowers each further row of the same API, so that one API does not fill the result.
fn spread_over_apis(
    catalogs: &[&CatalogIndex],
    intent: &IntentWords,
    mut scores: Vec<(EntityPosition, f32)>,
) -> Vec<(EntityPosition, f32)> {
    let next_row_factor = match intent.named_apis.strength.iter().filter(|strength| **strength >= 1.0).count() {
        0 => NEXT_ROW_NONE_NAMED,
        1 => NEXT_ROW_ONE_NAMED,
        _ => NEXT_ROW_SEVERAL_NAMED,
    };
    let by_score = |a: &(EntityPosition, f32), b: &(EntityPosition, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    scores.sort_by(by_score);
    let mut rows = vec![0_i32; catalogs.len()];
    for ((catalog, _), score) in &mut scores {
        *score *= next_row_factor.powi(rows[*catalog]);
        rows[*catalog] += 1;
    }
    scores.sort_by(by_score);
    let least = scores.first().map_or(0.0, |(_, best)| MIN_HIT_SHARE * best);
    scores.retain(|(_, score)| *score >= least);
    scores
}
