//! How well and how fast discovery finds what an intent is about: quality over the labelled intents, time over many catalogs.

// why: a benchmark prints, and a failed expectation ends it.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

#[path = "../crates/teach/tests/labelled/mod.rs"]
mod labelled;

use labelled::{Outcome, decided_well, intents, outcomes, quality, shipped};
use teach::discovery::Index;

fn main() {
    let all = outcomes(&Index::new(&shipped()), &intents());
    println!("{:38} {:>8} {:>10} {:>8}", "", "intents", "recall@5", "MRR");
    for split in ["dev", "held"] {
        line(split, all.iter().filter(|o| o.labelled.split == split));
        for kind in ["literal", "paraphrase", "multi", "near_miss"] {
            let of_kind = |o: &&Outcome| o.labelled.split == split && o.labelled.kind == kind;
            line(&format!("  {split}, {kind}"), all.iter().filter(of_kind));
        }
        let nothing = |o: &&Outcome| o.labelled.split == split && o.labelled.expected.is_empty();
        let (right, of) = decided_well(all.iter().filter(nothing));
        let (right_all, of_all) = decided_well(all.iter().filter(|o| o.labelled.split == split));
        println!("  {split}: no_match said for {right} of {of} with nothing to find; right in {right_all} of {of_all}");
    }
    let split = std::env::var("MISSES").unwrap_or_default();
    for o in all.iter().filter(|o| split.is_empty() || o.labelled.split == split) {
        let missed = !o.labelled.expected.is_empty() && (o.recall < 1.0 || o.reciprocal < 0.5);
        if missed {
            println!(
                "{} {} | {} | wanted {:?} got {}",
                o.labelled.id,
                o.labelled.split,
                o.labelled.intent,
                o.labelled.expected,
                o.rows[..o.rows.len().min(6)].join(" ")
            );
        }
        if (o.decision == teach::discovery::Decision::NoMatch) != o.labelled.expected.is_empty() {
            println!(
                "{} {} | {} | decided {:?} {:?}",
                o.labelled.id,
                o.labelled.split,
                o.labelled.intent,
                o.decision,
                o.rows.first()
            );
        }
    }
}

fn line<'a>(name: &str, of: impl Iterator<Item = &'a Outcome>) {
    let quality = quality(of);
    println!("{name:38} {:>8} {:>10.3} {:>8.3}", quality.intents, quality.recall_at_5, quality.mrr);
}
