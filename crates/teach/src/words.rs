//! Words as discovery and exposure compare them, and how much of an intent a capability answers.
//! Invariant: a pure function of its text; a text that has been split and stemmed once compares by equality of stems.

use std::collections::BTreeSet;

use catalog::{Capability, Catalog, Kind};
use rust_stemmers::{Algorithm, Stemmer};
// why: words of catalogs that were read and limited before.
use rustc_hash::FxHashMap;

/// From this on the intent speaks of the capability. One word that few capabilities of the catalog have is enough; a word of
/// a description that every second one has is not.
pub const RELEVANT: f32 = 0.35;

/// What a word of the intent is worth that stands in the capability's name or among its `words`.
const NAME: f32 = 0.9;
/// In what its kind says by itself: a `create` adds.
const KIND: f32 = 0.7;
/// In its description.
const ABOUT: f32 = 0.6;

/// Free text of a model, as stems.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Intent {
    stems: Vec<String>,
    /// Those where an English sentence has an imperative: `comment on…`, `… and refund it`.
    verbs: BTreeSet<String>,
}

impl Intent {
    pub fn new(text: &str) -> Self {
        let mut intent = Self::default();
        let mut seen = BTreeSet::new();
        for clause in text.split(['.', ',', ';', ':', '!', '?', '\n']) {
            let mut imperative = true;
            for word in clause.split_whitespace() {
                let lower = word.to_lowercase();
                let stems = stems(word);
                if imperative && let [only] = stems.as_slice() {
                    intent.verbs.insert(only.clone());
                }
                imperative = matches!(lower.as_str(), "and" | "then" | "to" | "please" | "or" | "also");
                intent.stems.extend(stems.into_iter().filter(|stem| seen.insert(stem.clone())));
            }
        }
        intent
    }

    /// Each once, in the order of the text.
    pub fn stems(&self) -> &[String] {
        &self.stems
    }

    pub fn is_empty(&self) -> bool {
        self.stems.is_empty()
    }
}

/// How much the intent speaks of this capability, 0 to 1: words of its name, its description and its synonyms, those that few
/// capabilities of the catalog have counting more. The entity's own name does not count, unless the intent uses it as a verb
/// of what creates one (`comment on…`). A capability enters a wave from [`RELEVANT`] (0.35) on.
///
/// For several capabilities of one catalog make its [`Vocabulary`] once.
pub fn relevance(catalog: &Catalog, capability: &Capability, intent: &Intent) -> f32 {
    Vocabulary::of(catalog).relevance(capability, intent)
}

/// The words of a catalog's capabilities, counted.
#[derive(Debug, Default)]
pub struct Vocabulary<'c> {
    stems: Stems<'c>,
    /// In how many capabilities a stem stands, by its number.
    counts: Vec<usize>,
    capabilities: usize,
    /// By the capability's name: each of its stems and what a hit on it is worth, before rarity.
    words: FxHashMap<&'c str, Vec<(usize, f32)>>,
}

/// Stems with a number each. A word that stands in a thousand descriptions is stemmed once.
#[derive(Debug, Default)]
struct Stems<'c> {
    numbers: FxHashMap<String, usize>,
    /// The stems of a word as it is written.
    known: FxHashMap<&'c str, Vec<usize>>,
}

impl<'c> Stems<'c> {
    fn each(&mut self, text: &'c str, mut visit: impl FnMut(usize)) {
        for word in written(text) {
            let Self { numbers, known } = self;
            let found = known.entry(word).or_insert_with(|| {
                let mut number = |stem: String| {
                    let next = numbers.len();
                    *numbers.entry(stem).or_insert(next)
                };
                stems(word).into_iter().map(&mut number).collect()
            });
            found.iter().for_each(|stem| visit(*stem));
        }
    }
}

impl<'c> Vocabulary<'c> {
    pub fn of(catalog: &'c Catalog) -> Self {
        let mut vocabulary = Self { capabilities: catalog.capabilities.len(), ..Self::default() };
        let mut own = Vec::new();
        for capability in catalog.capabilities.values() {
            own.clear();
            vocabulary.stems.each(&capability.entity, |stem| own.push(stem));
            let words = vocabulary.weighted(capability, &own);
            // The entity's own name is no reason to choose one of its capabilities, and makes the word common for others.
            own.sort_unstable();
            own.dedup();
            vocabulary.counts.resize(vocabulary.stems.numbers.len(), 0);
            for stem in words.iter().map(|(stem, _)| stem).chain(&own) {
                vocabulary.counts[*stem] += 1;
            }
            vocabulary.words.insert(&capability.name, words);
        }
        vocabulary
    }

