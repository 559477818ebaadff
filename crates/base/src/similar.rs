//! Suggests known names for a misspelled one.
//! Invariant: the most similar name is first. A single suggestion is made only if no other name is equally similar.

/// Returns the five candidates that are most similar to `wrong`, the most similar first.
pub fn similar_names<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    rank_by_distance(wrong, candidates).into_iter().take(5).map(|(_, name)| name.to_owned()).collect()
}

/// Returns the candidate that the author surely meant, or `None`. The candidate differs from `wrong` in at most a
/// third of the letters (rounded up), and no other candidate is equally similar.
pub fn closest_name<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let ranked = rank_by_distance(wrong, candidates);
    let (best, name) = *ranked.first()?;
    // At most one letter in three may differ, or else the suggestion would be a guess.
    let is_close = best <= wrong.chars().count().div_ceil(3);
    let is_unique = ranked.get(1).is_none_or(|(second, _)| *second > best);
    (is_close && is_unique).then_some(name)
}

/// Returns each candidate once with its edit distance to `wrong`, the most similar first. Candidates with equal
/// distances are sorted by name, so that equal input gives an equal message.
fn rank_by_distance<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<(usize, &'a str)> {
    let mut scored: Vec<(usize, &str)> =
        candidates.into_iter().map(|name| (edit_distance(wrong, name), name)).collect();
    scored.sort();
    scored.dedup();
    scored
}

/// Returns the edit distance of two names. Two swapped neighbours count as one edit, and case is ignored. Only the
/// first 64 letters are compared, since the cost is quadratic.
fn edit_distance(left: &str, right: &str) -> usize {
    let shortened = |text: &str| text.to_lowercase().chars().take(64).collect::<String>();
    strsim::osa_distance(&shortened(left), &shortened(right))
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
