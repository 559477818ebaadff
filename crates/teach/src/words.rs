//! Words as discovery and exposure compare them: a text split into stems, without filler words.
//! Invariant: a pure function of its text. Two words are the same if their stems are equal.

use catalog::Kind;
use rust_stemmers::{Algorithm, Stemmer};

/// Returns the stems of a text in its order. The text is split at everything that is neither a letter nor a digit, and inside
/// `camelCase`, where the whole word is a stem too. Words that only hold a sentence together are left out.
pub fn stems(text: &str) -> Vec<String> {
    split(text, true)
}

/// Returns the stems as [`stems`] does, but only the parts of a `camelCase` word: `PullRequest` is two.
pub fn parts(name: &str) -> Vec<String> {
    split(name, false)
}

/// Returns the words of a text as they are written.
pub(crate) fn written_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '\'' && c != '’').filter(|word| !word.is_empty())
}

/// Returns the words that a kind implies, for a capability that does not say them itself.
pub(crate) fn kind_words(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Create => &["create", "add", "new", "make"],
        Kind::Update => &["update", "change", "edit", "modify", "set"],
        Kind::Delete => &["delete", "remove"],
        _ => &[],
    }
}

fn split(text: &str, with_whole_words: bool) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut out = Vec::new();
    for word in written_words(text) {
        // `customer's` is `customer`.
        let word = word.split(['\'', '’']).next().unwrap_or(word);
        let parts = camel_parts(word);
        if with_whole_words && parts.len() > 1 {
            push_stem(&stemmer, word, &mut out);
        }
        parts.into_iter().for_each(|part| push_stem(&stemmer, part, &mut out));
    }
    out
}

fn push_stem(stemmer: &Stemmer, word: &str, out: &mut Vec<String>) {
    let word = word.to_lowercase();
    if word.is_empty() || FILLERS.binary_search(&word.as_str()).is_ok() {
        return;
    }
    out.push(stemmer.stem(&american_spelling(word)).into_owned());
}

/// Splits `pullRequest` and `PullRequest` into two words, and `HTTPRoute` into `HTTP` and `Route`.
fn camel_parts(word: &str) -> Vec<&str> {
    let letters: Vec<(usize, char)> = word.char_indices().collect();
    let mut parts = Vec::new();
    let mut start = 0;
    for pair in 1..letters.len() {
        let (_, before) = letters[pair - 1];
        let (position, letter) = letters[pair];
        let next_is_lower = letters.get(pair + 1).is_some_and(|(_, next)| next.is_lowercase());
        if letter.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && next_is_lower)) {
            parts.push(&word[start..position]);
            start = position;
        }
    }
    parts.push(&word[start..]);
    parts
}

/// Returns the American spelling of a British word, so that `organisation` and `organization` have one stem.
fn american_spelling(word: String) -> String {
    const ENDINGS: [(&str, &str); 9] = [
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
    let ending = ENDINGS.iter().find(|(british, _)| word.len() >= british.len() + 3 && word.ends_with(british));
    match ending {
        Some((british, american)) => format!("{}{american}", &word[..word.len() - british.len()]),
        None => word,
    }
}

/// Words without a meaning of their own. They are sorted, because `push_stem` searches them by bisection.
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
mod tests {
    use super::{FILLERS, stems};

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
}
