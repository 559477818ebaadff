//! Every entity of every shipped catalog can be taught: alone, and all of a catalog together.

// why: a failed expectation is the test's own failure.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::Catalog;
use teach::{Catalogs, Ledger, Seed, render_wave};

fn shipped() -> Catalogs {
    let files = std::fs::read_dir("../../catalogs").unwrap().map(|entry| entry.unwrap().path());
    let read = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        catalog::read(&path.display().to_string(), &text).unwrap_or_else(|rejected| panic!("{rejected}"))
    };
    let yaml = files.filter(|path| path.extension().is_some_and(|e| e == "yaml"));
    yaml.map(read).map(|c: Catalog| (c.id.clone(), Arc::new(c))).collect::<BTreeMap<_, _>>()
}

fn taught(catalogs: &Catalogs, catalog: &Catalog, entities: &[&String]) -> String {
    let seed = |entity: &&String| Seed { catalog: catalog.id.clone(), entity: (*entity).clone() };
    let seeds: Vec<Seed> = entities.iter().map(seed).collect();
    let extended = Ledger::default().extend(catalogs, &seeds).unwrap();
    let rendered = render_wave(&Ledger::default(), &extended.ledger, catalogs, &extended.wave);
    assert_eq!(rendered.dropped, Vec::<String>::new(), "{} {entities:?}", catalog.id);
    rendered.text
}

#[test]
fn no_line_of_a_shipped_catalog_is_dropped() {
    let catalogs = shipped();
    for catalog in catalogs.values() {
        let all: Vec<&String> = catalog.entities.keys().collect();
        for entity in &all {
            taught(&catalogs, catalog, &[entity]);
        }
        let text = taught(&catalogs, catalog, &all);
        println!("{:20} {:3} lines {:6} chars", catalog.id.as_str(), text.lines().count(), text.len());
        // What nothing reads by itself is reached through the row that holds it.
        let read = |name: &str| catalog.queries(name).next().is_some() || catalog.get_of(name).is_some();
        for entity in all.iter().filter(|name| read(name)) {
            assert!(text.contains(&format!("{entity} · ")), "{}: {entity} is not in its table", catalog.id);
        }
    }
}