    /// Each stem once, and none of the entity's own.
    fn weighted(&mut self, capability: &'c Capability, own: &[usize]) -> Vec<(usize, f32)> {
        let mut words: Vec<(usize, f32)> = Vec::new();
        let mut add = |text: &'c str, weight: f32| {
            self.stems.each(text, |stem| match words.iter_mut().find(|(known, _)| *known == stem) {
                Some((_, best)) => *best = best.max(weight),
                None if own.contains(&stem) => {}
                None => words.push((stem, weight)),
            });
        };
        add(&capability.name, NAME);
        capability.words.iter().for_each(|word| add(word, NAME));
        add(&capability.about, ABOUT);
        kind_words(capability.kind).iter().for_each(|word| add(word, KIND));
        words
    }

    /// [`relevance`]
    pub fn relevance(&self, capability: &Capability, intent: &Intent) -> f32 {
        let Some(words) = self.words.get(capability.name.as_str()) else { return 0.0 };
        let mut missed = 1.0;
        for stem in intent.stems().iter().filter_map(|stem| self.stems.numbers.get(stem)) {
            if let Some((_, weight)) = words.iter().find(|(known, _)| known == stem) {
                missed *= 1.0 - weight * self.rarity(*stem);
            }
        }
        if capability.kind == Kind::Create {
            let name = stems(&capability.entity);
            if name.last().is_some_and(|noun| intent.verbs.contains(noun)) {
                missed *= 1.0 - KIND;
            }
        }
        1.0 - missed
    }

    /// 1 for a stem of one capability, falling to 0 for one that all of them have.
    fn rarity(&self, stem: usize) -> f32 {
        let (all, with) = (self.capabilities as f32, self.counts.get(stem).copied().unwrap_or(1) as f32);
        // One capability alone has nothing to be told apart from.
        if all <= 1.0 { 1.0 } else { 1.0 - (with.ln() / all.ln()).clamp(0.0, 1.0) }
    }
}

/// What a kind says by itself, in a capability that does not say it in its own words.
pub(crate) fn kind_words(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Create => &["create", "add", "new", "make"],
        Kind::Update => &["update", "change", "edit", "modify", "set"],
        Kind::Delete => &["delete", "remove"],
        _ => &[],
    }
}

/// The stems of a text in its order: split at everything that is no letter or digit and inside `camelCase`, which also stays
/// whole; words that only hold a sentence together are left out.
pub fn stems(text: &str) -> Vec<String> {
    split(text, true)
}

/// As [`stems`], without the wholes: `PullRequest` is two.
pub fn parts(name: &str) -> Vec<String> {
    split(name, false)
}

fn split(text: &str, wholes: bool) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut out = Vec::new();
    for word in written(text) {
        // Of `customer's` the first part.
        let word = word.split(['\'', '’']).next().unwrap_or(word);
        let parts = camel(word);
        if wholes && parts.len() > 1 {
            push(&stemmer, word, &mut out);
        }
        parts.into_iter().for_each(|part| push(&stemmer, part, &mut out));
    }
    out
}

/// The words of a text as they are written.
fn written(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’').filter(|word| !word.is_empty())
}

fn push(stemmer: &Stemmer, word: &str, out: &mut Vec<String>) {
    let word = word.to_lowercase();
    if word.is_empty() || FILLERS.binary_search(&word.as_str()).is_ok() {
        return;
    }
    out.push(stemmer.stem(&american(word)).into_owned());
}

/// `pullRequest` and `PullRequest` as two words, `HTTPRoute` as `HTTP` and `Route`.
fn camel(word: &str) -> Vec<&str> {
    let letters: Vec<(usize, char)> = word.char_indices().collect();
    let mut parts = Vec::new();
    let mut from = 0;
    for pair in 1..letters.len() {
        let ((_, before), (at, now)) = (letters[pair - 1], letters[pair]);
        let next_is_lower = letters.get(pair + 1).is_some_and(|(_, next)| next.is_lowercase());
        if now.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && next_is_lower)) {
            parts.push(&word[from..at]);
            from = at;
        }
    }
    parts.push(&word[from..]);
    parts
}

/// One spelling for both sides of the ocean, so that `organisation` and `organization` have one stem.
fn american(word: String) -> String {
    const ENDS: [(&str, &str); 9] = [
        ("isations", "izations"),
        ("isation", "ization"),
        ("ising", "izing"),
        ("ised", "ized"),
        ("ises", "izes"),
        ("ise", "ize"),
        ("ours", "ors"),
        ("our", "or"),
        ("elled", "eled"),
    ];
    // Short words are other words: `hour`, `four`, `raise`, `wise`.
    let end = ENDS.iter().find(|(british, _)| word.len() >= british.len() + 3 && word.ends_with(british));
    match end {
        Some((british, american)) => format!("{}{american}", &word[..word.len() - british.len()]),
        None => word,
    }
}

/// In the order of their letters.
const FILLERS: [&str; 129] = [
    "a", "about", "after", "again", "against", "all", "also", "am", "an", "and", "any", "are", "as", "at", "be",
    "because", "been", "before", "being", "between", "both", "but", "by", "can", "could", "did", "do", "does", "doing",
    "during", "each", "either", "else", "ever", "every", "for", "from", "had", "has", "have", "he", "her", "here",
    "him", "his", "how", "i", "if", "in", "into", "is", "it", "its", "just", "let", "like", "many", "may", "me",
    "might", "more", "most", "much", "must", "my", "need", "no", "nor", "not", "of", "on", "one", "ones", "only", "or",
    "other", "others", "our", "out", "over", "own", "per", "please", "s", "same", "she", "should", "since", "so",
    "some", "still", "such", "t", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this",
    "those", "to", "too", "until", "upon", "us", "very", "via", "want", "was", "we", "were", "what", "when", "where",
    "which", "while", "whose", "why", "will", "with", "within", "would", "yet", "you", "your",
];

