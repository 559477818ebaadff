//! The graph of a catalog's entities: each node is an entity with its key fields, each edge a relation with its name.
//! Invariant: Mermaid and SVG draw the same edges, and only edges between the chosen entities.

mod mermaid;
mod svg;

use catalog::{Catalog, Entity};

pub use mermaid::mermaid;
pub use svg::{draw_boxes, svg};

/// A relation between two drawn entities.
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    name: &'a str,
    /// Whether the relation leads from one entity to many.
    many: bool,
}

fn nodes<'a>(catalog: &'a Catalog, entities: &'a [&'a str]) -> impl Iterator<Item = &'a Entity> {
    entities.iter().filter_map(|name| catalog.entity(name))
}

fn edges<'a>(catalog: &'a Catalog, entities: &'a [&'a str]) -> Vec<Edge<'a>> {
    let edges_of = |entity: &'a Entity| {
        entity.relations.values().map(move |r| Edge { from: &entity.name, to: &r.target, name: &r.name, many: r.many })
    };
    nodes(catalog, entities).flat_map(edges_of).filter(|edge| entities.contains(&edge.to)).collect()
}
