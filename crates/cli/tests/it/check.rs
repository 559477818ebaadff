//! Tests of `tokamak catalog check` and `list`: valid files, each kind of mistake, and the JSON output.
//! Invariant: no output contains the value of a secret.

use std::process::Stdio;

use serde_json::json;

use crate::program::{changed, command, demo_yaml, tokamak, tokamak_with, write};

#[test]
fn a_valid_file_is_reported_in_one_line() {
    let ended = tokamak(&["catalog", "check", demo_yaml().to_str().unwrap()]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    assert!(ended.out.contains("demo.yaml: ok · demo 1 · 4 entities, 14 capabilities · "), "{}", ended.out);
    assert!(ended.out.trim_end().ends_with(" tokens") && ended.out.lines().count() == 1, "{}", ended.out);
}

#[test]
fn every_mistake_is_reported_with_line_and_code() {
    let folder = tempfile::tempdir().unwrap();
    let bad = changed(
        "bad",
        &[("{ref: Person, path: owner.id}", "{ref: Persom, path: owner.id}"), ("{ticket.number}", "{ticket.nr}")],
    );
    let path = write(folder.path(), "bad.yaml", &bad);
    let good = demo_yaml().display().to_string();
    let ended = tokamak(&["catalog", "check", &path, &good]);
    assert_eq!(ended.code, 1);
    let line = bad.lines().position(|l| l.contains("Persom")).unwrap() + 1;
    assert!(ended.out.contains(&format!("{path}:{line}:")) && ended.out.contains(": E0502 "), "{}", ended.out);
    assert!(ended.out.contains("Person"), "the correction is named: {}", ended.out);
    assert!(ended.out.contains("demo.yaml: ok"), "the valid file is checked too: {}", ended.out);
    assert_eq!(ended.err.trim_end(), "error: 1 of 2 files are not valid catalogs");

    let ended = tokamak(&["catalog", "check", "--json", &path, &good]);
    assert_eq!(ended.code, 1);
    let files = &ended.json()["files"];
    assert_eq!((&files[0]["ok"], &files[1]["ok"]), (&json!(false), &json!(true)));
    let found = files[0]["diagnostics"].as_array().unwrap();
    assert_eq!((&found[0]["line"], &found[0]["code"]), (&json!(line), &json!("E0502")));
    assert!(found[0]["message"].is_string() && found[0]["column"].as_u64().unwrap() > 1, "{found:?}");
    assert!(files[1]["tokens"].as_u64().unwrap() > 100 && files[1]["digest"].as_str().unwrap().len() == 64);
    assert_eq!(ended.error()["error"]["code"], "found");
}

#[test]
fn text_that_is_not_yaml_is_reported_with_a_place() {
    for text in ["", "catalog: [", "- 1\n- 2\n", "catalog: x\nversoin: 1\n"] {
        let ended = tokamak_with(&["catalog", "check", "-"], text.as_bytes());
        assert_eq!(ended.code, 1, "{text:?}");
        assert!(ended.out.starts_with("<stdin>:") && ended.out.contains(": E0501 "), "{text:?}: {}", ended.out);
        assert_eq!(ended.err.trim_end(), "error: the catalog is not valid");
    }
}

#[test]
fn standard_input_is_checked_like_a_file() {
    let text = std::fs::read(demo_yaml()).unwrap();
    let ended = tokamak_with(&["catalog", "check", "-"], &text);
    assert_eq!(ended.code, 0, "{}", ended.err);
    assert!(ended.out.starts_with("<stdin>: ok · demo 1 "), "{}", ended.out);
    let ended = tokamak_with(&["catalog", "check", "--json", "-"], b"catalog: \xff\n");
    assert_eq!((ended.code, &ended.error()["error"]["code"]), (2, &json!("not_text")));
}

#[test]
fn a_file_that_cannot_be_read_is_reported() {
    let ended = tokamak(&["catalog", "check", "none.yaml"]);
    assert_eq!((ended.code, ended.err.trim_end()), (3, "error: none.yaml does not exist"));
    let ended = tokamak(&["catalog", "check", "--json", "none.yaml", demo_yaml().to_str().unwrap()]);
    assert_eq!((ended.code, &ended.json()["files"][0]["error"]["code"]), (1, &json!("missing")));
    assert_eq!(tokamak(&["catalog", "check"]).code, 2);
    assert_eq!(tokamak(&["catalog"]).code, 2);
}

#[test]
fn a_name_that_two_files_claim_is_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let first = write(folder.path(), "a.yaml", &changed("one", &[]));
    let second = write(folder.path(), "b.yaml", &changed("two", &[("title:", "aliases: [one]\ntitle:")]));
    let third = write(folder.path(), "c.yaml", &changed("one", &[]));
    let ended = tokamak(&["catalog", "check", &first, &second, &third]);
    assert_eq!(ended.code, 1);
    assert!(ended.out.contains("a.yaml: ok"), "{}", ended.out);
    assert!(ended.out.contains("b.yaml:4:11: E0502 the name `one` is claimed by"), "{}", ended.out);
    assert!(ended.out.contains("c.yaml:2:10: E0502 the name `one` is claimed by"), "{}", ended.out);
    let ended = tokamak(&["catalog", "list", "--catalogs", folder.path().to_str().unwrap()]);
    assert!(
        ended.code == 0 && ended.out.contains("the name `one` belongs to"),
        "a file that is not offered is listed: {}",
        ended.out
    );
}

