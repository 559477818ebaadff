//! The parsing of an intent into weighted words with synonyms.
//! Invariant: a match of a word counts more than a match of a synonym. A word that names an API has no synonyms.

use super::api_names::{self, NamedApis};
use super::catalog_index::CatalogIndex;
use super::synonyms::Synonyms;
use crate::words::stems;

/// The factor for a match of a synonym.
const SYNONYM_FACTOR: f32 = 0.5;
/// Words for reading, such as `find`. Nearly every intent contains one, and it does not help to find the entity.
const READING_WORDS: [&str; 24] = [
    "find", "list", "show", "get", "search", "look", "read", "fetch", "see", "tell", "give", "check", "display",
    "view", "retrieve", "know", "exist", "have", "last", "latest", "newest", "open", "new", "first",
];
/// The weight of a word from `READING_WORDS` in an intent.
const READING_WEIGHT: f32 = 0.3;
/// The weight of a word that names an API. It is small because all entities of the API have the word; it only separates them
/// from entities of other APIs.
const API_NAME_WEIGHT: f32 = 0.3;

#[derive(Debug)]
pub struct IntentWords {
    pub words: Vec<IntentWord>,
    pub named_apis: NamedApis,
}

/// One word of the intent.
#[derive(Debug)]
pub struct IntentWord {
    pub weight: f32,
    /// Whether the word looks like a value, such as a number or a person's name. Catalogs do not contain values, so a missing
    /// match is no bad sign.
    pub is_value: bool,
    /// Whether the word is part of an API's name.
    pub names_api: bool,
    /// The stem of the word with the factor 1, then its synonyms with the factor of a match.
    pub variants: Vec<(String, f32)>,
}

pub fn parse(intent: &str, catalogs: &[&CatalogIndex], synonyms: &Synonyms) -> IntentWords {
    let named_apis = api_names::find_names(catalogs.iter().map(|c| c.names.as_slice()), &api_names::words(intent));
    let reading: Vec<String> = READING_WORDS.iter().flat_map(|word| stems(word)).collect();
    let mut words: Vec<IntentWord> = Vec::new();
    let mut previous_stem: Option<String> = None;
    for (position, raw) in raw_words(intent).into_iter().enumerate() {
        let is_capitalized = position > 0 && raw.starts_with(char::is_uppercase);
        let is_value = is_capitalized || raw.contains(|c: char| c.is_ascii_digit());
        let names_api = named_apis.used.get(position).copied().unwrap_or_default();
        for stem in stems(raw) {
            if let Some(previous) = previous_stem.replace(stem.clone()) {
                // A pair of words is added only if the synonyms contain it (`front_page`). It is marked as a value, so that an
                // unmatched pair does not lower the answered share.
                let pair = format!("{previous}_{stem}");
                let variants = synonyms.of(&pair).map(|synonym| (synonym.to_owned(), SYNONYM_FACTOR)).collect();
                add(&mut words, IntentWord { weight: 1.0, is_value: true, names_api: false, variants });
            }
            let weight = if names_api {
                API_NAME_WEIGHT
            } else if reading.contains(&stem) {
                READING_WEIGHT
            } else {
                1.0
            };
            let mut variants = vec![(stem.clone(), 1.0)];
            if !names_api {
                variants.extend(synonyms.of(&stem).map(|synonym| (synonym.to_owned(), SYNONYM_FACTOR)));
            }
            add(&mut words, IntentWord { weight, is_value, names_api, variants });
        }
    }
    IntentWords { words, named_apis }
}

/// Adds a word, unless it has no variants or a word with the same first variant was already added.
fn add(words: &mut Vec<IntentWord>, word: IntentWord) {
    let Some(first) = word.variants.first() else { return };
    if words.iter().all(|known| known.variants.first() != Some(first)) {
        words.push(word);
    }
}

/// Returns the words of a text in their original case. The positions correspond to those of `api_names::words`.
fn raw_words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}
