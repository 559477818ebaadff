//! How well each entity answers an intent, and in which order they are shown.
//! Invariant: BM25 over the words of an entity and of what may be done with it; ties go by API and entity, so the order is one.

use std::cell::RefCell;

use catalog::Catalog;

use super::catalog_index::{CatalogIndex, Term, both};
use super::query::{self, Asked, Word};
use super::{Allowed, Found, Hit, Index, Query};

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
const AGAIN: [f32; 3] = [1.0, 0.93, 0.8];
/// What is worth less than this of the best was not found.
const TAIL: f32 = 0.15;
/// Rows whose words count as answered.
const ANSWERING: usize = 5;

/// An entity: the position of its catalog among those asked, and its own.
type Place = (usize, usize);

pub fn discover(index: &Index, query: &Query, allowed: Allowed<'_>) -> Found {
    let asked_for = |c: &CatalogIndex| query.apis.is_empty() || query.apis.contains(&c.catalog.id);
    let catalogs: Vec<&CatalogIndex> = index.catalogs.iter().map(AsRef::as_ref).filter(|c| asked_for(c)).collect();
    let asked = query::read(&query.intent, &catalogs, &index.synonyms);
    let permits: Vec<Permits<'_>> = catalogs.iter().map(|c| Permits::new(c, allowed)).collect();
    let mut board = Board::new(&catalogs, &permits);
    for word in &asked.words {
        board.count(word);
    }
    let scores = board.scores(&asked);
    let order = fair(&catalogs, &asked, scores);
    let limit = query.limit.clamp(1, super::MAX_LIMIT);
    let hit = |((catalog, entity), score): &(Place, f32)| hit(catalogs[*catalog], *entity, *score);
    let named = catalogs.iter().zip(&asked.named.strength).filter(|(_, strength)| **strength >= 1.0);
    Found {
        rows: order.iter().take(limit).map(hit).collect(),
        omitted: order.len().saturating_sub(limit),
        answered: board.answered(&asked, &order),
        said: order.first().map_or(0.0, |(place, _)| board.said(&asked, *place)),
        named: named.map(|(c, _)| c.catalog.id.clone()).collect(),
    }
}

fn hit(index: &CatalogIndex, entity: usize, score: f32) -> Hit {
    let name = index.entities[entity].name.clone();
    let description = index.catalog.entity(&name).map(|e| e.about.split_whitespace().collect::<Vec<_>>().join(" "));
    Hit { api: index.catalog.id.clone(), entity: name, description: description.unwrap_or_default(), score }
}

/// What a caller may do, asked once for each capability that a word leads to.
struct Permits<'a> {
    index: &'a CatalogIndex,
    allowed: Allowed<'a>,
    known: RefCell<Vec<Option<bool>>>,
}

impl<'a> Permits<'a> {
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

/// The scores of all entities while words are counted.
struct Board<'a> {
    catalogs: &'a [&'a CatalogIndex],
    permits: &'a [Permits<'a>],
    /// By catalog and entity.
    sums: Vec<Vec<f32>>,
    /// For each word of the intent.
    counted: Vec<Counted>,
    entities: f32,
}

struct Counted {
    /// Where it was found, and how strongly it stands there, 0 to 1.
    hits: Vec<(Place, f32)>,
    /// What it tells.
    worth: f32,
}

