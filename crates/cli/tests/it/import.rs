//! Tests of `tokamak catalog import`: drafts that the other commands accept, the report, and mistakes in specifications.
//! Invariant: no file is written except the one that `-o` names.

use std::path::{Path, PathBuf};

use crate::program::{tokamak, tokamak_with, write};

fn spec(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/import").join(name)
}

fn tracker() -> String {
    spec("tracker.yaml").display().to_string()
}

#[test]
fn a_draft_is_written_and_can_be_checked_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("tracker.catalog.yaml").display().to_string();
    let ended = tokamak(&["catalog", "import", "openapi", &tracker(), "-o", &out]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    for expected in [
        "10 of 11 operations mapped (90.9 %), 1 deprecated left out",
        "GET /projects/{project}/export: it answers",
        "largest: ",
    ] {
        assert!(ended.out.contains(expected), "{expected}: {}", ended.out);
    }
    let checked = tokamak(&["catalog", "check", &out]);
    assert_eq!(checked.code, 0, "{}", checked.out);
    let shown = tokamak(&["catalog", "show", &out, "--json"]).json();
    assert_eq!(shown["dropped"], serde_json::json!([]));
    assert_eq!(shown["entities"], serde_json::json!(["Project", "Person", "Ticket"]));
}

#[test]
fn without_a_file_only_the_draft_is_printed_to_standard_output() {
    let text = std::fs::read(spec("shop.yaml")).unwrap();
    let ended = tokamak_with(&["catalog", "import", "openapi", "-", "--name", "my-shop"], &text);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.contains("catalog: my-shop\n") && !ended.out.contains("operations mapped"), "{}", ended.out);
    assert!(ended.err.contains("6 of 7 operations mapped"), "{}", ended.err);
    let checked = tokamak_with(&["catalog", "check", "-"], ended.out.as_bytes());
    assert_eq!(checked.code, 0, "{}", checked.out);
}

#[test]
fn the_json_report_has_all_operations_and_the_draft() {
    let report = tokamak(&["catalog", "import", "openapi", &tracker(), "--json"]).json();
    assert_eq!((&report["operations"], &report["mapped"], &report["deprecated"]), (&12.into(), &10.into(), &1.into()));
    assert_eq!(report["unmapped"][0]["operation"], "GET /projects/{project}/export");
    assert_eq!(report["without_list"], serde_json::json!(["Person"]));
    assert!(report["tokens"]["total"].as_u64().unwrap() > 100 && report["untaught"] == serde_json::json!([]));
    assert!(report["draft"].as_str().unwrap().contains("catalog: tracker"));
    let graphql = spec("store.graphql").display().to_string();
    let report = tokamak(&["catalog", "import", "graphql", &graphql, "--json"]).json();
    assert_eq!((&report["mapped"], &report["untaught"]), (&11.into(), &serde_json::json!([])));
}

#[test]
fn strict_fails_below_a_share_and_only_chooses_operations() {
    let ended = tokamak(&["catalog", "import", "openapi", &tracker(), "--strict", "0.95"]);
    assert_eq!(ended.code, 1);
    assert!(
        ended.err.ends_with("error: 90.9 % of the operations are mapped, less than the 95.0 % of --strict\n"),
        "{}",
        ended.err
    );
    let report =
        tokamak(&["catalog", "import", "openapi", &tracker(), "--only", "/people*", "--strict", "1", "--json"]).json();
    assert_eq!((&report["mapped"], &report["left_out"]), (&2.into(), &10.into()));
}

#[test]
fn several_specifications_have_a_line_each_even_if_one_fails() {
    let folder = tempfile::tempdir().unwrap();
    let bad = write(folder.path(), "bad.json", "{\"swagger\": \"1.2\"}");
    let ended = tokamak(&["catalog", "import", "openapi", &bad, &tracker()]);
    assert_eq!(ended.code, 1);
    let lines: Vec<&str> = ended.out.lines().collect();
    assert!(lines[0].contains("bad.json: the file is neither OpenAPI 3 nor Swagger 2.0"), "{lines:?}");
    assert!(lines[1].contains("tracker.yaml: 10 of 12 operations mapped"), "{lines:?}");
    assert!(ended.err.contains("1 of 2 specifications could not be imported"), "{}", ended.err);
}

#[test]
fn an_update_keeps_the_lines_of_the_catalog() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("t.yaml").display().to_string();
    assert_eq!(tokamak(&["catalog", "import", "openapi", &tracker(), "--only", "/projects*", "-o", &out]).code, 0);
    let mine = std::fs::read_to_string(&out).unwrap() + "# mine\n";
    std::fs::write(&out, &mine).unwrap();
    let ended = tokamak(&["catalog", "import", "openapi", &tracker(), "--update", "-o", &out]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""), "{}", ended.out);
    assert!(ended.out.starts_with("2 added, 0 no longer in the specification"), "{}", ended.out);
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("# mine\n") && text.contains("  person_me:\n"), "{text}");
}

#[test]
fn a_specification_that_cannot_be_read_is_an_error() {
    let import = |arguments: &[&str]| tokamak(&[&["catalog", "import", "openapi", "--json"], arguments].concat());
    let missing = import(&["/no/such.yaml"]);
    assert_eq!((missing.code, missing.error()["error"]["code"].as_str()), (3, Some("missing")));
    let folder = tempfile::tempdir().unwrap();
    let bad = write(folder.path(), "bad.yaml", "a: [");
    let bad = import(&[&bad]);
    assert_eq!((bad.code, bad.error()["error"]["code"].as_str()), (2, Some("not_yaml")));
    let closed = import(&["http://127.0.0.1:9/openapi.json"]);
    assert_eq!((closed.code, closed.error()["error"]["code"].as_str()), (1, Some("unfetched")));
}
