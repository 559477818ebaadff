//! Synonyms, so that an intent matches an entity that has another name: `bug` for `Issue`.
//! Invariant: all synonyms are in the data file `synonyms.txt`. A stem is never its own synonym.

use std::collections::{BTreeSet, HashMap};

use crate::words::stems;

const SYNONYMS_TEXT: &str = include_str!("synonyms.txt");

/// The synonyms of each stem. A key is one stem, or two consecutive stems joined by `_`.
#[derive(Debug)]
pub struct Synonyms(HashMap<String, BTreeSet<String>>);

impl Synonyms {
    pub fn built_in() -> Self {
        Self::read(SYNONYMS_TEXT)
    }

    fn read(text: &str) -> Self {
        let mut map: HashMap<String, BTreeSet<String>> = HashMap::new();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let (from, to) = line.split_once('>').unwrap_or((line, line));
            let from: Vec<String> = from.split_whitespace().map(|word| stems(word).join("_")).collect();
            // Synonyms are compared with single words of a catalog, so a target of two words is stored as two targets.
            let to: Vec<String> = to.split_whitespace().flat_map(stems).collect();
            for key in from.iter().filter(|key| !key.is_empty()) {
                let targets = to.iter().filter(|stem| key.split('_').all(|part| part != stem.as_str()));
                map.entry(key.clone()).or_default().extend(targets.cloned());
            }
        }
        Self(map)
    }

    /// Returns the synonyms of a stem, or of a pair of stems joined by `_`.
    pub fn of<'a>(&'a self, stem: &str) -> impl Iterator<Item = &'a str> {
        self.0.get(stem).into_iter().flatten().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of<'a>(synonyms: &'a Synonyms, stem: &str) -> Vec<&'a str> {
        synonyms.of(stem).collect()
    }

    #[test]
    fn a_group_is_symmetric_and_an_arrow_is_not() {
        let synonyms = Synonyms::read("# an idea\nbuyer client\numbrella > rains\nfront_page > top");
        assert_eq!(of(&synonyms, "buyer"), ["client"]);
        assert_eq!(of(&synonyms, "client"), ["buyer"]);
        assert_eq!(of(&synonyms, "umbrella"), ["rain"]);
        assert_eq!(of(&synonyms, "rain"), Vec::<&str>::new());
        assert_eq!(of(&synonyms, "front_page"), ["top"]);
    }

    #[test]
    fn no_stem_is_its_own_synonym() {
        let built_in = Synonyms::built_in();
        assert!(built_in.0.iter().all(|(from, to)| !to.contains(from)));
    }

    /// Filler words have no stem. A filler word in the file would have no effect, so it is a mistake.
    #[test]
    fn every_word_of_the_file_has_a_stem() {
        for line in SYNONYMS_TEXT.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            for word in line.split_whitespace().filter(|word| *word != ">") {
                assert_eq!(stems(word).len(), word.split('_').count(), "{word} in `{line}`");
            }
        }
    }
}
