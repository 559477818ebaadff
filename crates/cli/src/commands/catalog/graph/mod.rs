//! The entities of a catalog as a graph: nodes with their keys, edges with the names of relations.
//! Invariant: both forms draw the same edges; only what is between the entities asked for is drawn.

mod mermaid;
mod svg;

use catalog::{Catalog, Entity};

pub use mermaid::mermaid;
pub use svg::{drawn, svg};

/// A relation between two drawn entities.
struct Edge<'a> {
    from: &'a str,
    to: &'a str,
    name: &'a str,
    many: bool,
}

fn nodes<'a>(catalog: &'a Catalog, entities: &'a [&'a str]) -> impl Iterator<Item = &'a Entity> {
    entities.iter().filter_map(|name| catalog.entity(name))
}

fn edges<'a>(catalog: &'a Catalog, entities: &'a [&'a str]) -> Vec<Edge<'a>> {
    let of = |entity: &'a Entity| {
        entity.relations.values().map(move |r| Edge { from: &entity.name, to: &r.target, name: &r.name, many: r.many })
    };
    nodes(catalog, entities).flat_map(of).filter(|edge| entities.contains(&edge.to)).collect()
}
