//! The body of a GraphQL request: the document with selections of the needed fields, and the variables.
//! Invariant: an argument is sent only in a variable. The document contains no text that a program wrote.

use std::collections::BTreeMap;

use base::Payload;
use serde_json::{Map, Value, json};

use super::{BindInput, CallValues, body};
use crate::model::{Catalog, DocumentPiece, Entity, FieldSource, Graphql, Via};
use crate::path::DataPath;

/// Makes the JSON body with `query` and `variables`.
pub(super) fn make_body(
    catalog: &Catalog,
    values: &CallValues<'_>,
    graphql: &Graphql,
    input: &BindInput<'_>,
) -> Payload {
    let mut document = String::new();
    for piece in &graphql.document.pieces {
        match piece {
            DocumentPiece::Literal(text) => document.push_str(text),
            DocumentPiece::Selection(entity) => {
                if let Some(entity) = catalog.entity(entity) {
                    document.push_str(&write_selection(catalog, entity, input.fields));
                }
            }
        }
    }
    let mut variables: Map<String, Value> = graphql
        .variables
        .iter()
        .filter_map(|(name, shape)| Some((name.clone(), body::fill_value(values, shape)?)))
        .collect();
    if let (Some(paging), Some(page)) = (&values.capability.paging, input.page) {
        for (name, value) in paging.page_params(page) {
            variables.insert(name.to_owned(), value);
        }
    }
    Payload::json(json!({"query": document, "variables": variables}))
}

/// Writes the selection of the needed fields, such as `id owner { id }`. The fields of the key are always selected,
/// because every row needs a complete key.
fn write_selection(catalog: &Catalog, entity: &Entity, needed: Option<&[String]>) -> String {
    let mut tree = SelectionTree::default();
    select_entity(catalog, entity, needed, &mut tree);
    tree.write()
}

fn select_entity(catalog: &Catalog, entity: &Entity, needed: Option<&[String]>, tree: &mut SelectionTree) {
    let is_selected = |name: &String| needed.is_none_or(|needed| needed.contains(name)) || entity.key.contains(name);
    for field in entity.fields.values().filter(|f| is_selected(&f.name)) {
        match &field.source {
            FieldSource::Paths(paths) => paths.iter().for_each(|path| tree.add(path)),
            FieldSource::Parts(parts) => parts.values().for_each(|path| tree.add(path)),
            FieldSource::Header(_) => {}
        }
    }
    // Embedded rows are selected only if the caller names their relation. Two entities may embed each other, so
    // selecting every embedded entity would never end.
    for relation in entity.relations.values().filter(|r| needed.is_some_and(|n| n.contains(&r.name))) {
        if let (Via::Embedded { path }, Some(target)) = (&relation.via, catalog.entity(&relation.target)) {
            let mut target_tree = SelectionTree::default();
            select_entity(catalog, target, None, &mut target_tree);
            tree.add_below(path, target_tree);
        }
    }
}

/// A GraphQL selection as a tree: the selected fields by name, each with its own selection.
#[derive(Default)]
struct SelectionTree(BTreeMap<String, SelectionTree>);

impl SelectionTree {
    fn add(&mut self, path: &DataPath) {
        self.add_below(path, SelectionTree::default());
    }

    /// Selects the fields along a path, and the selections of `subtree` inside the last field.
    fn add_below(&mut self, path: &DataPath, subtree: SelectionTree) {
        let mut target = self;
        // A number in a path is an index into a list. GraphQL selects a list by its name, so the number is left out.
        for name in path.names().filter(|name| name.parse::<usize>().is_err()) {
            target = target.0.entry(name.to_owned()).or_default();
        }
        target.0.extend(subtree.0);
    }

    fn write(&self) -> String {
        let write_field = |(name, subtree): (&String, &SelectionTree)| {
            if subtree.0.is_empty() { name.clone() } else { format!("{name} {{ {} }}", subtree.write()) }
        };
        self.0.iter().map(write_field).collect::<Vec<_>>().join(" ")
    }
}
