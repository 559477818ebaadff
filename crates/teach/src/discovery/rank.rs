//! How well each entity answers an intent, and in which order they are shown.
//! Invariant: BM25 over the words of an entity and of what may be done with it; ties go by API and entity, so the order is one.

use std::cell::RefCell;

use catalog::Catalog;

use super::catalog_index::{CatalogIndex, TermIndex, combine_weights};
use super::query::{self, IntentWords, Word};
use super::{Allowed, DiscoveryResult, Hit, Index, Query};

/// How soon more of the same word stops counting.
const SATURATION: f32 = 1.6;
/// A row of an API that the intent names counts so much more, and so much even without a word in common.
const NAMED: f32 = 1.5;
const NAMED_ALONE: f32 = 0.4;
/// A row of another API, where the intent names one.
const NOT_NAMED: f32 = 0.5;
/// What an entity gets of the best one beside it.
const BESIDE: f32 = 0.12;
/// Each further row of an API counts so much of the one before: with one API named, with none, with several.
const REPEAT_FACTORS: [f32; 3] = [1.0, 0.93, 0.8];
/// What is worth less than this of the best was not found.
const TAIL: f32 = 0.15;
/// Rows whose words count as answered.
const ANSWERING: usize = 5;

/// An entity: the position of its catalog among those asked, and its own.
type EntityPosition = (usize, usize);

pub fn discover(index: &Index, query: &Query, allowed: Allowed<'_>) -> DiscoveryResult {
    let asked_for = |c: &CatalogIndex| query.apis.is_empty() || query.apis.contains(&c.catalog.id);
    let catalogs: Vec<&CatalogIndex> = index.catalogs.iter().map(AsRef::as_ref).filter(|c| asked_for(c)).collect();
    let asked = query::parse(&query.intent, &catalogs, &index.synonyms);
    let permits: Vec<PermissionCache<'_>> = catalogs.iter().map(|c| PermissionCache::new(c, allowed)).collect();
    let mut board = Scoreboard::new(&catalogs, &permits);
    for word in &asked.words {
        board.count(word);
    }
    let scores = board.scores(&asked);
    let order = spread_over_apis(&catalogs, &asked, scores);
    let limit = query.limit.clamp(1, super::MAX_LIMIT);
    let hit = |((catalog, entity), score): &(EntityPosition, f32)| hit(catalogs[*catalog], *entity, *score);
    let named = catalogs.iter().zip(&asked.named.strength).filter(|(_, strength)| **strength >= 1.0);
    DiscoveryResult {
        rows: order.iter().take(limit).map(hit).collect(),
        omitted: order.len().saturating_sub(limit),
        answered_share: board.answered_share(&asked, &order),
        match_total: order.first().map_or(0.0, |(place, _)| board.match_total(&asked, *place)),
        named: named.map(|(c, _)| c.catalog.id.clone()).collect(),
    }
}

fn hit(index: &CatalogIndex, entity: usize, score: f32) -> Hit {
    let name = index.entities[entity].name.clone();
    let description = index.catalog.entity(&name).map(|e| e.about.split_whitespace().collect::<Vec<_>>().join(" "));
    Hit { api: index.catalog.id.clone(), entity: name, description: description.unwrap_or_default(), score }
}

/// What a caller may do, asked once for each capability that a word leads to.
struct PermissionCache<'a> {
    index: &'a CatalogIndex,
    allowed: Allowed<'a>,
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

/// The scores of all entities while words are counted. Entities of all catalogs stand in one row of numbers.
struct Scoreboard<'a> {
    catalogs: &'a [&'a CatalogIndex],
    permits: &'a [PermissionCache<'a>],
    /// Where each catalog's entities begin.
    from: Vec<usize>,
    sums: Vec<f32>,
    /// What the word being counted finds: with its rarity, and without.
    best: Vec<(f32, f32)>,
    /// What one of its variants weighs.
    weights: Vec<f32>,
    /// For each word of the intent.
    word_hits: Vec<WordHits>,
}

struct WordHits {
    /// Where it was found, and how strongly it stands there, 0 to 1.
    hits: Vec<(usize, f32)>,
    /// What it tells.
    worth: f32,
}

