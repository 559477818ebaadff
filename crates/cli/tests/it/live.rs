//! Tests of `tokamak catalog test` on the demo API, and on the test API, which breaks answers on request (header `X-Demo-Fault`).
//! Invariant: the command sends no write.

use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::program::{changed, tokamak, write};

/// The origin of the test API, which all tests of this file share.
static TEST_API: LazyLock<String> = LazyLock::new(|| {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { testapi::serve(tokio::net::TcpListener::from_std(listener).unwrap()).await })
    });
    origin
});

/// Returns a text replacement for the demo catalog, by which its origin is the test API. `more` is added after the line `origin`.
fn on_test_api(more: &str) -> (&'static str, String) {
    ("origin: http://demo.localhost/api", format!("origin: {}/api{more}", *TEST_API))
}

/// Tests a changed demo catalog, and returns the JSON report and the exit code.
fn report(changes: &[(&str, &str)], more: &[&str]) -> (Value, i32) {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "changed.yaml", &changed("changed", changes));
    let arguments: Vec<&str> = ["catalog", "test", &path, "--json"].into_iter().chain(more.iter().copied()).collect();
    let ended = tokamak(&arguments);
    (ended.json(), ended.code)
}

fn of<'a>(report: &'a Value, capability: &str) -> &'a Value {
    let all = report["capabilities"].as_array().unwrap();
    all.iter().find(|c| c["capability"] == capability).unwrap_or_else(|| panic!("no {capability} in {report}"))
}

#[test]
fn every_read_of_the_demo_is_called() {
    let ended = tokamak(&["catalog", "test", "demo"]);
    assert_eq!(ended.code, 0, "{}{}", ended.out, ended.err);
    assert!(ended.out.trim_end().ends_with("14 capabilities: 8 ok, 0 failed, 6 skipped · 10 calls"), "{}", ended.out);
    assert!(ended.err.starts_with("1/8 project_list\n") && !ended.out.contains("1/8"), "{}", ended.err);
    let ended = tokamak(&["catalog", "test", "demo", "--json"]);
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    let report = ended.json();
    assert_eq!((&report["ok"], &report["failed"], &report["calls"]), (&json!(8), &json!(0), &json!(10)));
    let list = of(&report, "ticket_list");
    assert_eq!((&list["rows"], &list["calls"], &list["outcome"]), (&json!(300), &json!(3), &json!("ok")));
    assert_eq!(list["fields"]["never_seen"], json!([]));
    assert!(of(&report, "ticket_get")["with"]["number"].is_number(), "the key came from a row");
    assert!(of(&report, "comment_list")["rows"].as_u64().unwrap() > 0);
}

#[test]
fn each_kind_of_broken_answer_is_a_failure_with_a_code() {
    let lies = [
        ("wrong-type", "field_type"),
        ("not-json", "not_json"),
        ("deep", "too_deep"),
        ("status=403", "auth"),
        ("status=404", "not_found"),
        ("status=422", "validation"),
        ("redirect=http://foreign.invalid/", "redirect"),
    ];
    for (fault, code) in lies {
        let (origin, broken) = on_test_api(&format!("\nheaders: {{X-Demo-Fault: \"{fault}\"}}"));
        let (report, exit) = report(&[(origin, &broken)], &["--capability", "ticket_list"]);
        let list = of(&report, "ticket_list");
        assert_eq!((exit, &list["outcome"], &list["error"]["code"]), (1, &json!("failed"), &json!(code)), "{report}");
        assert!(!list["error"]["message"].as_str().unwrap().is_empty());
        if code == "field_type" {
            let misfit = &list["fields"]["misfit"];
            assert_eq!((&misfit["entity"], &misfit["expected"]), (&json!("Ticket"), &json!("int")), "{misfit}");
        }
    }
}

/// If one capability gives wrong answers, only this one fails. A capability that needs its rows uses other rows, or is skipped with the
/// values to pass.
#[test]
fn a_failed_capability_does_not_fail_the_others() {
    let lie = ("    http: GET /tickets?", "    headers: {X-Demo-Fault: wrong-type}\n    http: GET /tickets?");
    let (origin, test_api) = on_test_api("");
    let (report, exit) = report(&[(origin, &test_api), lie], &[]);
    assert_eq!((exit, &report["ok"], &report["failed"], &report["skipped"]), (1, &json!(4), &json!(1), &json!(9)));
    let skipped = &of(&report, "comment_list")["skipped"];
    assert_eq!((&skipped["why"], &skipped["params"]), (&json!("no_value"), &json!(["ticket"])));
    let said = of(&report, "ticket_get")["skipped"]["message"].as_str().unwrap().to_owned();
    assert!(said.contains("--param project=… --param number=…") && said.contains("rows of Ticket"), "{said}");
}

#[test]
fn an_api_that_does_not_answer_is_a_timeout() {
    let slow = ("    http: GET /people?", "    headers: {X-Demo-Fault: slow=60000}\n    http: GET /people?");
    let (origin, test_api) = on_test_api("");
    let started = std::time::Instant::now();
    let (report, exit) = report(&[(origin, &test_api), slow], &["--capability", "person_list", "--timeout", "1"]);
    assert_eq!((exit, &of(&report, "person_list")["error"]["code"]), (1, &json!("timeout")), "{report}");
    assert!(started.elapsed().as_secs() < 20);
}

