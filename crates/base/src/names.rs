//! Near names for a wrong one.
//! Invariant: nearest first; a single one is offered only when it was surely meant.

/// Candidates, nearest first by edit distance, at most five.
pub fn near<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    scored(wrong, candidates).into_iter().take(5).map(|(_, name)| name.to_owned()).collect()
}

/// The one candidate that was surely meant, if there is one: close to the word, and closer than any other.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = scored(wrong, candidates);
    let (best, name) = *scored.first()?;
    let close = best <= wrong.chars().count().div_ceil(3);
    let alone = scored.get(1).is_none_or(|(second, _)| *second > best);
    (close && alone).then_some(name)
}

fn scored<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<(usize, &'a str)> {
    let mut scored: Vec<(usize, &str)> = candidates.into_iter().map(|c| (distance(wrong, c), c)).collect();
    scored.sort();
    scored.dedup();
    scored
}

/// Typing mistakes are single letters and swapped neighbours; case is none. Long words are compared by their beginning.
fn distance(a: &str, b: &str) -> usize {
    let clipped = |text: &str| text.to_lowercase().chars().take(64).collect::<String>();
    strsim::osa_distance(&clipped(a), &clipped(b))
}

#[cfg(test)]
mod tests {
    use super::{near, nearest};

    #[test]
    fn the_nearest_come_first() {
        assert_eq!(near("statuz", ["votes", "state", "status", "number"]), ["status", "state", "votes", "number"]);
        assert_eq!(near("é", []), Vec::<String>::new());
    }

    #[test]
    fn only_a_close_and_single_one_was_surely_meant() {
        assert_eq!(nearest("opne", ["open", "done"]), Some("open"));
        assert_eq!(nearest("closed", ["open", "doing", "done"]), None);
        assert_eq!(nearest("ab", ["aa", "bb"]), None, "two are equally near");
        assert_eq!(nearest("x", []), None);
    }
}
