//! Looking at the text between two nodes: where a word or a mark stands that the tree does not keep.
//! Invariant: what stands in a comment is not seen.

/// Where the next thing stands that is neither space nor comment, from `at` on.
pub fn next(source: &str, mut at: usize) -> usize {
    loop {
        let rest = source.get(at..).unwrap_or_default();
        let space = rest.len() - rest.trim_start().len();
        at += space;
        let rest = &rest[space..];
        if let Some(line) = rest.strip_prefix("//") {
            at += 2 + line.find(super::edits::ends_line).unwrap_or(line.len());
        } else if let Some(block) = rest.strip_prefix("/*") {
            at += block.find("*/").map_or(rest.len(), |end| end + 4);
        } else {
            return at;
        }
    }
}

/// The words from `from` on, each with its place, up to `to` or to the first thing that is not a word.
pub fn words(source: &str, from: usize, to: usize) -> Vec<(usize, &str)> {
    let mut words = Vec::new();
    let mut at = next(source, from);
    while at < to {
        let rest = &source[at..to];
        let length = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        if length == 0 {
            break;
        }
        words.push((at, &rest[..length]));
        at = next(source, at + length);
    }
    words
}

/// The last character before `end`.
pub fn last(source: &str, end: usize) -> Option<usize> {
    source.get(..end)?.char_indices().next_back().map(|(at, _)| at)
}