#[test]
fn fields_without_values_and_unknown_choices_are_remarked() {
    let changes = [
        ("[open, doing, done]", "[open, doing]"),
        ("      email: string\n", "      email: string\n      nick: string\n"),
    ];
    let (report, exit) = report(&changes, &[]);
    assert_eq!(exit, 0, "{report}");
    assert_eq!(of(&report, "ticket_list")["fields"]["unknown_choices"], json!({"state": ["done"]}));
    assert_eq!(of(&report, "person_list")["fields"]["never_seen"], json!(["nick"]));
}

#[test]
fn writes_are_never_called() {
    let (report, exit) = report(&[], &["--writes", "never"]);
    assert_eq!((exit, &report["ok"], &report["skipped"]), (0, &json!(8), &json!(6)), "{report}");
    assert_eq!(of(&report, "ticket_close")["skipped"]["why"], "write");
}

#[test]
fn parameters_are_passed_and_the_call_budget_is_kept() {
    let ticket = r#"comment_list.ticket={"project":"OPS","number":42}"#;
    let ended = tokamak(&["catalog", "test", "demo", "--json", "--capability", "comment_list", "--param", ticket]);
    let report = ended.json();
    assert_eq!((ended.code, &report["ok"], &report["calls"]), (0, &json!(1), &json!(1)), "{report}");
    assert_eq!(of(&report, "comment_list")["with"]["ticket"]["number"], 42);
    let alone = tokamak(&["catalog", "test", "demo", "--capability", "comment_list"]);
    assert_eq!(alone.code, 0, "a skipped capability is not a failure");
    assert!(alone.out.contains("skipped  comment_list") && alone.out.contains("--param ticket=…"), "{}", alone.out);
    let spent = tokamak(&["catalog", "test", "demo", "--json", "--calls", "2"]).json();
    assert_eq!((&spent["calls"], &spent["ok"]), (&json!(2), &json!(2)), "{spent}");
    assert_eq!(of(&spent, "person_list")["skipped"]["why"], "budget");
    let wrong: [(&[&str], i32, &str); 5] = [
        (&["--param", "number"], 2, "bad_param"),
        (&["--param", "number=many"], 2, "bad_param"),
        (&["--param", "colour=red"], 2, "bad_param"),
        (&["--capability", "ticket_lits"], 3, "no_capability"),
        (&["--writes", "always"], 2, "usage"),
    ];
    for (more, code, word) in wrong {
        let arguments: Vec<&str> = ["catalog", "test", "demo", "--json"].iter().chain(more).copied().collect();
        let ended = tokamak(&arguments);
        assert_eq!((ended.code, &ended.error()["error"]["code"]), (code, &json!(word)), "{more:?}");
    }
    assert_eq!(tokamak(&["catalog", "test", "nowhere"]).code, 3);
}

/// The GraphQL list of orders (a connection) supplies the keys with which single orders are read.
#[test]
fn capabilities_over_graphql_are_called() {
    let store = r#"
catalog: store
version: 1
title: Demo store
origin: TEST_API
graphql: /graphql
entities:
  Order:
    about: what someone bought
    key: [id]
    fields: {id: string, status: string}
capabilities:
  order_list:
    query: Order
    graphql: "query($first: Int, $after: String) { orders(first: $first, after: $after) { nodes { ...Order } pageInfo { hasNextPage endCursor } } }"
    paging: {connection: data.orders, size: {send: first, max: 20}}
  order_get: {get: Order, graphql: "query($id: ID!) { order(id: $id) { ...Order } }", row: data.order}
"#;
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "store.yaml", &store.replace("TEST_API", &TEST_API));
    let ended = tokamak(&["catalog", "test", &path, "--json"]);
    let report = ended.json();
    assert_eq!((ended.code, &report["ok"]), (0, &json!(2)), "{report}");
    assert_eq!((&of(&report, "order_list")["rows"], &of(&report, "order_list")["calls"]), (&json!(60), &json!(3)));
}

/// A secret that is set is used, a missing secret is named in the error, and no output has the value of a secret.
#[test]
fn credentials_come_from_secrets() {
    let guarded = r#"
catalog: guarded
version: 1
title: Guarded projects
origin: TEST_API
auth: {bearer: IT_DEMO_TOKEN}
entities:
  Project: {about: work, key: [key], fields: {key: string, name: string}}
capabilities:
  project_list: {query: Project, http: GET /auth/bearer, rows: data}
"#;
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "guarded.yaml", &guarded.replace("TEST_API", &TEST_API));
    let settings = write(folder.path(), "settings.toml", &format!("[secrets]\nIT_DEMO_TOKEN = \"{}\"\n", *TEST_API));
    let run_with = |settings: &str, token: Option<&str>| {
        let mut command = crate::program::command();
        let arguments = ["--config", settings, "catalog", "test", &path, "--json"];
        command.args(arguments).env_remove("IT_DEMO_TOKEN");
        let output = command.envs(token.map(|token| ("IT_DEMO_TOKEN", token))).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(token.is_none_or(|token| !text.contains(token)), "{text}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let run = |token| run_with(&settings, token);
    assert_eq!(of(&run(Some("demo-token")), "project_list")["rows"], 6);
    assert_eq!(of(&run(Some("wrong-token")), "project_list")["error"]["code"], "auth");
    let missing = run(None);
    assert_eq!(of(&missing, "project_list")["error"]["code"], "secret");
    assert!(missing.to_string().contains("IT_DEMO_TOKEN"), "{missing}");
    // A secret of the environment that is not bound to the origin is not sent.
    let empty = write(folder.path(), "empty.toml", "");
    let unbound = run_with(&empty, Some("demo-token"));
    assert_eq!(of(&unbound, "project_list")["error"]["code"], "secret");
    assert!(unbound.to_string().contains("tokamak secret bind IT_DEMO_TOKEN http://"), "{unbound}");
}
