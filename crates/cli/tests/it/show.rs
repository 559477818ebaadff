//! Tests of `tokamak catalog show` and `schema`: the table, its cost, and the graph as Mermaid and SVG.
//! Invariant: a graph or JSON for another program is the only text on standard output.

use serde_json::json;

use crate::program::{changed, demo_yaml, tokamak, tokamak_with, write};

#[test]
fn the_table_its_cost_and_the_graph_are_printed() {
    let ended = tokamak(&["catalog", "show", "demo"]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    for text in
        ["plasm_expr\tMeaning", "tokens (o200k)", "ticket_list ", "```mermaid\nerDiagram", "Ticket ||--o{ Comment"]
    {
        assert!(ended.out.contains(text), "{text} is not in {}", ended.out);
    }
    let file = tokamak(&["catalog", "show", demo_yaml().to_str().unwrap()]);
    assert_eq!(file.out, ended.out, "an id and a file give the same");
    let piped = tokamak_with(&["catalog", "show", "-"], &std::fs::read(demo_yaml()).unwrap());
    assert_eq!(piped.out, ended.out, "standard input gives the same");
}

#[test]
fn the_json_has_the_chosen_entities_and_their_costs() {
    let shown = tokamak(&["catalog", "show", "demo", "--json", "--entity", "Ticket", "--entity", "Comment"]).json();
    assert_eq!((&shown["id"], &shown["entities"]), (&json!("demo"), &json!(["Ticket", "Comment"])));
    let tokens = &shown["tokens"];
    let (total, contract) = (tokens["total"].as_u64().unwrap(), tokens["contract"].as_u64().unwrap());
    assert!(contract > 100 && total > contract, "{tokens}");
    let capabilities = tokens["capabilities"].as_object().unwrap();
    assert_eq!(
        capabilities.keys().collect::<Vec<_>>(),
        [
            "ticket_list",
            "ticket_get",
            "comment_list",
            "ticket_search",
            "ticket_open",
            "ticket_update",
            "ticket_close",
            "ticket_reopen",
            "ticket_delete",
            "comment_add",
        ]
    );
    assert!(shown["table"].as_str().unwrap().starts_with("```\n"));
    assert_eq!((&shown["dropped"], &shown["graph"]["form"]), (&json!([]), &json!("mermaid")));
    assert!(!shown["graph"]["text"].as_str().unwrap().contains("Person {"), "only the chosen entities are drawn");
}

#[test]
fn a_graph_is_printed_alone_or_written_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let svg = tokamak(&["catalog", "show", "demo", "--graph", "svg"]);
    assert!(svg.out.starts_with("<?xml") && svg.out.trim_end().ends_with("</svg>"), "{}", svg.out);
    assert!(tokamak(&["catalog", "show", "demo", "--graph", "mermaid"]).out.starts_with("erDiagram\n"));
    let path = folder.path().join("graph.svg").display().to_string();
    let ended = tokamak(&["catalog", "show", "demo", "--graph", "svg", "-o", &path]);
    assert!(ended.code == 0 && ended.out.contains("plasm_expr") && !ended.out.contains("<svg"), "{}", ended.err);
    assert_eq!(std::fs::read_to_string(&path).unwrap().trim_end(), svg.out.trim_end());
    let missing_folder = folder.path().join("none/graph.svg").display().to_string();
    let ended = tokamak(&["catalog", "show", "demo", "--json", "--graph", "svg", "-o", &missing_folder]);
    assert_eq!((ended.code, &ended.error()["error"]["code"]), (1, &json!("unwritable")));
}

#[test]
fn an_unknown_name_is_an_error_with_similar_names() {
    let ended = tokamak(&["catalog", "show", "dmeo"]);
    assert_eq!(ended.code, 3);
    assert!(ended.err.starts_with("error: there is no catalog `dmeo`; one of: demo |"), "{}", ended.err);
    let ended = tokamak(&["catalog", "show", "demo", "--json", "--entity", "Tiket"]);
    assert_eq!((ended.code, &ended.error()["error"]["code"]), (3, &json!("no_entity")));
    assert!(ended.err.contains("Ticket"), "{}", ended.err);
    assert_eq!(tokamak(&["catalog", "show", "none.yaml"]).code, 3);
    assert_eq!(tokamak(&["catalog", "show", "demo", "--no-demo"]).code, 3);
    assert_eq!(tokamak(&["catalog", "show", "demo", "--graph", "png"]).code, 2);
    let folder = tempfile::tempdir().unwrap();
    let bad = write(folder.path(), "bad.yaml", "catalog: bad\n");
    let ended = tokamak(&["catalog", "show", &bad]);
    assert!(ended.code == 2 && ended.err.contains("bad.yaml:") && ended.err.contains("E0501"), "{}", ended.err);
    let folder = folder.path().join("good");
    std::fs::create_dir(&folder).unwrap();
    write(&folder, "mine.yaml", &changed("mine", &[("title:", "aliases: [my-own]\ntitle:")]));
    let ended = tokamak(&["catalog", "show", "my-own", "--catalogs", folder.to_str().unwrap()]);
    assert!(ended.code == 0 && ended.out.starts_with("mine 1 "), "a catalog is found by its alias: {}", ended.err);
}

#[test]
fn the_schema_is_json() {
    let schema = tokamak(&["catalog", "schema"]).json();
    assert_eq!(schema["title"], "Tokamak catalog");
    assert_eq!(schema, catalog::schema());
}