impl<'a> Board<'a> {
    fn new(catalogs: &'a [&'a CatalogIndex], permits: &'a [Permits<'a>]) -> Self {
        let sums: Vec<Vec<f32>> = catalogs.iter().map(|c| vec![0.0; c.entities.len()]).collect();
        let entities = sums.iter().map(Vec::len).sum::<usize>() as f32;
        Self { catalogs, permits, sums, counted: Vec::new(), entities }
    }

    /// Adds the best that the word or one of those it stands for finds in each entity.
    fn count(&mut self, word: &Word) {
        let mut best: Vec<Vec<(f32, f32)>> = self.catalogs.iter().map(|_| Vec::new()).collect();
        let mut rarity = None;
        for (stem, counts) in &word.variants {
            let found: Vec<Option<&Term>> = self.catalogs.iter().map(|c| c.terms.get(stem)).collect();
            let with = found.iter().flatten().map(|term| term.entities).sum::<usize>();
            let worth = self.rarity(with);
            // What the word itself tells, or, where nothing here has it, what the best of those it stands for does.
            if with > 0 && rarity.is_none() {
                rarity = Some(worth);
            }
            for (at, term) in found.iter().enumerate().filter_map(|(at, term)| Some((at, (*term)?))) {
                let best = &mut best[at];
                best.resize(self.catalogs[at].entities.len(), (0.0, 0.0));
                for (entity, strength) in self.strengths(at, term) {
                    let strength = counts * strength;
                    if worth * strength > best[entity].0 {
                        best[entity] = (worth * strength, strength);
                    }
                }
            }
        }
        let mut hits = Vec::new();
        for (at, best) in best.iter().enumerate() {
            for (entity, (found, strength)) in best.iter().enumerate().filter(|(_, (found, _))| *found > 0.0) {
                self.sums[at][entity] += word.weight * found;
                hits.push(((at, entity), *strength));
            }
        }
        self.counted.push(Counted { hits, worth: word.weight * rarity.unwrap_or_else(|| self.rarity(0)) });
    }

    /// How strongly a stem stands in each entity of a catalog, 0 to 1.
    fn strengths(&self, catalog: usize, term: &Term) -> Vec<(usize, f32)> {
        let index = self.catalogs[catalog];
        let mut weights: Vec<(usize, f32)> = term.own.clone();
        let mut done: Vec<(usize, f32)> = Vec::new();
        for (capability, weight) in term.done.iter().filter(|(c, _)| self.permits[catalog].permits(*c)) {
            let (_, entity) = index.capabilities[*capability];
            // Of an entity's capabilities the one that says it best, so that many of them do not outweigh one.
            match done.last_mut().filter(|(last, _)| *last == entity) {
                Some((_, most)) => *most = most.max(*weight),
                None => done.push((entity, *weight)),
            }
        }
        for (entity, weight) in done {
            match weights.iter_mut().find(|(own, _)| *own == entity) {
                Some((_, own)) => *own = both(*own, weight),
                None => weights.push((entity, weight)),
            }
        }
        weights.into_iter().map(|(entity, weight)| (entity, weight / (weight + SATURATION))).collect()
    }

    /// BM25's: a word of few entities tells more.
    fn rarity(&self, with: usize) -> f32 {
        let with = with as f32;
        (1.0 + (self.entities - with + 0.5).max(0.0) / (with + 0.5)).ln()
    }

    /// With the names of APIs and what stands beside a strong hit, of what may be seen.
    fn scores(&self, asked: &Asked) -> Vec<(Place, f32)> {
        let any_named = asked.named.strength.iter().any(|strength| *strength > 0.0);
        let mut scores = Vec::new();
        for (at, index) in self.catalogs.iter().enumerate() {
            let strength = asked.named.strength[at];
            let sums = &self.sums[at];
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
                let seen = entry.beside.iter().filter(|other| visible[**other]);
                let beside = seen.map(|other| sums[*other]).fold(0.0, f32::max);
                let score = (sums[entity] + BESIDE * beside) * factor + NAMED_ALONE * strength;
                if score > 0.0 {
                    scores.push(((at, entity), score));
                }
            }
        }
        scores
    }

    /// What share of the intent the first rows answer together.
    fn answered(&self, asked: &Asked, order: &[(Place, f32)]) -> f32 {
        let rows: Vec<Place> = order.iter().take(ANSWERING).map(|(place, _)| *place).collect();
        let (mut found, mut all) = (0.0, 0.0);
        for (counted, word) in self.counted.iter().zip(&asked.words) {
            let hits = counted.hits.iter().filter(|(place, _)| rows.contains(place));
            let best = hits.map(|(_, strength)| *strength).fold(0.0, f32::max);
            found += counted.worth * best;
            // A number or a name that nothing here has is no sign that there is nothing here.
            if !word.value || best > 0.0 {
                all += counted.worth;
            }
        }
        if all > 0.0 { found / all } else { 0.0 }
    }

    /// How strongly the intent's words stand in one entity, added up; the names of APIs do not count.
    fn said(&self, asked: &Asked, place: Place) -> f32 {
        let strength = |counted: &Counted| counted.hits.iter().find(|(at, _)| *at == place).map_or(0.0, |(_, s)| *s);
        let words = self.counted.iter().zip(&asked.words).filter(|(_, word)| !word.api);
        words.map(|(counted, word)| word.weight * strength(counted)).sum()
    }
}

/// The best first, each further row of an API counting less, so that one API does not fill the answer.
fn fair(catalogs: &[&CatalogIndex], asked: &Asked, mut scores: Vec<(Place, f32)>) -> Vec<(Place, f32)> {
    let again = match asked.named.strength.iter().filter(|strength| **strength >= 1.0).count() {
        1 => AGAIN[0],
        0 => AGAIN[1],
        _ => AGAIN[2],
    };
    let by_score = |a: &(Place, f32), b: &(Place, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
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
