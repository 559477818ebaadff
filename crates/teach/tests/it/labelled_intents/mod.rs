//! The labelled intents of `tests/discovery`, and the quality of an index over them. The test and the benchmark share this file.

// why: a failed expectation is the test's own failure.
#![allow(clippy::unwrap_used, clippy::panic)]
// why: the test and the benchmark each use a part of this file.
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::Arc;

use catalog::Registry;
use teach::discovery::{Decision, Index, Query};

pub const HEADER: &str = "id\tsplit\tkind\tintent\texpected";

#[derive(Debug, Clone)]
pub struct LabelledIntent {
    pub id: String,
    /// `dev`, or `held` for an intent that nothing is tuned on.
    pub split: String,
    /// `literal`, `paraphrase`, `multi` (several APIs) or `near_miss` (words that suggest something else).
    pub kind: String,
    pub intent: String,
    /// The entities to find, each with its alternatives. It is empty if there is nothing to find.
    pub expected: Vec<Vec<String>>,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the shipped catalogs and those of `tests/catalogs`, which some intents name.
pub fn shipped() -> Registry {
    let folders = [root().join("catalogs"), root().join("tests/catalogs")];
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let yaml = files.filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    let read = |path: PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        Arc::new(catalog::read(&path.display().to_string(), &text).unwrap())
    };
    Registry::new(yaml.map(read)).unwrap()
}

pub fn intents() -> Vec<LabelledIntent> {
    let text = std::fs::read_to_string(root().join("tests/discovery/intents.tsv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(HEADER));
    let parse = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [id, split, kind, intent, expected] = cells.as_slice() else { panic!("not five cells: {line}") };
        let expected = expected.split(' ').filter(|one| *one != "-");
        LabelledIntent {
            id: (*id).to_owned(),
            split: (*split).to_owned(),
            kind: (*kind).to_owned(),
            intent: (*intent).to_owned(),
            expected: expected.map(|one| one.split('/').map(str::to_owned).collect()).collect(),
        }
    };
    lines.map(parse).collect()
}

/// The answer of an index to one intent.
pub struct Outcome {
    pub labelled: LabelledIntent,
    /// The entities found, as `api:entity`, the best first.
    pub rows: Vec<String>,
    pub decision: Decision,
    /// The share of the expected entities that is among the first five rows.
    pub recall: f64,
    /// One divided by the rank of the first expected entity.
    pub reciprocal: f64,
}

pub fn outcomes(index: &Index, intents: &[LabelledIntent]) -> Vec<Outcome> {
    let outcome_of = |labelled: &LabelledIntent| {
        let query = Query { intent: labelled.intent.clone(), apis: Vec::new(), limit: 12 };
        let everything = |_: &catalog::Catalog, _: &catalog::Capability| true;
        let result = index.discover(&query, &everything);
        let rows: Vec<String> = result.rows.iter().map(|hit| format!("{}:{}", hit.api, hit.entity)).collect();
        let decision = result.decide().decision;
        let expected = &labelled.expected;
        let rank = |alternatives: &Vec<String>| rows.iter().position(|row| alternatives.contains(row));
        let hits = expected.iter().filter(|alternatives| rank(alternatives).is_some_and(|rank| rank < 5)).count();
        let first_rank = expected.iter().filter_map(rank).min();
        Outcome {
            recall: hits as f64 / expected.len().max(1) as f64,
            reciprocal: first_rank.map_or(0.0, |rank| 1.0 / (rank + 1) as f64),
            labelled: labelled.clone(),
            rows,
            decision,
        }
    };
    intents.iter().map(outcome_of).collect()
}

/// Means over the intents that have something to find.
pub struct Quality {
    pub intents: usize,
    pub recall_at_5: f64,
    pub mrr: f64,
}

pub fn quality<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Quality {
    let outcomes: Vec<&Outcome> = outcomes.into_iter().filter(|o| !o.labelled.expected.is_empty()).collect();
    let mean =
        |value: fn(&Outcome) -> f64| outcomes.iter().map(|o| value(o)).sum::<f64>() / outcomes.len().max(1) as f64;
    Quality { intents: outcomes.len(), recall_at_5: mean(|o| o.recall), mrr: mean(|o| o.reciprocal) }
}

/// Returns the number of right decisions and of all. `no_match` is right exactly if there is nothing to find.
pub fn right_decisions<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> (usize, usize) {
    let all: Vec<&Outcome> = outcomes.into_iter().collect();
    let is_right = |o: &&&Outcome| (o.decision == Decision::NoMatch) == o.labelled.expected.is_empty();
    (all.iter().filter(is_right).count(), all.len())
}
