//! Times the loading of a large catalog: from YAML text to a checked catalog, to its canonical form with digest, and from this form.
//! Invariant: the catalog is generated and is the same on every machine. The benchmark asserts nothing about time.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use base::Digest;

#[path = "support/large.rs"]
mod large;
#[path = "support/rounds.rs"]
mod rounds;

const ROUNDS: usize = 40;

fn main() {
    let text = large::catalog_text();
    let catalog = catalog::read("large.yaml", &text).unwrap_or_else(|rejected| panic!("{rejected}"));
    let canonical = catalog.canonical();
    let digest = Digest::of(canonical.as_bytes());
    println!(
        "{} entities, {} capabilities, {} KiB of YAML, {} KiB canonical",
        catalog.entities.len(),
        catalog.capabilities.len(),
        text.len() / 1024,
        canonical.len() / 1024
    );
    row("load: YAML text to sealed catalog", || drop(catalog::read("large.yaml", &text).unwrap()));
    row("canonical form and digest", || {
        std::hint::black_box(Digest::of(catalog.canonical().as_bytes()));
    });
    row("from_canonical (digest checked)", || drop(catalog::from_canonical(canonical.as_bytes(), digest).unwrap()));
    let broken = text.replacen("{ref: Kind7", "{ref: Kimd7", 1);
    row("refuse: one dangling name, with its place", || drop(catalog::read("large.yaml", &broken).unwrap_err()));
}

/// Prints the median and the shortest time of `ROUNDS` rounds.
fn row(what: &str, work: impl FnMut()) {
    let (median, best) = rounds::median_and_best(ROUNDS, work);
    println!("{what:<44} {median:>8.2} ms median {best:>8.2} ms best");
}
