//! Draws graphs as SVG pictures: the graph of a catalog's entities, and any boxes with arrows.
//! Invariant: the names of a catalog are escaped in the picture. Relations between the same two entities are drawn as one edge.

use std::collections::BTreeMap;

use catalog::{Catalog, Entity};
use layout::backends::svg::SVGWriter;
use layout::core::base::Orientation;
use layout::core::color::Color;
use layout::core::geometry::Point;
use layout::core::style::StyleAttr;
use layout::std_shapes::shapes::{Arrow, Element, ShapeKind};
use layout::topo::layout::VisualGraph;

use super::{edges, nodes};

/// The largest number of boxes, and also of edges. The layout of this many takes one or two seconds; twice as many take minutes.
const MAX_BOXES: usize = 150;

/// Draws the graph of these entities. Returns `None` if the graph is too large, or if the layout library panics on its shape.
pub fn svg(catalog: &Catalog, entities: &[&str]) -> Option<String> {
    let labels: Vec<(&str, String)> = nodes(catalog, entities).map(|e| (e.name.as_str(), label(e))).collect();
    let mut names: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    let position = |name: &str| labels.iter().position(|(node, _)| *node == name);
    for edge in edges(catalog, entities) {
        let (Some(from), Some(to)) = (position(edge.from), position(edge.to)) else { continue };
        let many = if edge.many { " *" } else { "" };
        names.entry((from, to)).or_default().push(format!("{}{many}", edge.name));
    }
    let labels: Vec<String> = labels.into_iter().map(|(_, label)| label).collect();
    let edges: Vec<(usize, usize, String)> =
        names.into_iter().map(|((from, to), names)| (from, to, names.join(", "))).collect();
    draw_boxes(labels, edges)
}

/// Draws boxes with these labels, and an arrow for each edge: from box, to box, label. Returns `None` if the graph is too large or the
/// layout library panics.
pub fn draw_boxes(labels: Vec<String>, edges: Vec<(usize, usize, String)>) -> Option<String> {
    if labels.len() > MAX_BOXES || edges.len() > MAX_BOXES {
        return None;
    }
    std::panic::catch_unwind(move || lay_out(&labels, &edges)).ok()
}

/// Returns the label of an entity's box: the name, and the key fields on the next line.
fn label(entity: &Entity) -> String {
    format!("{}\n{}", entity.name, entity.key.join(", "))
}

fn lay_out(labels: &[String], edges: &[(usize, usize, String)]) -> String {
    let mut graph = VisualGraph::new(Orientation::LeftToRight);
    let style = StyleAttr::new(Color::fast("black"), 1, Some(Color::fast("white")), 6, 15);
    let mut handles = Vec::with_capacity(labels.len());
    for label in labels {
        let widest = label.lines().map(|line| line.chars().count()).max().unwrap_or(1);
        let size = Point::new(24. + 9. * widest as f64, 56.);
        let node = Element::create(ShapeKind::new_box(label), style.clone(), Orientation::LeftToRight, size);
        handles.push(graph.add_node(node));
    }
    for (from, to, name) in edges {
        graph.add_edge(Arrow::simple(name), handles[*from], handles[*to]);
    }
    let mut picture = SVGWriter::new();
    graph.do_it(false, false, false, &mut picture);
    picture.finalize()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::shipped;

    #[test]
    fn the_demo_is_drawn_as_a_picture() {
        let demo = shipped::demo_catalog().unwrap();
        let all: Vec<&str> = demo.entities.keys().map(String::as_str).collect();
        let picture = svg(&demo, &all).unwrap();
        assert!(picture.starts_with("<?xml") && picture.trim_end().ends_with("</svg>"), "{picture}");
        for text in ["Ticket", "project, number", "comments *", "owner, reporter", "lead"] {
            assert!(picture.contains(text), "{text} is not in {picture}");
        }
        assert_eq!(picture, svg(&demo, &all).unwrap(), "two pictures of one graph differ");
    }

    #[test]
    fn names_are_never_markup() {
        let picture = lay_out(&["<script>&\n\"x\"".to_owned(), "b\nid".to_owned()], &[(0, 1, "<a> & b".to_owned())]);
        assert!(!picture.contains("<script") && !picture.contains("<a>") && picture.contains("&lt;a&gt; &amp; b"));
    }

    #[test]
    fn a_graph_whose_layout_would_take_minutes_is_refused() {
        let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../catalogs/demo.yaml")).unwrap();
        let mut demo = catalog::read("demo.yaml", &text).unwrap();
        let person = demo.entity("Person").unwrap().clone();
        for n in 0..MAX_BOXES {
            demo.entities.insert(format!("Person{n}"), Entity { name: format!("Person{n}"), ..person.clone() });
        }
        let all: Vec<&str> = demo.entities.keys().map(String::as_str).collect();
        assert!(svg(&demo, &all).is_none() && svg(&demo, &all[..4]).is_some());
    }

    /// The layout library must draw rings, stars, loops on one node, and nodes without edges. Random graphs contain all of these shapes.
    #[test]
    fn any_graph_is_drawn() {
        let mut seed = 7_u64;
        let mut next = |most: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) as usize % most
        };
        for nodes in 1..=14 {
            for _ in 0..4 {
                let labels: Vec<String> = (0..nodes).map(|n| format!("Entity{n}\nid")).collect();
                let mut edges: Vec<(usize, usize, String)> =
                    (0..next(3 * nodes)).map(|_| (next(nodes), next(nodes), "relation".to_owned())).collect();
                edges.sort();
                edges.dedup();
                assert!(lay_out(&labels, &edges).contains("</svg>"));
            }
        }
    }
}
