//! A comparison of drafts of three APIs with hand-written catalogs: kinds, keys, entities, relations.
//! The specifications are large and are fetched by `scripts/corpus.sh`. The test runs only if the variable
//! TOKAMAK_SPECIFICATIONS names their folder.

// The test prints scores for a person.
#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use catalog::{Capability, Catalog, Kind, Transport, Via};
use import::Options;

/// Returns the method and path of a capability without placeholder names: `GET /repos/{}/{}`.
fn operation(catalog: &Catalog, capability: &Capability) -> Option<String> {
    let Transport::Http(http) = &capability.transport else { return None };
    let path = format!("{}{}", catalog.base_path, http.path);
    let mut out = String::new();
    let mut in_placeholder = false;
    for c in path.chars() {
        match c {
            '{' => {
                in_placeholder = true;
                out.push_str("{}");
            }
            '}' => in_placeholder = false,
            c if !in_placeholder => out.push(c),
            _ => {}
        }
    }
    Some(format!("{} {out}", http.method.as_str()))
}

/// Returns the capabilities by the operation that they call.
fn operations(catalog: &Catalog) -> BTreeMap<String, Vec<&Capability>> {
    let mut out: BTreeMap<String, Vec<&Capability>> = BTreeMap::new();
    for capability in catalog.capabilities.values() {
        if let Some(operation) = operation(catalog, capability) {
            out.entry(operation).or_default().push(capability);
        }
    }
    out
}

/// The agreement of a draft with a hand-written catalog, in numbers of facts.
#[derive(Default)]
struct Score {
    right: usize,
    /// The number of facts in the draft.
    stated: usize,
    /// The number of facts in the hand-written catalog.
    expected: usize,
}

impl Score {
    fn of(stated: &BTreeSet<String>, expected: &BTreeSet<String>) -> Self {
        Self { right: stated.intersection(expected).count(), stated: stated.len(), expected: expected.len() }
    }

    fn precision(&self) -> f64 {
        self.right as f64 / self.stated.max(1) as f64
    }

    fn recall(&self) -> f64 {
        self.right as f64 / self.expected.max(1) as f64
    }
}

/// Facts about the operations of a catalog, each as a line of text.
struct Facts {
    /// Lines with the kind of each operation.
    kinds: BTreeSet<String>,
    /// Lines with the number of key parts of each get.
    keys: BTreeSet<String>,
    /// Lines with each pair of operations that belong to the same entity.
    pairs: BTreeSet<String>,
    /// Lines with each get and each list that a relation of the entity calls.
    relations: BTreeSet<String>,
}

fn facts(catalog: &Catalog, shared: &BTreeSet<String>) -> Facts {
    let known = operations(catalog);
    let mut facts =
        Facts { kinds: BTreeSet::new(), keys: BTreeSet::new(), pairs: BTreeSet::new(), relations: BTreeSet::new() };
    let first = |operation: &String| known[operation][0];
    for operation in shared {
        let capability = first(operation);
        facts.kinds.insert(format!("{operation} is {}", capability.kind.word()));
        if capability.kind == Kind::Get {
            let key = catalog.entity(&capability.entity).map_or(0, |entity| entity.key.len());
            facts.keys.insert(format!("{operation} by {key}"));
        }
        for other in shared.iter().filter(|other| *other > operation && first(other).entity == capability.entity) {
            facts.pairs.insert(format!("{operation} with {other}"));
        }
    }
    for entity in catalog.entities.values() {
        let get = catalog.get_of(&entity.name).and_then(|get| operation(catalog, get));
        for relation in entity.relations.values() {
            let Via::Call { capability, .. } = &relation.via else { continue };
            let list = catalog.capability(capability).and_then(|list| operation(catalog, list));
            if let (Some(get), Some(list)) = (&get, list)
                && shared.contains(get)
                && shared.contains(&list)
            {
                facts.relations.insert(format!("{get} leads to {list}"));
            }
        }
    }
    facts
}

fn specifications() -> Option<PathBuf> {
    std::env::var_os("TOKAMAK_SPECIFICATIONS").map(PathBuf::from)
}

fn compare(name: &str, specification: &Path) -> Vec<(&'static str, Score)> {
    let hand = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../catalogs/{name}.yaml"));
    let hand = catalog::read(name, &std::fs::read_to_string(hand).unwrap()).unwrap();
    let made = import::openapi(&std::fs::read(specification).unwrap(), &Options::default()).unwrap().catalog;
    let all = |catalog: &Catalog| operations(catalog).into_keys().collect::<BTreeSet<String>>();
    let shared: BTreeSet<String> = all(&hand).intersection(&all(&made)).cloned().collect();
    let stated = facts(&made, &shared);
    let expected = facts(&hand, &shared);
    let scores = vec![
        ("operations", Score { right: shared.len(), stated: shared.len(), expected: all(&hand).len() }),
        ("kinds", Score::of(&stated.kinds, &expected.kinds)),
        ("keys", Score::of(&stated.keys, &expected.keys)),
        ("entities", Score::of(&stated.pairs, &expected.pairs)),
        ("relations", Score::of(&stated.relations, &expected.relations)),
    ];
    for (what, score) in &scores {
        let Score { right, stated, expected } = score;
        println!(
            "{name:8} {what:11} precision {:.2} recall {:.2}  ({right} of {stated} stated, {expected} expected)",
            score.precision(),
            score.recall()
        );
    }
    for line in expected.kinds.difference(&stated.kinds).chain(expected.keys.difference(&stated.keys)) {
        println!("{name:8} not found: {line}");
    }
    scores
}

#[test]
fn drafts_agree_with_catalogs_that_people_wrote() {
    let Some(folder) = specifications() else {
        println!("TOKAMAK_SPECIFICATIONS is not set: nothing is compared");
        return;
    };
    let api = folder.join("directory/package/api");
    let github = folder.join("github/package/generated/api.github.com.json");
    for (name, path) in
        [("github", github), ("stripe", api.join("stripe.com.json")), ("slack", api.join("slack.com.json"))]
    {
        let scores = compare(name, &path);
        for (what, score) in scores.iter().filter(|(what, _)| *what != "relations" && *what != "operations") {
            assert!(score.precision() >= 0.5 && score.recall() >= 0.5, "{name}: {what}");
        }
    }
}
