//! An intent as weighted words, each with the synonyms that it may stand for.
//! Invariant: a word of the intent counts more than its synonyms. A word that names an API has no synonyms.

use super::api_names::{self, NamedApis};
use super::catalog_index::CatalogIndex;
use super::synonyms::Synonyms;
use crate::words::stems;

/// The factor of a hit on a synonym.
const SYNONYM: f32 = 0.5;
/// Words for reading and for what can be read. Nearly every intent has such a word, and it says nothing about the entity.
const READING: [&str; 24] = [
    "find", "list", "show", "get", "search", "look", "read", "fetch", "see", "tell", "give", "check", "display",
    "view", "retrieve", "know", "exist", "have", "last", "latest", "newest", "open", "new", "first",
];
/// The weight of a word for reading.
const READING_WEIGHT: f32 = 0.3;
/// The weight of a word that names an API. All entities of the API have this word, but it tells them from those of other APIs.
const API_NAME: f32 = 0.3;

#[derive(Debug)]
pub struct IntentWords {
    pub words: Vec<IntentWord>,
    pub named_apis: NamedApis,
}

/// One word of the intent.
#[derive(Debug)]
pub struct IntentWord {
    pub weight: f32,
    /// Whether it looks like a value, such as a number or a person's name. No catalog needs to know values.
    pub is_value: bool,
    /// Whether it is a part of an API's name.
    pub names_api: bool,
    /// Its stem with the factor 1, then its synonyms, each with the factor of a hit on it.
    pub variants: Vec<(String, f32)>,
}

pub fn parse(intent: &str, catalogs: &[&CatalogIndex], synonyms: &Synonyms) -> IntentWords {
    let named_apis = api_names::find(catalogs.iter().map(|c| c.names.as_slice()), &api_names::words(intent));
    let reading: Vec<String> = READING.iter().flat_map(|word| stems(word)).collect();
    let mut words: Vec<IntentWord> = Vec::new();
    let mut previous_stem: Option<String> = None;
    for (position, raw) in raw_words(intent).into_iter().enumerate() {
        let is_capitalized = position > 0 && raw.starts_with(char::is_uppercase);
        let is_value = is_capitalized || raw.contains(|c: char| c.is_ascii_digit());
        let names_api = named_apis.used.get(position).copied().unwrap_or_default();
        for stem in stems(raw) {
            if let Some(previous) = previous_stem.replace(stem.clone()) {
                // A pair counts only where the synonyms have it (`front_page`). It is a value, because an intent must not look
                // less answered for a pair that nothing has.
                let pair = format!("{previous}_{stem}");
                let variants = synonyms.of(&pair).map(|synonym| (synonym.to_owned(), SYNONYM)).collect();
                add(&mut words, IntentWord { weight: 1.0, is_value: true, names_api: false, variants });
            }
            let weight = if names_api {
                API_NAME
            } else if reading.contains(&stem) {
                READING_WEIGHT
            } else {
                1.0
            };
            let mut variants = vec![(stem.clone(), 1.0)];
            if !names_api {
                variants.extend(synonyms.of(&stem).map(|synonym| (synonym.to_owned(), SYNONYM)));
            }
            add(&mut words, IntentWord { weight, is_value, names_api, variants });
        }
    }
    IntentWords { words, named_apis }
}

/// Adds a word, unless it has no variants or its first variant is there already.
fn add(words: &mut Vec<IntentWord>, word: IntentWord) {
    let Some(first) = word.variants.first() else { return };
    if words.iter().all(|known| known.variants.first() != Some(first)) {
        words.push(word);
    }
}

/// Returns the words as they are written. Their positions are those of `api_names::words`.
fn raw_words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}
