//! Tests of `tokamak discover`: it prints the answer of the tool `discover_capabilities`, and has exit code 3 for an unknown API.

use crate::program::{changed, tokamak, write};

#[test]
fn a_goal_is_answered_with_entities() {
    let ended = tokamak(&["discover", "give a buyer the money back"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.starts_with("stripe:Refund"), "{}", ended.out);
    let value = tokamak(&["discover", "list the Stripe invoices", "--limit", "2", "--json"]).json();
    assert_eq!(value["rows"][0]["api"], "stripe");
    assert_eq!(value["rows"][0]["entity"], "Invoice");
    assert_eq!(value["decision"], "ready");
    assert_eq!(value["shown"], 2);
    assert!(value["omitted"].as_u64().unwrap() > 0);
}

#[test]
fn one_api_can_be_searched_and_must_exist() {
    let value = tokamak(&["discover", "comments", "--api", "gh", "--json"]).json();
    assert!(value["rows"].as_array().unwrap().iter().all(|row| row["api"] == "github"), "{value}");
    let ended = tokamak(&["discover", "comments", "--api", "gihub", "--json"]);
    assert_eq!(ended.code, 3, "{}", ended.err);
    assert!(ended.err.contains("github"), "{}", ended.err);
}

#[test]
fn catalogs_in_folders_are_searched() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "fleet.yaml", &changed("fleet", &[("a unit of work in a project", "a zeppelin")]));
    let folder = folder.path().display().to_string();
    let value = tokamak(&["discover", "zeppelins", "--catalogs", &folder, "--json"]).json();
    assert_eq!(value["rows"][0]["api"], "fleet");
    let ended = tokamak(&["discover", "zeppelins"]);
    assert!(ended.code == 0 && ended.out.contains("catalog list"), "{}", ended.out);
}
