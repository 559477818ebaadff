//! The relevance of a capability to an intent, computed from the words that both contain.
//! Invariant: the relevance depends only on the catalog and the intent, and is between 0 and 1.

use std::collections::BTreeSet;

use catalog::{Capability, Catalog, Kind};
// why: its keys are words of catalogs, which were read and limited before; FxHash is faster and does not resist chosen keys.
use rustc_hash::FxHashMap;

use crate::words::{kind_words, stems, written_words};

/// The minimum relevance at which an intent is taken to mention a capability. One rare word of the capability is enough; a
/// common word of a description is not.
pub const MIN_RELEVANCE: f32 = 0.35;

/// The weight of a match with the capability's name or its `words`.
const NAME_WEIGHT: f32 = 0.9;
/// The weight of a match with a word that the capability's kind implies, such as `add` for `create`.
const KIND_WEIGHT: f32 = 0.7;
/// The weight of a match with the capability's description.
const ABOUT_WEIGHT: f32 = 0.6;

/// The stems of a session's intent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Intent {
    /// The different stems in the order of the text.
    stems: Vec<String>,
    /// The stems at positions where an English sentence has an imperative: `comment on…`, `… and refund it`.
    verbs: BTreeSet<String>,
}

impl Intent {
    pub fn new(text: &str) -> Self {
        let mut intent = Self::default();
        let mut known = BTreeSet::new();
        for clause in text.split(['.', ',', ';', ':', '!', '?', '\n']) {
            let mut is_imperative = true;
            for word in clause.split_whitespace() {
                let lower = word.to_lowercase();
                let stems = stems(word);
                if is_imperative && let [only] = stems.as_slice() {
                    intent.verbs.insert(only.clone());
                }
                is_imperative = matches!(lower.as_str(), "and" | "then" | "to" | "please" | "or" | "also");
                intent.stems.extend(stems.into_iter().filter(|stem| known.insert(stem.clone())));
            }
        }
        intent
    }
}

/// The stems of a catalog's capabilities with their counts. One vocabulary serves all capabilities of the catalog.
#[derive(Debug, Default)]
pub struct Vocabulary<'c> {
    stems: StemNumbers<'c>,
    /// The number of capabilities that contain a stem, by stem number.
    counts: Vec<usize>,
    /// The number of all capabilities. `counts` divided by it is the frequency of a stem.
    capabilities: usize,
    /// The stem numbers of each capability with their weights, by capability name. The weights do not include the rarity.
    words: FxHashMap<&'c str, Vec<(usize, f32)>>,
}

impl<'c> Vocabulary<'c> {
    pub fn of(catalog: &'c Catalog) -> Self {
        let mut vocabulary = Self { capabilities: catalog.capabilities.len(), ..Self::default() };
        let mut entity_stems = Vec::new();
        for capability in catalog.capabilities.values() {
            entity_stems.clear();
            vocabulary.stems.visit(&capability.entity, |stem| entity_stems.push(stem));
            let words = vocabulary.weighted_stems(capability, &entity_stems);
            // The stems of the entity's name are not evidence for one of its capabilities, but they are counted, so that they
            // are common words for other capabilities.
            entity_stems.sort_unstable();
            entity_stems.dedup();
            vocabulary.counts.resize(vocabulary.stems.numbers.len(), 0);
            for stem in words.iter().map(|(stem, _)| stem).chain(&entity_stems) {
                vocabulary.counts[*stem] += 1;
            }
            vocabulary.words.insert(&capability.name, words);
        }
        vocabulary
    }

    /// Returns the relevance of a capability to the intent, 0 to 1. Matches with the name, the description and the synonyms
    /// count, rare words more than common ones. The entity's name counts only if the intent uses it as the verb of the
    /// capability that creates a row (`comment on…`).
    pub fn relevance(&self, capability: &Capability, intent: &Intent) -> f32 {
        let Some(words) = self.words.get(capability.name.as_str()) else { return 0.0 };
        // The matches are combined like independent probabilities, so that the relevance grows with each match and never
        // exceeds 1.
        let mut missed = 1.0;
        for stem in intent.stems.iter().filter_map(|stem| self.stems.numbers.get(stem)) {
            if let Some((_, weight)) = words.iter().find(|(known, _)| known == stem) {
                missed *= 1.0 - weight * self.rarity(*stem);
            }
        }
        if capability.kind == Kind::Create {
            let name = stems(&capability.entity);
            if name.last().is_some_and(|noun| intent.verbs.contains(noun)) {
                missed *= 1.0 - KIND_WEIGHT;
            }
        }
        1.0 - missed
    }

    /// Returns the different stems of a capability with their weights, without the stems of the entity's name.
    fn weighted_stems(&mut self, capability: &'c Capability, entity_stems: &[usize]) -> Vec<(usize, f32)> {
        let mut words: Vec<(usize, f32)> = Vec::new();
        let mut add = |text: &'c str, weight: f32| {
            self.stems.visit(text, |stem| match words.iter_mut().find(|(known, _)| *known == stem) {
                Some((_, best)) => *best = best.max(weight),
                None if entity_stems.contains(&stem) => {}
                None => words.push((stem, weight)),
            });
        };
        add(&capability.name, NAME_WEIGHT);
        capability.words.iter().for_each(|word| add(word, NAME_WEIGHT));
        add(&capability.about, ABOUT_WEIGHT);
        kind_words(capability.kind).iter().for_each(|word| add(word, KIND_WEIGHT));
        words
    }

    /// Returns the rarity of a stem: 1 if one capability contains it, falling to 0 if all capabilities contain it.
    fn rarity(&self, stem: usize) -> f32 {
        let all = self.capabilities as f32;
        let with_stem = self.counts.get(stem).copied().unwrap_or(1) as f32;
        // With a single capability, the formula would divide by the logarithm of 1, which is 0.
        if all <= 1.0 { 1.0 } else { 1.0 - (with_stem.ln() / all.ln()).clamp(0.0, 1.0) }
    }
}