impl<'a> Scoreboard<'a> {
    fn new(catalogs: &'a [&'a CatalogIndex], permits: &'a [PermissionCache<'a>]) -> Self {
        let (mut from, mut entities) = (Vec::with_capacity(catalogs.len()), 0);
        for catalog in catalogs {
            from.push(entities);
            entities += catalog.entities.len();
        }
        let (sums, best, weights) = (vec![0.0; entities], vec![(0.0, 0.0); entities], vec![0.0; entities]);
        Self { catalogs, permits, from, sums, best, weights, word_hits: Vec::new() }
    }

    /// Adds the best that the word or one of those it stands for finds in each entity.
    fn count(&mut self, word: &Word) {
        let mut rarity = None;
        let mut touched: Vec<usize> = Vec::new();
        for (stem, counts) in &word.variants {
            let found: Vec<(usize, &TermIndex)> =
                self.catalogs.iter().enumerate().filter_map(|(at, c)| Some((at, c.terms.get(stem)?))).collect();
            if found.is_empty() {
                continue;
            }
            let worth = self.rarity(found.iter().map(|(_, term)| term.entities).sum());
            // What the word itself tells, or, where nothing here has it, what the first of those it stands for does.
            rarity.get_or_insert(worth);
            for (at, term) in found {
                for entity in self.weigh(at, term) {
                    let weight = std::mem::take(&mut self.weights[entity]);
                    let strength = counts * weight / (weight + SATURATION);
                    if self.best[entity].0 == 0.0 {
                        touched.push(entity);
                    }
                    if worth * strength > self.best[entity].0 {
                        self.best[entity] = (worth * strength, strength);
                    }
                }
            }
        }
        let hit = |entity: usize| {
            let (found, strength) = std::mem::take(&mut self.best[entity]);
            self.sums[entity] += word.weight * found;
            (entity, strength)
        };
        let hits = touched.into_iter().map(hit).collect();
        self.word_hits.push(WordHits { hits, worth: word.weight * rarity.unwrap_or_else(|| self.rarity(0)) });
    }

    /// Puts what a stem weighs in each entity of a catalog into `weights`, and says in which.
    fn weigh(&mut self, catalog: usize, term: &TermIndex) -> Vec<usize> {
        let (index, from) = (self.catalogs[catalog], self.from[catalog]);
        let mut touched = Vec::with_capacity(term.entities);
        // Of an entity's capabilities the one that says it best, so that many of them do not outweigh one.
        for (capability, weight) in term.in_capabilities.iter().filter(|(c, _)| self.permits[catalog].permits(*c)) {
            let entity = from + index.capabilities[*capability].1;
            if self.weights[entity] == 0.0 {
                touched.push(entity);
            }
            self.weights[entity] = self.weights[entity].max(*weight);
        }
        for (entity, weight) in &term.in_entity {
            let entity = from + entity;
            if self.weights[entity] == 0.0 {
                touched.push(entity);
            }
            self.weights[entity] = combine_weights(self.weights[entity], *weight);
        }
        touched
    }

    /// BM25's: a word of few entities tells more.
    fn rarity(&self, with: usize) -> f32 {
        let (all, with) = (self.sums.len() as f32, with as f32);
        (1.0 + (all - with + 0.5).max(0.0) / (with + 0.5)).ln()
    }

    /// With the names of APIs and what stands beside a strong hit, of what may be seen.
    fn scores(&self, asked: &IntentWords) -> Vec<(EntityPosition, f32)> {
        let any_named = asked.named.strength.iter().any(|strength| *strength > 0.0);
        let mut scores = Vec::new();
        for (at, index) in self.catalogs.iter().enumerate() {
            let strength = asked.named.strength[at];
            let sums = &self.sums[self.from[at]..self.from[at] + index.entities.len()];
            if strength == 0.0 && sums.iter().all(|sum| *sum == 0.0) {
                continue;
            }
            let factor = match (any_named, strength > 0.0) {
                (false, _) => 1.0,
                (true, true) => 1.0 + NAMED * strength,
                (true, false) => NOT_NAMED,
            };
            let visible = index.visible(|capability| self.permits[at].permits(capability));
            for (entity, entry) in index.entities.iter().enumerate().filter(|(entity, _)| visible[*entity]) {
                let seen = entry.neighbours.iter().filter(|other| visible[**other]);
                let neighbours = seen.map(|other| sums[*other]).fold(0.0, f32::max);
                let score = (sums[entity] + BESIDE * neighbours) * factor + NAMED_ALONE * strength;
                if score > 0.0 {
                    scores.push(((at, entity), score));
                }
            }
        }
        scores
    }

    /// What share of the intent the first rows answer together.
    fn answered_share(&self, asked: &IntentWords, order: &[(EntityPosition, f32)]) -> f32 {
        let rows: Vec<usize> = order.iter().take(ANSWERING).map(|((c, entity), _)| self.from[*c] + entity).collect();
        let (mut found, mut all) = (0.0, 0.0);
        for (word_hits, word) in self.word_hits.iter().zip(&asked.words) {
            let hits = word_hits.hits.iter().filter(|(entity, _)| rows.contains(entity));
            let best = hits.map(|(_, strength)| *strength).fold(0.0, f32::max);
            found += word_hits.worth * best;
            // A number or a name that nothing here has is no sign that there is nothing here.
            if !word.value || best > 0.0 {
                all += word_hits.worth;
            }
        }
        if all > 0.0 { found / all } else { 0.0 }
    }

    /// How strongly the intent's words stand in one entity, added up; the names of APIs do not count.
    fn match_total(&self, asked: &IntentWords, (catalog, entity): EntityPosition) -> f32 {
        let here = self.from[catalog] + entity;
        let strength =
            |word_hits: &WordHits| word_hits.hits.iter().find(|(at, _)| *at == here).map_or(0.0, |(_, s)| *s);
        let words = self.word_hits.iter().zip(&asked.words).filter(|(_, word)| !word.api);
        words.map(|(word_hits, word)| word.weight * strength(word_hits)).sum()
    }
}

/// The best first, each further row of an API counting less, so that one API does not fill the answer.
fn spread_over_apis(
    catalogs: &[&CatalogIndex],
    asked: &IntentWords,
    mut scores: Vec<(EntityPosition, f32)>,
) -> Vec<(EntityPosition, f32)> {
    let again = match asked.named.strength.iter().filter(|strength| **strength >= 1.0).count() {
        1 => REPEAT_FACTORS[0],
        0 => REPEAT_FACTORS[1],
        _ => REPEAT_FACTORS[2],
    };
    let by_score = |a: &(EntityPosition, f32), b: &(EntityPosition, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
    scores.sort_by(by_score);
    let mut rows = vec![0_i32; catalogs.len()];
    for ((catalog, _), score) in &mut scores {
        *score *= again.powi(rows[*catalog]);
        rows[*catalog] += 1;
    }
    scores.sort_by(by_score);
    let least = scores.first().map_or(0.0, |(_, best)| TAIL * best);
    scores.retain(|(_, score)| *score >= least);
    scores
}
