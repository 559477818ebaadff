//! Words for other words: what lets an intent find an entity whose name it does not say.
//! Invariant: data only (`synonyms.txt`); a stem never leads to itself.

use std::collections::{BTreeSet, HashMap};

use crate::words::stems;

const TEXT: &str = include_str!("synonyms.txt");

/// From a stem, or two of them in a row with `_` between, to the stems it may stand for.
#[derive(Debug)]
pub struct Synonyms(HashMap<String, BTreeSet<String>>);

impl Synonyms {
    pub fn built_in() -> Self {
        Self::read(TEXT)
    }

    fn read(text: &str) -> Self {
        let mut map: HashMap<String, BTreeSet<String>> = HashMap::new();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
        for line in lines {
            let (from, to) = line.split_once('>').unwrap_or((line, line));
            let from: Vec<String> = from.split_whitespace().map(|word| stems(word).join("_")).collect();
            // What is found is one word: a target of two is two targets.
            let to: Vec<String> = to.split_whitespace().flat_map(stems).collect();
            for key in from.iter().filter(|key| !key.is_empty()) {
                let targets = to.iter().filter(|stem| key.split('_').all(|part| part != stem.as_str()));
                map.entry(key.clone()).or_default().extend(targets.cloned());
            }
        }
        Self(map)
    }

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
    fn groups_lead_everywhere_and_arrows_one_way() {
        let synonyms = Synonyms::read("# an idea\nbuyer client\numbrella > rains\nfront_page > top");
        assert_eq!(of(&synonyms, "buyer"), ["client"]);
        assert_eq!(of(&synonyms, "client"), ["buyer"]);
        assert_eq!(of(&synonyms, "umbrella"), ["rain"]);
        assert_eq!(of(&synonyms, "rain"), Vec::<&str>::new());
        assert_eq!(of(&synonyms, "front_page"), ["top"]);
    }

    #[test]
    fn no_word_stands_for_itself() {
        let built_in = Synonyms::built_in();
        assert!(built_in.0.iter().all(|(from, to)| !to.contains(from)));
    }

    /// A line that says nothing, or a word that is a filler, is a mistake of the file.
    #[test]
    fn every_word_of_the_file_is_kept() {
        for line in TEXT.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            for word in line.split_whitespace().filter(|word| *word != ">") {
                assert_eq!(stems(word).len(), word.split('_').count(), "{word} in `{line}`");
            }
        }
    }
}
