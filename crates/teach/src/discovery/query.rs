//! An intent as weighted words, each with what it may stand for.
//! Invariant: a word the intent says counts more than one it stands for; words that name an API are not looked for again.

use super::api_names::{self, NamedApis};
use super::catalog_index::CatalogIndex;
use super::synonyms::Synonyms;
use crate::words::stems;

/// What a word counts that the intent does not say but that stands for one it says.
const SYNONYM: f32 = 0.5;
/// What reads are called, and what is said of anything that is read: nearly every intent has such a word, and it says nothing
/// about what is read.
const READING: [&str; 24] = [
    "find", "list", "show", "get", "search", "look", "read", "fetch", "see", "tell", "give", "check", "display",
    "view", "retrieve", "know", "exist", "have", "last", "latest", "newest", "open", "new", "first",
];
const READ: f32 = 0.3;
/// A single word that names an API stands in each of its entities; it still tells them from those of another.
const API_NAME: f32 = 0.3;

#[derive(Debug)]
pub struct IntentWords {
    pub words: Vec<Word>,
    pub named: NamedApis,
}

/// One word of the intent.
#[derive(Debug)]
pub struct Word {
    pub weight: f32,
    /// A number or a name, which no catalog need know: what is asked about, not what is asked for.
    pub value: bool,
    /// It is part of an API's name.
    pub api: bool,
    /// Its stem, then those it may stand for, with what a hit on each counts.
    pub variants: Vec<(String, f32)>,
}

pub fn parse(intent: &str, catalogs: &[&CatalogIndex], synonyms: &Synonyms) -> IntentWords {
    let text = api_names::words(intent);
    let named = api_names::find(catalogs.iter().map(|c| c.names.as_slice()), &text);
    let reading: Vec<String> = READING.iter().flat_map(|word| stems(word)).collect();
    let mut words: Vec<Word> = Vec::new();
    let mut before: Option<String> = None;
    for (at, raw) in raw_words(intent).into_iter().enumerate() {
        let value = raw.contains(|c: char| c.is_ascii_digit()) || (at > 0 && raw.starts_with(char::is_uppercase));
        let used = named.used.get(at).copied().unwrap_or_default();
        for stem in stems(raw) {
            let pair = before.replace(stem.clone()).map(|before| format!("{before}_{stem}"));
            if let Some(pair) = pair {
                let to = synonyms.of(&pair).map(|to| (to.to_owned(), SYNONYM)).collect();
                add(&mut words, Word { weight: 1.0, value: true, api: false, variants: to });
            }
            let weight = if used {
                API_NAME
            } else if reading.contains(&stem) {
                READ
            } else {
                1.0
            };
            let mut variants = vec![(stem.clone(), 1.0)];
            if !used {
                variants.extend(synonyms.of(&stem).map(|to| (to.to_owned(), SYNONYM)));
            }
            add(&mut words, Word { weight, value, api: used, variants });
        }
    }
    IntentWords { words, named }
}

/// A word that is said twice counts once.
fn add(words: &mut Vec<Word>, word: Word) {
    let Some(first) = word.variants.first() else { return };
    if words.iter().all(|said| said.variants.first() != Some(first)) {
        words.push(word);
    }
}

/// The words as they are written, in step with `api_names::words`.
fn raw_words(text: &str) -> Vec<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}
