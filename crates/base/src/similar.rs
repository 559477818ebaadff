//! Suggests known names for a misspelled one.
//! Invariant: the most similar name comes first; a single suggestion is made only when no other name is as close.

/// Returns at most five candidates, ordered by edit distance.
pub fn similar_names<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    by_distance(wrong, candidates).into_iter().take(5).map(|(_, name)| name.to_owned()).collect()
}

/// Returns the one candidate that the author must have meant: few letters differ, and no other candidate is as close.
pub fn closest_name<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let by_distance = by_distance(wrong, candidates);
    let (best, name) = *by_distance.first()?;
    // At most one letter in three may differ.
    let is_close = best <= wrong.chars().count().div_ceil(3);
    let is_unique = by_distance.get(1).is_none_or(|(second, _)| *second > best);
    (is_close && is_unique).then_some(name)
}

/// Returns each candidate once with its distance, the closest first. Equal distances are in alphabetical order, so that a
/// message is the same each time.
fn by_distance<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<(usize, &'a str)> {
    let mut scored: Vec<(usize, &str)> = candidates.into_iter().map(|name| (distance(wrong, name), name)).collect();
    scored.sort();
    scored.dedup();
    scored
}

/// Returns the edit distance, where swapped neighbours count as one mistake and case is ignored. Only the first 64
/// letters are compared, since the cost is quadratic.
fn distance(left: &str, right: &str) -> usize {
    let clipped = |text: &str| text.to_lowercase().chars().take(64).collect::<String>();
    strsim::osa_distance(&clipped(left), &clipped(right))
}

#[cfg(test)]
mod tests {
    use super::{closest_name, similar_names};

    #[test]
    fn the_most_similar_names_come_first() {
        assert_eq!(
            similar_names("statuz", ["votes", "state", "status", "number"]),
            ["status", "state", "votes", "number"]
        );
        assert_eq!(similar_names("é", []), Vec::<String>::new());
    }

    #[test]
    fn a_name_is_suggested_alone_only_if_it_is_close_and_unique() {
        assert_eq!(closest_name("opne", ["open", "done"]), Some("open"));
        assert_eq!(closest_name("closed", ["open", "doing", "done"]), None);
        assert_eq!(closest_name("ab", ["aa", "bb"]), None, "two are equally near");
        assert_eq!(closest_name("x", []), None);
    }
}
