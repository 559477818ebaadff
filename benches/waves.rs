//! Times teaching with a catalog of 1,000 capabilities: extending a ledger, and rendering the new wave (the addition to the table).
//! Invariant: every row of the table is checked as in a session. The benchmark asserts nothing about time.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::sync::Arc;

use teach::{Catalogs, Ledger, Seed, SlotStyle, TeachRequest, Teaching, render_wave};

#[path = "support/large.rs"]
mod large;
#[path = "support/rounds.rs"]
mod rounds;

const ROUNDS: usize = 60;
/// The time in milliseconds that the design allows.
const TARGET: f64 = 5.0;

fn main() {
    let catalog = catalog::read("large.yaml", &large::catalog_text()).unwrap_or_else(|rejected| panic!("{rejected}"));
    println!("{} entities, {} capabilities; target {TARGET} ms", catalog.entities.len(), catalog.capabilities.len());
    let id = catalog.id.clone();
    let names: Vec<String> = catalog.entities.keys().cloned().collect();
    let catalogs = Catalogs::from([(id.clone(), Arc::new(catalog))]);
    let all: Vec<Seed> = names.iter().map(|name| Seed::new(id.clone(), name)).collect();
    let empty = Ledger::default();
    let whole = empty.extend(&catalogs, &TeachRequest::all(&all)).unwrap();
    row("extend: all entities, nothing filtered", || drop(empty.extend(&catalogs, &TeachRequest::all(&all)).unwrap()));
    let intent = TeachRequest { intent: Some("close the old ones and make a new one"), ..TeachRequest::all(&all) };
    row("extend: all entities, writes by intent", || drop(empty.extend(&catalogs, &intent).unwrap()));
    for style in [SlotStyle::Symbols, SlotStyle::Names] {
        row(&format!("render: all of it, {style:?}"), || {
            let rendered = render_wave(style, &empty, &whole.ledger, &catalogs, &whole.wave);
            assert!(rendered.dropped.is_empty(), "{:?}", rendered.dropped);
        });
    }
    let but_one = empty.extend(&catalogs, &TeachRequest::all(&all[1..])).unwrap().ledger;
    let one = but_one.extend(&catalogs, &TeachRequest::all(&all[..1])).unwrap();
    row("extend: one entity more", || drop(but_one.extend(&catalogs, &TeachRequest::all(&all[..1])).unwrap()));
    row("render: one entity more", || {
        drop(render_wave(Teaching::default().slots, &but_one, &one.ledger, &catalogs, &one.wave));
    });
}

/// Prints the median and the shortest time of `ROUNDS` rounds, and the ratio of the median to `TARGET`.
fn row(what: &str, work: impl FnMut()) {
    let (median, best) = rounds::median_and_best(ROUNDS, work);
    println!("{what:<44} {median:>8.2} ms median {best:>8.2} ms best {:>6.2}x", median / TARGET);
}
