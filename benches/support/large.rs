//! Generates a large catalog for benchmarks, with 125 entities and 1,000 capabilities of all kinds.
//! Invariant: the text of the catalog is the same on every machine.

use std::fmt::Write as _;

const ENTITIES: usize = 125;

/// Makes a catalog with eight capabilities for each entity, of all kinds, over HTTP and GraphQL.
pub fn catalog_text() -> String {
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
