//! Tests of tables of the shipped catalogs: every entity can be taught alone and together with all entities of its catalog, in
//! both styles.

use std::collections::BTreeSet;

use catalog::Catalog;
use teach::{Catalogs, Ledger, Seed, SeedError, SlotStyle, TeachRequest, render_wave};

use crate::support;

/// Teaches the entities in one wave and returns the table; `None` if a single entity is refused because its rows only occur
/// inside other rows.
fn teach(catalogs: &Catalogs, catalog: &Catalog, entities: &[&String], style: SlotStyle) -> Option<String> {
    let seeds: Vec<Seed> = entities.iter().map(|entity| Seed::new(catalog.id.clone(), *entity)).collect();
    let extended = match Ledger::default().extend(catalogs, &TeachRequest::all(&seeds)) {
        Ok(extended) => extended,
        // An entity whose rows only occur inside rows of other entities cannot be taught alone. The error names those other
        // entities.
        Err(SeedError::OnlyAPart { holders, .. }) if entities.len() == 1 && !holders.is_empty() => return None,
        Err(error) => panic!("{} {entities:?}: {error}", catalog.id),
    };
    let rendered = render_wave(style, &Ledger::default(), &extended.ledger, catalogs, &extended.wave);
    assert_eq!(rendered.dropped, Vec::<String>::new(), "{} {entities:?}", catalog.id);
    if style == SlotStyle::Symbols {
        assert_all_slots_named(&rendered.text, catalog);
    }
    Some(rendered.text)
}

/// Asserts that each used slot is explained in some row, in a list of fields or as `p7 name`.
fn assert_all_slots_named(text: &str, catalog: &Catalog) {
    let symbols = |text: &str| -> BTreeSet<usize> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric());
        words.filter_map(|word| word.strip_prefix('p')?.parse::<usize>().ok()).collect()
    };
    let mut used: BTreeSet<usize> = BTreeSet::new();
    let mut named: BTreeSet<usize> = BTreeSet::new();
    for (expr, meaning) in text.lines().filter_map(|line| line.split_once('\t')) {
        used.extend(symbols(expr));
        let projected = expr.rsplit_once('[').and_then(|(_, list)| list.strip_suffix(']')).unwrap_or_default();
        named.extend(symbols(projected));
        for part in meaning.split([',', '·']).map(|part| part.trim().trim_start_matches("opt ")) {
            match part.split_once(' ') {
                Some((symbol, _)) => named.extend(symbols(symbol)),
                None => used.extend(symbols(part)),
            }
        }
    }
    let unnamed: Vec<&usize> = used.difference(&named).collect();
    assert!(unnamed.is_empty(), "{}: {unnamed:?} are nowhere named in\n{text}", catalog.id);
}

#[test]
fn no_line_of_a_shipped_catalog_is_dropped() {
    let catalogs = support::catalogs();
    for catalog in catalogs.values() {
        let all: Vec<&String> = catalog.entities.keys().collect();
        for style in [SlotStyle::Symbols, SlotStyle::Names] {
            for entity in &all {
                teach(&catalogs, catalog, &[entity], style);
            }
            let text = teach(&catalogs, catalog, &all, style).unwrap();
            println!("{:20} {style:?} {:3} lines {:6} chars", catalog.id, text.lines().count(), text.len());
            for entity in &all {
                let is_in_table =
                    ["\t{} · ", "\t{}\n", " · {}: "].iter().any(|form| text.contains(&form.replace("{}", entity)));
                assert!(is_in_table, "{}: {entity} is not in its table\n{text}", catalog.id);
            }
        }
    }
}
