//! The labelled intents of `tests/discovery`, and how well an index answers them. Shared by the test and the benchmark.

// why: a failed expectation is the test's own failure.
#![allow(clippy::unwrap_used, clippy::panic)]
// why: the test and the benchmark each read a part of it.
#![allow(dead_code)]

use std::path::PathBuf;
use std::sync::Arc;

use catalog::Registry;
use teach::discovery::{Decision, Index, Query};

pub const HEADER: &str = "id\tsplit\tkind\tintent\texpected";

#[derive(Debug, Clone)]
pub struct Labelled {
    pub id: String,
    pub split: String,
    pub kind: String,
    pub intent: String,
    /// All of these, each by any of its alternatives; empty when there is nothing to find.
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

pub fn intents() -> Vec<Labelled> {
    let text = std::fs::read_to_string(root().join("tests/discovery/intents.tsv")).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(HEADER));
    let read = |line: &str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [id, split, kind, intent, expected] = cells.as_slice() else { panic!("not five cells: {line}") };
        let expected = expected.split(' ').filter(|one| *one != "-");
        Labelled {
            id: (*id).to_owned(),
            split: (*split).to_owned(),
            kind: (*kind).to_owned(),
            intent: (*intent).to_owned(),
            expected: expected.map(|one| one.split('/').map(str::to_owned).collect()).collect(),
        }
    };
    lines.map(read).collect()
}

/// What an index found for one intent.
pub struct Outcome {
    pub labelled: Labelled,
    pub rows: Vec<String>,
    pub decision: Decision,
    /// Which of the expected are among the first five rows, 0 to 1.
    pub recall: f64,
    /// One over the rank of the first that was expected.
    pub reciprocal: f64,
}

pub fn outcomes(index: &Index, intents: &[Labelled]) -> Vec<Outcome> {
    let outcome = |labelled: &Labelled| {
        let query = Query { intent: labelled.intent.clone(), apis: Vec::new(), limit: 12 };
        let everything = |_: &catalog::Catalog, _: &catalog::Capability| true;
        let found = index.discover(&query, &everything);
        let rows: Vec<String> = found.rows.iter().map(|hit| format!("{}:{}", hit.api, hit.entity)).collect();
        let decision = found.decide().decision;
        let expected = &labelled.expected;
        let rank = |any: &Vec<String>| rows.iter().position(|row| any.contains(row));
        let hits = expected.iter().filter(|any| rank(any).is_some_and(|at| at < 5)).count();
        let first = expected.iter().filter_map(rank).min();
        Outcome {
            recall: hits as f64 / expected.len().max(1) as f64,
            reciprocal: first.map_or(0.0, |at| 1.0 / (at + 1) as f64),
            labelled: labelled.clone(),
            rows,
            decision,
        }
    };
    intents.iter().map(outcome).collect()
}

/// Means over those that have something to find.
pub struct Quality {
    pub intents: usize,
    pub recall_at_5: f64,
    pub mrr: f64,
}

pub fn quality<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Quality {
    let some: Vec<&Outcome> = outcomes.into_iter().filter(|o| !o.labelled.expected.is_empty()).collect();
    let mean = |of: fn(&Outcome) -> f64| some.iter().map(|o| of(o)).sum::<f64>() / some.len().max(1) as f64;
    Quality { intents: some.len(), recall_at_5: mean(|o| o.recall), mrr: mean(|o| o.reciprocal) }
}

/// Decisions that are right: `no_match` exactly where there is nothing to find.
pub fn decided_well<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> (usize, usize) {
    let all: Vec<&Outcome> = outcomes.into_iter().collect();
    let right = |o: &&&Outcome| (o.decision == Decision::NoMatch) == o.labelled.expected.is_empty();
    (all.iter().filter(right).count(), all.len())
}
