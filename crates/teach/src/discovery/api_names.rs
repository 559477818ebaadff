//! The search for names of APIs (id, alias or title) in an intent.
//! Invariant: a name matches only whole words, and of several names at one position only the longest matches: `demo store` is
//! not the API `demo`.

use catalog::Catalog;

/// The strength of a match with only the first words of an API's name: the text `Hacker News` for the API `Hacker News search`.
const FIRST_WORDS_STRENGTH: f32 = 0.6;
/// The largest number of words in a name that is searched for.
const MAX_WORDS_PER_NAME: usize = 5;

/// One of the names of a catalog, in lower case.
#[derive(Debug, PartialEq, Eq)]
pub struct ApiName {
    /// The words joined without spaces, because an intent may write `hackernews` or `hacker news`.
    joined_words: String,
    words: Vec<String>,
}

impl ApiName {
    fn new(name: &str) -> Self {
        let words = words(name);
        Self { joined_words: words.concat(), words }
    }
}

/// Returns the names of a catalog: its id, its aliases and its title.
pub fn names_of(catalog: &Catalog) -> Vec<ApiName> {
    let ids = std::iter::once(&catalog.id).chain(&catalog.aliases).map(|id| id.as_str());
    let mut names: Vec<ApiName> = ids.chain([catalog.title.as_str()]).map(ApiName::new).collect();
    names.retain(|name| !name.words.is_empty());
    names
}

/// The result of the search for API names in a text.
#[derive(Debug, Default)]
pub struct NamedApis {
    /// The strength of the match for each catalog, in order: 1 for the whole name, less for the first words of a name, 0 for no
    /// match.
    pub strength: Vec<f32>,
    /// For each word of the text, whether it is part of an API's name.
    pub used: Vec<bool>,
}

/// Finds the names of the catalogs in the words of a text.
pub fn find_names<'a>(catalogs: impl Iterator<Item = &'a [ApiName]> + Clone, text: &[String]) -> NamedApis {
    let mut named = NamedApis { strength: vec![0.0; catalogs.clone().count()], used: vec![false; text.len()] };
    // Longer phrases are tried first and mark their words as used, so that `demo store` does not also match `demo`.
    for length in (1..=MAX_WORDS_PER_NAME.min(text.len())).rev() {
        for start in 0..=text.len() - length {
            let span = start..start + length;
            if named.used[span.clone()].contains(&true) {
                continue;
            }
            let phrase: String = text[span.clone()].concat();
            if catalogs.clone().any(|names| names.iter().any(|name| name.joined_words == phrase)) {
                named.used[span].fill(true);
                for (catalog, names) in catalogs.clone().enumerate() {
                    let strength = names.iter().map(|name| name.match_strength(&phrase)).fold(0.0, f32::max);
                    named.strength[catalog] = named.strength[catalog].max(strength);
                }
            }
        }
    }
    named
}

impl ApiName {
    fn match_strength(&self, phrase: &str) -> f32 {
        if self.joined_words == phrase {
            1.0
        } else if (1..self.words.len()).any(|count| self.words[..count].concat() == phrase) {
            FIRST_WORDS_STRENGTH
        } else {
            0.0
        }
    }
}

/// Returns all words of a text in lower case, including filler words.
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strengths(text: &str) -> Vec<f32> {
        let name = |names: &[&str]| names.iter().map(|n| ApiName::new(n)).collect::<Vec<_>>();
        let all = [
            name(&["demo", "Demo ticket tracker"]),
            name(&["demo-store", "Demo store"]),
            name(&["hackernews", "hn", "Hacker News"]),
            name(&["hackernews-search", "Hacker News search"]),
        ];
        find_names(all.iter().map(Vec::as_slice), &words(text)).strength
    }

    #[test]
    fn only_the_longest_name_counts() {
        assert_eq!(strengths("orders of the demo store"), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(strengths("orders of demo-store"), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(strengths("tickets of the demo"), [1.0, FIRST_WORDS_STRENGTH, 0.0, 0.0]);
    }

    #[test]
    fn a_name_may_be_written_in_one_word_or_in_several() {
        for text in ["top of HN", "HackerNews", "hacker news", "Hacker-News"] {
            assert_eq!(strengths(text)[2], 1.0, "{text}");
        }
        assert_eq!(strengths("Hacker News"), [0.0, 0.0, 1.0, FIRST_WORDS_STRENGTH]);
        assert_eq!(strengths("a hacker in the news"), [0.0; 4]);
        assert_eq!(strengths(""), [0.0; 4]);
    }
}
