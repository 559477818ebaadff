//! `fetch` for scripts: allowed origins, credentials, and writes.

use std::collections::BTreeMap;

use base::{Auth, Method, Response};
use ports::scripts::Call;
use serde_json::{Value, json};
use session::{ExecutionState, FetchRule, ForkRequest, RunJsRequest};
use testkit::upstream::Rule;

use crate::js_harness::{JsHarness, Process, expect_completed, local_caller, logical_request, script_request};

const API: &str = "https://api.example.com/x";

/// Returns a program that sends one request.
fn fetch_program(method: &str, url: &str, headers: &[(&str, &str)]) -> Value {
    let headers: BTreeMap<_, _> = headers.iter().copied().collect();
    json!([{"await": [Call::Fetch { request: json!({"url": url, "method": method, "headers": headers}) }]}])
}

/// Returns a harness whose settings have these rules and whose API answers `hello`.
fn harness_with_fetch(rules: Value) -> JsHarness {
    let mut harness = JsHarness::new();
    harness.settings.fetch = serde_json::from_value::<Vec<FetchRule>>(rules).unwrap();
    let answer = |_: &ports::upstream::Call| Ok(Response { status: 200, headers: Vec::new(), body: b"hello".to_vec() });
    harness.memory.upstream.add(Rule::get("/x").answers(answer));
    harness.memory.upstream.add(Rule::post("/x").answers(answer));
    harness
}

/// Runs a script whose request is refused and returns the message that it got.
fn refusal_message(process: &Process, request: &RunJsRequest) -> String {
    let execution = process.run(request).unwrap();
    assert_eq!(execution.state, ExecutionState::Failed, "{execution:?}");
    let error = execution.error.unwrap();
    assert_eq!(error.name, "TypeError");
    error.message
}

#[test]
fn the_port_adds_the_credential_that_the_rule_names() {
    let harness = harness_with_fetch(json!([
        {"origin": "https://api.example.com", "auth": {"bearer": "BLUE"}, "when": {"X-MCP-Team": "blue"}},
        {"origin": "https://api.example.com", "auth": {"header": {"name": "X-Key", "secret": "KEY"}}, "methods": ["POST"]},
        {"origin": "https://api.example.com"},
    ]));
    let process = harness.process();
    let from_blue_team = |request: RunJsRequest| RunJsRequest {
        headers: [("x-mcp-team".to_owned(), "blue".to_owned())].into(),
        ..request
    };
    expect_completed(process.run(&from_blue_team(script_request(fetch_program("GET", API, &[])))));
    expect_completed(process.run(&script_request(fetch_program("GET", API, &[]))));
    expect_completed(process.run(&script_request(fetch_program("POST", API, &[]))));
    // The script may send its own credential if the rule has none.
    expect_completed(process.run(&script_request(fetch_program("GET", API, &[("authorization", "mine")]))));
    let requests: Vec<_> = harness.memory.upstream.calls().into_iter().map(|call| call.request).collect();
    let credentials: Vec<_> = requests.iter().map(|request| (request.method, request.auth.clone())).collect();
    let key_auth = Auth::Header { name: "X-Key".into(), secret: "KEY".into(), prefix: None };
    let blue_auth = Auth::Bearer("BLUE".into());
    assert_eq!(
        credentials,
        [(Method::Get, Some(blue_auth)), (Method::Get, None), (Method::Post, Some(key_auth)), (Method::Get, None)]
    );
    // No request is marked as anonymous, so a secret that is not set would be an error.
    assert!(requests.iter().all(|request| !request.anonymous));
    let message = refusal_message(
        &process,
        &from_blue_team(script_request(fetch_program("GET", API, &[("Authorization", "mine")]))),
    );
    assert!(
        message.contains("signs requests to https://api.example.com itself") && message.contains("`authorization`"),
        "{message}"
    );
    let message =
        refusal_message(&process, &script_request(fetch_program("GET", API, &[("X-HTTP-Method-Override", "DELETE")])));
    assert!(message.contains("leave out the header"), "{message}");
    let message = refusal_message(&process, &script_request(fetch_program("POST", API, &[("x-key", "mine")])));
    assert!(message.contains("leave out the header `X-Key`"), "{message}");
    assert_eq!(harness.memory.upstream.calls().len(), 4);
}

#[test]
fn a_credential_is_sent_only_with_reads_unless_the_rule_lists_methods() {
    let harness = harness_with_fetch(json!([{"origin": "https://api.example.com", "auth": {"bearer": "TOKEN"}}]));
    let process = harness.process();
    expect_completed(process.run(&script_request(fetch_program("GET", API, &[]))));
    let message = refusal_message(&process, &script_request(fetch_program("POST", API, &[])));
    assert!(
        message.contains("allows GET to https://api.example.com, not POST") && message.contains("`methods`"),
        "{message}"
    );
    assert_eq!(harness.memory.upstream.calls().len(), 1);
}

#[test]
fn a_rule_of_another_tenant_is_not_revealed() {
    let harness = harness_with_fetch(json!([
        {"origin": "https://api.example.com", "tenants": ["acme"]},
        {"origin": "https://open.example.com"},
    ]));
    let message = refusal_message(&harness.process(), &script_request(fetch_program("GET", API, &[])));
    assert!(message.contains("only from https://open.example.com;"), "{message}");
    assert!(harness.memory.upstream.calls().is_empty());
}

#[test]
fn an_unpromoted_fork_sends_no_writes() {
    let harness = harness_with_fetch(json!(["https://api.example.com"]));
    let process = harness.process();
    process.open_session();
    let fork = ForkRequest { session: "s0".to_owned(), intent: "try it".to_owned(), at: None };
    process.block_on(process.service.fork_session(&local_caller(), &fork)).unwrap();
    let message = refusal_message(&process, &logical_request("s1", fetch_program("POST", API, &[])));
    assert!(message.contains("a fork") && message.contains("promote_session"), "{message}");
    assert!(harness.memory.upstream.calls().is_empty());
    assert_eq!(process.run_to_value(&logical_request("s1", fetch_program("GET", API, &[])))[0]["status"], json!(200));
    process.block_on(process.service.promote_session(&local_caller(), "s1")).unwrap();
    expect_completed(process.run(&logical_request("s1", fetch_program("POST", API, &[]))));
    assert_eq!(harness.memory.upstream.calls().len(), 2);
}

#[test]
fn a_read_only_tenant_sends_only_reads() {
    let mut harness = harness_with_fetch(json!(["https://api.example.com"]));
    harness.permissions = catalog::Permissions::new(None, None, true);
    let process = harness.process();
    expect_completed(process.run(&script_request(fetch_program("GET", API, &[]))));
    let message = refusal_message(&process, &script_request(fetch_program("POST", API, &[])));
    assert!(message.contains("may only read"), "{message}");
    assert_eq!(harness.memory.upstream.calls().len(), 1);
}
