//! Drafts of three APIs against the catalogs that people wrote for them: the same operations must be of the same kind, belong
//! together in the same way, have keys of as many parts and be reached by the same relations.
//! The specifications are large and fetched (`scripts/corpus.sh`), so these run where TOKAMAK_SPECIFICATIONS says where they are.

// why: what was measured is printed.
#![allow(clippy::print_stdout)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use catalog::{Capability, Catalog, Kind, Transport, Via};
use import::Options;

/// `GET /repos/{}/{}`: how an operation is recognised whatever its holes are called.
fn operation(catalog: &Catalog, capability: &Capability) -> Option<String> {
    let Transport::Http(http) = &capability.transport else { return None };
    let path = format!("{}{}", catalog.base_path, http.path);
    let mut out = String::new();
    let mut hole = false;
    for c in path.chars() {
        match c {
            '{' => {
                hole = true;
                out.push_str("{}");
            }
            '}' => hole = false,
            c if !hole => out.push(c),
            _ => {}
        }
    }
    Some(format!("{} {out}", http.method.as_str()))
}

/// Operation to its capabilities.
fn operations(catalog: &Catalog) -> BTreeMap<String, Vec<&Capability>> {
    let mut out: BTreeMap<String, Vec<&Capability>> = BTreeMap::new();
    for capability in catalog.capabilities.values() {
        if let Some(operation) = operation(catalog, capability) {
            out.entry(operation).or_default().push(capability);
        }
    }
    out
}

#[derive(Default)]
struct Score {
    right: usize,
    said: usize,
    wanted: usize,
}

impl Score {
    fn of(said: &BTreeSet<String>, wanted: &BTreeSet<String>) -> Self {
        Self { right: said.intersection(wanted).count(), said: said.len(), wanted: wanted.len() }
    }

    fn precision(&self) -> f64 {
        self.right as f64 / self.said.max(1) as f64
    }

    fn recall(&self) -> f64 {
        self.right as f64 / self.wanted.max(1) as f64
    }
}

/// Facts about the operations that both know, each as a line.
struct Facts {
    kinds: BTreeSet<String>,
    keys: BTreeSet<String>,
    together: BTreeSet<String>,
    relations: BTreeSet<String>,
}

fn facts(catalog: &Catalog, shared: &BTreeSet<String>) -> Facts {
    let known = operations(catalog);
    let mut facts =
        Facts { kinds: BTreeSet::new(), keys: BTreeSet::new(), together: BTreeSet::new(), relations: BTreeSet::new() };
    let first = |operation: &String| known[operation][0];
    for operation in shared {
        let capability = first(operation);
        facts.kinds.insert(format!("{operation} is {}", capability.kind.word()));
        if capability.kind == Kind::Get {
            let key = catalog.entity(&capability.entity).map_or(0, |entity| entity.key.len());
            facts.keys.insert(format!("{operation} by {key}"));
        }
        for other in shared.iter().filter(|other| *other > operation && first(other).entity == capability.entity) {
            facts.together.insert(format!("{operation} with {other}"));
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
    let both = |catalog: &Catalog| operations(catalog).into_keys().collect::<BTreeSet<String>>();
    let shared: BTreeSet<String> = both(&hand).intersection(&both(&made)).cloned().collect();
    let (said, wanted) = (facts(&made, &shared), facts(&hand, &shared));
    let scores = vec![
        ("operations", Score { right: shared.len(), said: shared.len(), wanted: both(&hand).len() }),
        ("kinds", Score::of(&said.kinds, &wanted.kinds)),
        ("keys", Score::of(&said.keys, &wanted.keys)),
        ("entities", Score::of(&said.together, &wanted.together)),
        ("relations", Score::of(&said.relations, &wanted.relations)),
    ];
    for (what, score) in &scores {
        let Score { right, said, wanted } = score;
        println!(
            "{name:8} {what:11} precision {:.2} recall {:.2}  ({right} of {said} said, {wanted} wanted)",
            score.precision(),
            score.recall()
        );
    }
    for line in wanted.kinds.difference(&said.kinds).chain(wanted.keys.difference(&said.keys)) {
        println!("{name:8} not found: {line}");
    }
    scores
}

#[test]
fn drafts_mean_what_people_wrote() {
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
