//! Draws the graph of a catalog's entities as a Mermaid entity-relationship diagram.
//! Invariant: the result is a valid diagram even if names contain characters with a meaning in Mermaid.

use catalog::{Catalog, Type};

use super::{edges, nodes};

pub fn mermaid(catalog: &Catalog, entities: &[&str]) -> String {
    let mut lines = vec!["erDiagram".to_owned()];
    for entity in nodes(catalog, entities) {
        lines.push(format!("    {} {{", mermaid_name(&entity.name)));
        for field in entity.key_fields() {
            lines.push(format!("        {} {} PK", mermaid_name(&type_name(&field.kind)), mermaid_name(&field.name)));
        }
        lines.push("    }".to_owned());
    }
    for edge in edges(catalog, entities) {
        let line = if edge.many { "||--o{" } else { "}o--o|" };
        let label = edge.name.replace('"', "'");
        lines.push(format!("    {} {line} {} : \"{label}\"", mermaid_name(edge.from), mermaid_name(edge.to)));
    }
    lines.join("\n") + "\n"
}

/// Returns a short name of a type. For a select this is `select`, because its choices would not fit into a box.
fn type_name(kind: &Type) -> String {
    match kind {
        Type::Select(_) => "select".to_owned(),
        Type::Ref(_) | Type::String(_) | Type::Integer | Type::Number | Type::Date(_) | Type::Uuid => kind.describe(),
        _ => "value".to_owned(),
    }
}

/// Returns a name in which every character that Mermaid refuses in names is replaced by `_`.
fn mermaid_name(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' }).collect();
    if plain.starts_with(|c: char| c.is_ascii_alphabetic()) { plain } else { format!("x{plain}") }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::shipped;

    #[test]
    fn the_demo_is_drawn_as_text() {
        let demo = shipped::demo_catalog().unwrap();
        let text = mermaid(&demo, &["Ticket", "Comment"]);
        let expected = "erDiagram\n    Ticket {\n        Project project PK\n        int number PK\n    }\n    Comment {\n        \
                      int id PK\n    }\n    Ticket ||--o{ Comment : \"comments\"\n";
        assert_eq!(text, expected);
        let all: Vec<&str> = demo.entities.keys().map(String::as_str).collect();
        assert!(mermaid(&demo, &all).contains("    Ticket }o--o| Person : \"reporter\"\n"));
    }

    #[test]
    fn any_name_becomes_one_word() {
        assert_eq!(mermaid_name("Ticket"), "Ticket");
        assert_eq!(mermaid_name("a b{c}\"é"), "a_b_c___");
        assert_eq!(mermaid_name("1x"), "x1x");
        assert_eq!(mermaid_name(""), "x");
    }
}
