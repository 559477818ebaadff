//! GraphQL requests: the document with the needed fields selected, and its variables.
//! Invariant: values travel as variables only; the document holds nothing that came from a program.

use std::collections::BTreeMap;

use base::Payload;
use serde_json::{Map, Value, json};

use super::{Ask, Values, body};
use crate::model::{Catalog, DocumentPiece, Entity, Graphql, Source, Via};
use crate::path::DataPath;

pub(super) fn body(catalog: &Catalog, values: &Values<'_>, graphql: &Graphql, ask: &Ask<'_>) -> Payload {
    let mut document = String::new();
    for piece in &graphql.document.pieces {
        match piece {
            DocumentPiece::Literal(text) => document.push_str(text),
            DocumentPiece::Selection(entity) => {
                if let Some(entity) = catalog.entity(entity) {
                    document.push_str(&selection(catalog, entity, ask.fields));
                }
            }
        }
    }
    let mut variables: Map<String, Value> = graphql
        .variables
        .iter()
        .filter_map(|(name, shape)| Some((name.clone(), body::fill_shape(values, shape)?)))
        .collect();
    if let (Some(paging), Some(page)) = (&values.capability.paging, ask.page) {
        for (name, value) in paging.ask(page) {
            variables.insert(name.to_owned(), value);
        }
    }
    Payload::json(json!({"query": document, "variables": variables}))
}

/// The paths of the needed fields as nested selections: `id owner { id }`. The key is always among them.
fn selection(catalog: &Catalog, entity: &Entity, needed: Option<&[String]>) -> String {
    let mut tree = Tree::default();
    add_entity(catalog, entity, needed, &mut tree);
    tree.write()
}

fn add_entity(catalog: &Catalog, entity: &Entity, needed: Option<&[String]>, tree: &mut Tree) {
    let wanted = |name: &String| needed.is_none_or(|needed| needed.contains(name)) || entity.key.contains(name);
    for field in entity.fields.values().filter(|f| wanted(&f.name)) {
        match &field.source {
            Source::Paths(paths) => paths.iter().for_each(|path| tree.add(path)),
            Source::Parts(parts) => parts.values().for_each(|path| tree.add(path)),
            Source::Header(_) => {}
        }
    }
    // Rows that the payload embeds are selected only where they were asked for by name, or the tree would never end.
    for relation in entity.relations.values().filter(|r| needed.is_some_and(|n| n.contains(&r.name))) {
        if let (Via::Embedded { path }, Some(target)) = (&relation.via, catalog.entity(&relation.target)) {
            let mut inner = Tree::default();
            add_entity(catalog, target, None, &mut inner);
            tree.graft(path, inner);
        }
    }
}

#[derive(Default)]
struct Tree(BTreeMap<String, Tree>);

impl Tree {
    fn add(&mut self, path: &DataPath) {
        self.graft(path, Tree::default());
    }

    fn graft(&mut self, path: &DataPath, inner: Tree) {
        // An index into a list is no field of its own.
        let mut at = self;
        for name in path.names().filter(|name| name.parse::<usize>().is_err()) {
            at = at.0.entry(name.to_owned()).or_default();
        }
        at.0.extend(inner.0);
    }

    fn write(&self) -> String {
        let one = |(name, inner): (&String, &Tree)| {
            if inner.0.is_empty() { name.clone() } else { format!("{name} {{ {} }}", inner.write()) }
        };
        self.0.iter().map(one).collect::<Vec<_>>().join(" ")
    }
}
