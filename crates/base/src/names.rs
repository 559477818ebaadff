//! Near names for a wrong one.
//! Invariant: at most five, nearest first, and only such as a person could have meant.

/// Candidates ordered by edit distance; those further away than half the word are left out unless nothing is near.
pub fn near<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut scored: Vec<(usize, &str)> = candidates.into_iter().map(|c| (distance(wrong, c), c)).collect();
    scored.sort();
    let bound = wrong.chars().count().div_ceil(2).max(2);
    let any_near = scored.iter().any(|(d, _)| *d <= bound);
    scored
        .into_iter()
        .filter(|(d, _)| !any_near || *d <= bound)
        .take(5)
        .map(|(_, c)| c.to_owned())
        .collect()
}

fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.to_lowercase().chars().take(64).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.to_lowercase().chars().take(64).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let cost = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn the_nearest_come_first_and_strangers_stay_out() {
        assert_eq!(
            near("statuz", ["state", "status", "votes", "number"]),
            ["status", "state"]
        );
        assert_eq!(near("zzz", ["state"]), ["state"], "when nothing is near, what there is");
        assert_eq!(near("é", []), Vec::<String>::new());
    }
}
