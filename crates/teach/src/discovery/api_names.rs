//! Which APIs an intent names, by id, alias or title.
//! Invariant: a name counts only as whole words, and the longest one that fits: `demo store` does not name `demo`.

use catalog::Catalog;

/// Of a name that another's begins with: `Hacker News` also speaks of `Hacker News search`.
const FAMILY: f32 = 0.6;
/// No name is longer.
const LONGEST: usize = 5;

/// One of the names of a catalog, in lower case.
#[derive(Debug, PartialEq, Eq)]
pub struct Name {
    /// Without spaces.
    together: String,
    words: Vec<String>,
}

impl Name {
    fn new(name: &str) -> Self {
        let words = words(name);
        Self { together: words.concat(), words }
    }
}

pub fn names_of(catalog: &Catalog) -> Vec<Name> {
    let ids = std::iter::once(&catalog.id).chain(&catalog.aliases).map(|id| id.as_str());
    let mut names: Vec<Name> = ids.chain([catalog.title.as_str()]).map(Name::new).collect();
    names.retain(|name| !name.words.is_empty());
    names
}

/// What a text says of APIs.
#[derive(Debug, Default)]
pub struct NamedApis {
    /// How much of each API, in the order they were given: 1 for its name, less for one that its name begins with.
    pub strength: Vec<f32>,
    /// Which words of the text were part of a name.
    pub used: Vec<bool>,
}

pub fn find<'a>(catalogs: impl Iterator<Item = &'a [Name]> + Clone, text: &[String]) -> NamedApis {
    let mut named = NamedApis { strength: vec![0.0; catalogs.clone().count()], used: vec![false; text.len()] };
    for length in (1..=LONGEST.min(text.len())).rev() {
        for from in 0..=text.len() - length {
            let span = from..from + length;
            if named.used[span.clone()].contains(&true) {
                continue;
            }
            let phrase: String = text[span.clone()].concat();
            if catalogs.clone().any(|names| names.iter().any(|name| name.together == phrase)) {
                named.used[span].fill(true);
                for (at, names) in catalogs.clone().enumerate() {
                    let strength = names.iter().map(|name| name.match_strength(&phrase)).fold(0.0, f32::max);
                    named.strength[at] = named.strength[at].max(strength);
                }
            }
        }
    }
    named
}

impl Name {
    fn match_strength(&self, phrase: &str) -> f32 {
        let begins = |end: usize| self.words[..end].concat() == phrase;
        if self.together == phrase {
            1.0
        } else if (1..self.words.len()).any(begins) {
            FAMILY
        } else {
            0.0
        }
    }
}

/// The words of a text in lower case, fillers and all.
pub fn words(text: &str) -> Vec<String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strengths(text: &str) -> Vec<f32> {
        let name = |names: &[&str]| names.iter().map(|n| Name::new(n)).collect::<Vec<_>>();
        let all = [
            name(&["demo", "Demo ticket tracker"]),
            name(&["demo-store", "Demo store"]),
            name(&["hackernews", "hn", "Hacker News"]),
            name(&["hackernews-search", "Hacker News search"]),
        ];
        find(all.iter().map(Vec::as_slice), &words(text)).strength
    }

    #[test]
    fn the_longest_name_counts() {
        assert_eq!(strengths("orders of the demo store"), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(strengths("orders of demo-store"), [0.0, 1.0, 0.0, 0.0]);
        assert_eq!(strengths("tickets of the demo"), [1.0, FAMILY, 0.0, 0.0]);
    }

    #[test]
    fn a_name_may_be_written_together_or_apart() {
        for text in ["top of HN", "HackerNews", "hacker news", "Hacker-News"] {
            assert_eq!(strengths(text)[2], 1.0, "{text}");
        }
        assert_eq!(strengths("Hacker News"), [0.0, 0.0, 1.0, FAMILY]);
        assert_eq!(strengths("a hacker in the news"), [0.0; 4]);
        assert_eq!(strengths(""), [0.0; 4]);
    }
}
