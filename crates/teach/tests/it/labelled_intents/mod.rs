//! The labelled intents of `tests/discovery`, and the measurement of an index's quality on them. The test and the benchmark
//! share this file.

// A panic in a shared test function fails the test that calls it, so these lints are allowed.
#![allow(clippy::unwrap_used, clippy::panic)]
// The test and the benchmark each need only a part of this file, so the other part is dead code there.
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::Arc;

use catalog::Registry;
use teach::discovery::{Decision, Index, Query};

pub const HEADER: &str = "id\tsplit\tkind\tintent\texpected";

#[derive(Debug, Clone)]
pub struct LabelledIntent {
    pub id: String,
    /// The set of the intent: `dev`, or `held` for intents that are not used for tuning.
    pub split: String,
    /// The kind of the intent: `literal`, `paraphrase`, `multi` (several APIs) or `near_miss` (words that suggest a wrong
    /// entity).
    pub kind: String,
    pub intent: String,
    /// The expected entities, each with its accepted alternatives. It is empty if no entity matches the intent.
    pub expected: Vec<Vec<String>>,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns a registry with the shipped catalogs and the catalogs of `tests/catalogs`, which some intents name.
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

/// The result of an index for one intent.
pub struct Outcome {
    pub labelled: LabelledIntent,
    /// The found entities as `api:entity`, best first.
    pub rows: Vec<String>,
    pub decision: Decision,
    /// The share of the expected entities that are among the first five rows.
    pub recall: f64,
    /// The reciprocal rank: one divided by the rank of the first expected entity.
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

/// The mean values over all intents with expected entities.
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

/// Returns the number of correct decisions and the number of all decisions. `no_match` is correct exactly if the intent has no
/// expected entities.
pub fn right_decisions<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> (usize, usize) {
    let all: Vec<&Outcome> = outcomes.into_iter().collect();
    let is_right = |o: &&&Outcome| (o.decision == Decision::NoMatch) == o.labelled.expected.is_empty();
    (all.iter().filter(is_right).count(), all.len())
}
