//! Golden cases of the teaching table: each input line is one `plasm_context` call, its words the seeds (`api:Entity`).

// why: a failed expectation is the test's own failure.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::Catalog;
use teach::{Catalogs, Ledger, Seed, render_wave};

fn catalogs() -> Catalogs {
    let demo = catalog::read("demo.yaml", include_str!("../../../catalogs/demo.yaml")).unwrap();
    let text = include_str!("../../../catalogs/demo.yaml").replace("catalog: demo", "catalog: other");
    let other = catalog::read("other.yaml", &text).unwrap();
    [demo, other].into_iter().map(|c: Catalog| (c.id.clone(), Arc::new(c))).collect::<BTreeMap<_, _>>()
}

fn seeds(line: &str) -> Vec<Seed> {
    let seed = |word: &str| {
        let (api, entity) = word.split_once(':').unwrap();
        Seed { catalog: base::CatalogId::parse(api).unwrap(), entity: entity.to_owned() }
    };
    line.split_whitespace().map(seed).collect()
}

#[test]
fn golden_table() {
    let catalogs = catalogs();
    testkit::golden::run("../../tests/teach", |case| {
        let mut ledger = Ledger::default();
        let mut out = Vec::new();
        for line in case.input.lines() {
            match ledger.extend(&catalogs, &seeds(line)) {
                Ok(extended) if extended.wave.is_empty() => out.push("(nothing new)".to_owned()),
                Ok(extended) => {
                    let rendered = render_wave(&ledger, &extended.ledger, &catalogs, &extended.wave);
                    assert_eq!(rendered.dropped, Vec::<String>::new(), "every taught line checks");
                    out.push(rendered.text);
                    ledger = extended.ledger;
                }
                Err(error) => out.push(error.to_string()),
            }
        }
        out.join("\n")
    });
}

/// The wave does not depend on the order of the seeds, and no entry ever changes.
#[test]
fn symbols_are_stable_and_order_free() {
    let catalogs = catalogs();
    let all = "demo:Ticket other:Person demo:Person other:Ticket demo:Comment";
    let forward = Ledger::default().extend(&catalogs, &seeds(all)).unwrap();
    let backward: Vec<&str> = all.split(' ').rev().collect();
    let backward = Ledger::default().extend(&catalogs, &seeds(&backward.join(" "))).unwrap();
    assert_eq!(forward.ledger, backward.ledger);
    assert_eq!(forward.wave, backward.wave);
    let mut ledger = Ledger::default();
    let mut meanings: BTreeMap<String, String> = BTreeMap::new();
    for seed in all.split(' ') {
        ledger = ledger.extend(&catalogs, &seeds(seed)).unwrap().ledger;
        let scope = ledger.scope(&catalogs);
        let entities = scope.entities.iter().map(|e| (e.symbol.clone(), format!("{}:{}", e.catalog.id, e.entity)));
        let slots = scope.slots.iter().map(|(symbol, m)| (symbol.clone(), format!("{}:{}", m.catalog, m.name)));
        for (symbol, meaning) in entities.chain(slots) {
            let first = meanings.entry(symbol.clone()).or_insert_with(|| meaning.clone());
            assert_eq!(*first, meaning, "{symbol} changed its meaning");
        }
    }
}