/// The numbering of stems. Stemming is slow, so each different word is stemmed only once.
#[derive(Debug, Default)]
struct StemNumbers<'c> {
    /// The number of each stem.
    numbers: FxHashMap<String, usize>,
    /// The stem numbers of each word, by the word as written.
    known: FxHashMap<&'c str, Vec<usize>>,
}

impl<'c> StemNumbers<'c> {
    /// Calls `visit` with the number of each stem of the text, in order. A new stem gets the next number.
    fn visit(&mut self, text: &'c str, mut visit: impl FnMut(usize)) {
        for word in written_words(text) {
            let Self { numbers, known } = self;
            let stem_numbers = known.entry(word).or_insert_with(|| {
                let mut number = |stem: String| {
                    let next = numbers.len();
                    *numbers.entry(stem).or_insert(next)
                };
                stems(word).into_iter().map(&mut number).collect()
            });
            stem_numbers.iter().for_each(|stem| visit(*stem));
        }
    }
}

#[cfg(test)]
// A panic in a shared test function fails the test that calls it, so these lints are allowed.
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn relevance_of(catalog: &Catalog, name: &str, intent: &str) -> f32 {
        Vocabulary::of(catalog).relevance(catalog.capability(name).unwrap(), &Intent::new(intent))
    }

    fn read_catalog(text: &str) -> Catalog {
        catalog::read("shipped.yaml", text).unwrap()
    }

    fn demo() -> Catalog {
        read_catalog(include_str!("../../../catalogs/demo.yaml"))
    }

    fn relevant_writes(catalog: &Catalog, entity: &str, intent: &str) -> Vec<String> {
        let vocabulary = Vocabulary::of(catalog);
        let intent = Intent::new(intent);
        let writes = catalog.capabilities.values().filter(|c| c.entity == entity && !c.kind.is_read());
        writes.filter(|c| vocabulary.relevance(c, &intent) >= MIN_RELEVANCE).map(|c| c.name.clone()).collect()
    }

    #[test]
    fn no_write_is_relevant_to_an_intent_that_only_reads() {
        let demo = demo();
        for intent in ["list the open tickets of project OPS", "how many tickets does each person own", "tickets"] {
            assert_eq!(relevant_writes(&demo, "Comment", intent), Vec::<String>::new(), "{intent}");
            assert!(!relevant_writes(&demo, "Ticket", intent).contains(&"ticket_delete".to_owned()), "{intent}");
        }
        assert_eq!(relevant_writes(&demo, "Ticket", "count the tickets per person"), Vec::<String>::new());
    }

    #[test]
    fn the_write_that_an_intent_mentions_is_relevant() {
        let demo = demo();
        assert_eq!(relevant_writes(&demo, "Ticket", "resolve stale tickets with a note"), ["ticket_close"]);
        assert_eq!(relevant_writes(&demo, "Ticket", "remove spam tickets"), ["ticket_delete"]);
        assert!(
            relevant_writes(&demo, "Ticket", "file a bug about the login page").contains(&"ticket_open".to_owned())
        );
        assert!(relevant_writes(&demo, "Comment", "reply to the reporter").contains(&"comment_add".to_owned()));
        let stripe = read_catalog(include_str!("../../../catalogs/stripe.yaml"));
        assert_eq!(relevant_writes(&stripe, "Refund", "reimburse the buyer of the last order"), ["refund_create"]);
        let cancels = relevant_writes(&stripe, "Subscription", "unsubscribe a customer");
        assert!(cancels.contains(&"subscription_cancel".to_owned()));
    }

    #[test]
    fn the_name_of_the_entity_counts_only_as_a_verb() {
        let demo = demo();
        assert_eq!(relevance_of(&demo, "ticket_close", "tickets, and every ticket"), 0.0);
        assert_eq!(relevance_of(&demo, "comment_add", "all comments by Ada"), 0.0);
        assert!(relevance_of(&demo, "comment_add", "find the ticket and comment on it") >= MIN_RELEVANCE);
    }

    #[test]
    fn relevance_is_between_0_and_1_and_grows_with_the_intent() {
        let demo = demo();
        let everything: String = demo.capabilities.values().map(|c| format!("{} {} ", c.name, c.about)).collect();
        for capability in demo.capabilities.values() {
            let name = capability.name.as_str();
            let most = relevance_of(&demo, name, &everything);
            assert!((0.0..=1.0).contains(&most), "{name}: {most}");
            assert!(relevance_of(&demo, name, name) <= most);
            assert_eq!(relevance_of(&demo, name, ""), 0.0);
        }
    }

    #[test]
    fn a_word_of_many_capabilities_has_little_weight() {
        let demo = demo();
        let vocabulary = Vocabulary::of(&demo);
        let rarity = |word: &str| vocabulary.rarity(vocabulary.stems.numbers[&stems(word)[0]]);
        assert!(rarity("resolve") > 0.9);
        assert!(rarity("ticket") < rarity("note"));
    }
}
