//! What a large catalog costs to load: YAML text to a sealed catalog, its canonical form with its digest, and back.
//! Invariant: the text is made here, the same on every machine; nothing is asserted about time.

// why: a benchmark has no caller to hand an error to; it stops with the line that failed.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use base::Digest;

const ENTITIES: usize = 125;
const ROUNDS: usize = 40;

fn main() {
    let text = catalog_text();
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

/// Prints the median and the best of some rounds.
fn row(what: &str, mut work: impl FnMut()) {
    work();
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            work();
            started.elapsed()
        })
        .collect();
    times.sort();
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    println!("{what:<44} {:>8.2} ms median {:>8.2} ms best", ms(times[ROUNDS / 2]), ms(times[0]));
}

/// Eight capabilities for each entity, of all kinds, over HTTP and GraphQL.
fn catalog_text() -> String {
    let mut text = "catalog: large\nversion: 1\ntitle: A large catalog\norigin: https://api.example.com/v1\n\
         auth: {bearer: LARGE_TOKEN}\ntypes:\n  State: {select: [open, doing, done]}\n  Money: {object: {amount: {type: integer, \
         required: true}, currency: string}}\nentities:\n"
        .to_owned();
    for n in 0..ENTITIES {
        let next = (n + 1) % ENTITIES;
        write!(
            text,
            "  Kind{n}:\n    about: the {n}th kind of thing that this API has\n    key: [id]\n    fields:\n      id: string\n      \
             name: string\n      state: State\n      price: Money\n      next: {{ref: Kind{next}, path: next.id}}\n      \
             labels: {{array: string, path: \"labels[].name\"}}\n      made: {{type: unix, path: [made_at, created_at]}}\n      \
             votes: integer\n      body: {{type: markdown, show: artifact}}\n    relations:\n      next: {{one: Kind{next}, key: \
             next}}\n      others: {{many: Kind{next}, by: kind{next}_of}}\n"
        )
        .unwrap();
    }
    text.push_str("capabilities:\n");
    for n in 0..ENTITIES {
        let before = (n + ENTITIES - 1) % ENTITIES;
        write!(
            text,
            "  kind{n}_list:\n    query: Kind{n}\n    about: list them\n    params: {{state: State, name: string, tag: {{array: \
             string, list: repeat}}}}\n    http: GET /kind{n}?state={{state}}&name={{name}}&tag={{tag}}\n    rows: data\n    paging: \
             {{page: page, size: {{send: per_page, max: 100}}, total: total}}\n  kind{n}_of:\n    query: Kind{n}\n    params: \
             {{parent: {{ref: Kind{before}, required: true}}}}\n    http: GET /kind{before}/{{parent}}/kind{n}\n    paging: {{link: \
             next}}\n  kind{n}_search: {{search: Kind{n}, text: q, http: \"GET /search/kind{n}?q={{q}}\", rows: items, paging: \
             {{cursor: next, send: cursor}}}}\n  kind{n}_get: {{get: Kind{n}, http: \"GET /kind{n}/{{id}}\"}}\n  \
             kind{n}_open:\n    create: Kind{n}\n    about: make one\n    words: [make, raise]\n    params: {{name: {{type: string, \
             required: true}}, price: Money, body: markdown}}\n    http: POST /kind{n}\n    body: {{name: \"{{name}}\", price: \
             \"{{price}}\", text: {{markdown: \"{{body}}\"}}}}\n    idempotency: {{header: Idempotency-Key}}\n    undo: \
             kind{n}_close\n  kind{n}_rename:\n    update: Kind{n}\n    params: {{name: {{type: string, required: true}}}}\n    \
             graphql: \"mutation($id: ID!, $name: String!) {{ rename(id: $id, name: $name) {{ ...Kind{n} }} }}\"\n    row: \
             data.rename\n  kind{n}_close:\n    action: Kind{n}\n    params: {{note: {{type: markdown, required: true}}}}\n    http: \
             POST /kind{n}/{{id}}/close\n    form: {{note: \"{{note}}\"}}\n    effect: it is closed\n  kind{n}_remove: {{delete: \
             Kind{n}, http: \"DELETE /kind{n}/{{id}}\"}}\n"
        )
        .unwrap();
    }
    text
}
