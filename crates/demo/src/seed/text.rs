//! Composes the titles, bodies and labels of the generated tickets from the phrases of `words`.
//! Invariants: a text depends only on the random numbers. Some texts contain quotes, tabs, line breaks, backslashes and characters of
//! other scripts, so that a client is tested with them.

use super::prng::Prng;
use super::words::{KINDS, LABELS, MESSAGES, PARAGRAPHS, SERVICES, WHEN};

/// The texts of a new ticket.
pub struct TicketTexts {
    pub title: String,
    pub body: String,
    pub labels: Vec<String>,
}

/// Composes the texts of one ticket. They are about one of the `places`, which are parts of the project's product.
pub fn compose(prng: &mut Prng, places: &[&str]) -> TicketTexts {
    let place = *prng.pick(places);
    // Half of all tickets are bugs; the others have any kind.
    let (kind, titles) = if prng.chance(50) { KINDS[0] } else { *prng.pick(&KINDS) };
    let mut title = prng.pick(titles).replace("{place}", place);
    if kind == KINDS[0].0 {
        let when: &&str = prng.pick(&WHEN);
        title.push_str(when);
    }
    let labels = labels(prng, kind);
    TicketTexts { title: capitalised(&title), body: body(prng, place), labels }
}

fn labels(prng: &mut Prng, kind: &str) -> Vec<String> {
    // Some tickets have no label, because clients must cope with an empty list.
    if prng.chance(12) {
        return Vec::new();
    }
    let mut labels = vec![kind.to_owned()];
    for _ in 0..prng.below(3) {
        labels.push((*prng.pick(&LABELS)).to_owned());
    }
    labels.sort();
    labels.dedup();
    labels
}

fn body(prng: &mut Prng, place: &str) -> String {
    if prng.chance(4) {
        return String::new();
    }
    let mut paragraphs: Vec<String> = Vec::new();
    let wanted = 1 + prng.below(4) as usize;
    while paragraphs.len() < wanted {
        let paragraph = prng.pick(&PARAGRAPHS).replace("{place}", place);
        if !paragraphs.contains(&paragraph) {
            paragraphs.push(paragraph);
        }
    }
    // A few logs make bodies of several thousand characters, which clients must cut.
    if prng.chance(3) {
        paragraphs.push(log(prng));
    }
    paragraphs.join("\n\n")
}

fn log(prng: &mut Prng) -> String {
    let mut block = String::from("```\n");
    for line in 0..80 + prng.below(60) {
        let (service, message) = (prng.pick(&SERVICES), prng.pick(&MESSAGES));
        block.push_str(&format!("{line:04}\t{service}\t{message}\n"));
    }
    block.push_str("```");
    block
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