#[test]
fn the_list_has_the_source_and_the_secrets_of_each_catalog() {
    let folder = tempfile::tempdir().unwrap();
    let text = changed("guarded", &[("\ntypes:", "\nauth: {basic: {user: IT_USER, password: IT_PASSWORD}}\ntypes:")]);
    // A catalog with credentials needs an https origin, unless the origin is on this machine.
    write(folder.path(), "guarded.yaml", &text.replace("http://demo.localhost", "https://demo.example"));
    let arguments = ["catalog", "list", "--catalogs", folder.path().to_str().unwrap()];
    let mut with_password = command();
    with_password.args(arguments).arg("--json").env("IT_PASSWORD", "hunter2");
    let output = with_password.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(!out.contains("hunter2"));
    let listed: serde_json::Value = serde_json::from_str(&out).unwrap();
    let catalogs = listed["catalogs"].as_array().unwrap();
    let catalog = |id: &str| catalogs.iter().find(|c| c["id"] == id).unwrap();
    assert_eq!((&catalog("demo")["from"], &catalog("github")["from"]), (&json!("shipped"), &json!("shipped")));
    let guarded = catalog("guarded");
    assert!(guarded["from"].as_str().unwrap().ends_with("guarded.yaml"));
    let expected = json!([
        {"name": "IT_USER", "set": false, "bound": false},
        {"name": "IT_PASSWORD", "set": true, "bound": false},
    ]);
    assert_eq!(guarded["secrets"], expected);
    let ended = tokamak(&arguments);
    assert!(ended.out.contains("IT_USER is NOT SET, IT_PASSWORD is NOT SET"), "{}", ended.out);
    let ended = tokamak(&["catalog", "list", "--no-demo"]);
    assert_eq!(ended.code, 0);
    assert!(!ended.out.contains("Demo") && ended.out.contains("github"), "{}", ended.out);
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    for arguments in [["catalog", "schema", "--json"], ["catalog", "show", "demo"], ["catalog", "test", "demo"]] {
        let mut child = command().args(arguments).stderr(Stdio::null()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn completions_contain_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let script = tokamak(&["completions", shell]).out;
        for word in ["catalog", "check", "show", "schema", "capability", "graph", "mermaid", "param"] {
            assert!(script.contains(word), "{shell} does not know {word}");
        }
    }
}