#[cfg(test)]
// why: a failed expectation is the test's own failure.
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn of(catalog: &Catalog, name: &str, intent: &str) -> f32 {
        relevance(catalog, catalog.capability(name).unwrap(), &Intent::new(intent))
    }

    fn shipped(text: &str) -> Catalog {
        catalog::read("shipped.yaml", text).unwrap()
    }

    fn demo() -> Catalog {
        shipped(include_str!("../../../catalogs/demo.yaml"))
    }

    fn passing(catalog: &Catalog, entity: &str, intent: &str) -> Vec<String> {
        let vocabulary = Vocabulary::of(catalog);
        let intent = Intent::new(intent);
        let writes = catalog.capabilities.values().filter(|c| c.entity == entity && !c.kind.is_read());
        writes.filter(|c| vocabulary.relevance(c, &intent) >= RELEVANT).map(|c| c.name.clone()).collect()
    }

    #[test]
    fn words_are_split_stemmed_and_without_fillers() {
        assert_eq!(stems("the PullRequests of my repo"), ["pullrequest", "pull", "request", "repo"]);
        assert_eq!(stems("HTTPRoute"), ["httprout", "http", "rout"]);
        assert_eq!(stems("payment_intent_cancel"), ["payment", "intent", "cancel"]);
        assert_eq!(stems("organisation colours"), stems("organization colors"));
        assert_eq!(stems("the customer's orders"), ["custom", "order"]);
        assert_eq!(stems("four hours, raise"), ["four", "hour", "rais"]);
        assert_eq!(stems("  … "), Vec::<String>::new());
    }

    #[test]
    fn fillers_are_sorted() {
        assert!(FILLERS.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn an_intent_that_only_reads_passes_no_write() {
        let demo = demo();
        for intent in ["list the open tickets of project OPS", "how many tickets does each person own", "tickets"] {
            assert_eq!(passing(&demo, "Comment", intent), Vec::<String>::new(), "{intent}");
            assert!(!passing(&demo, "Ticket", intent).contains(&"ticket_delete".to_owned()), "{intent}");
        }
        assert_eq!(passing(&demo, "Ticket", "count the tickets per person"), Vec::<String>::new());
    }

    #[test]
    fn an_intent_passes_what_it_speaks_of() {
        let demo = demo();
        assert_eq!(passing(&demo, "Ticket", "resolve stale tickets with a note"), ["ticket_close"]);
        assert_eq!(passing(&demo, "Ticket", "remove spam tickets"), ["ticket_delete"]);
        assert!(passing(&demo, "Ticket", "file a bug about the login page").contains(&"ticket_open".to_owned()));
        assert!(passing(&demo, "Comment", "reply to the reporter").contains(&"comment_add".to_owned()));
        let stripe = shipped(include_str!("../../../catalogs/stripe.yaml"));
        assert_eq!(passing(&stripe, "Refund", "reimburse the buyer of the last order"), ["refund_create"]);
        assert!(passing(&stripe, "Subscription", "unsubscribe a customer").contains(&"subscription_cancel".to_owned()));
    }

    /// The entity's own name is in every sentence about it.
    #[test]
    fn the_entitys_own_name_does_not_count() {
        let demo = demo();
        assert_eq!(of(&demo, "ticket_close", "tickets, and every ticket"), 0.0);
        assert_eq!(of(&demo, "comment_add", "all comments by Ada"), 0.0);
        assert!(of(&demo, "comment_add", "find the ticket and comment on it") >= RELEVANT, "as a verb it does");
    }

    #[test]
    fn a_score_is_between_0_and_1_and_grows_with_the_intent() {
        let demo = demo();
        let everything: String = demo.capabilities.values().map(|c| format!("{} {} ", c.name, c.about)).collect();
        for capability in demo.capabilities.values() {
            let most = relevance(&demo, capability, &Intent::new(&everything));
            assert!((0.0..=1.0).contains(&most), "{}: {most}", capability.name);
            assert!(relevance(&demo, capability, &Intent::new(&capability.name)) <= most);
            assert_eq!(relevance(&demo, capability, &Intent::default()), 0.0);
        }
    }

    #[test]
    fn what_every_capability_says_tells_nothing() {
        let demo = demo();
        let vocabulary = Vocabulary::of(&demo);
        let rarity = |word: &str| vocabulary.rarity(vocabulary.stems.numbers[&stems(word)[0]]);
        assert!(rarity("resolve") > 0.9);
        assert!(rarity("ticket") < rarity("note"));
    }
}
