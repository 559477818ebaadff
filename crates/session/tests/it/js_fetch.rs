//! `fetch` for scripts: allowed origins, credentials, and writes.

use std::collections::BTreeMap;

use base::{Auth, Method, Response};
use ports::scripts::Call;
use serde_json::{Value, json};
use session::{ExecutionState, FetchRule, ForkRequest, RunJsRequest};
use testkit::upstream::Rule;

use crate::harness;
use crate::js_harness::{JsHarness, Process, code, completed, local, logical, value};

const API: &str = "https://api.example.com/x";

fn rules(rules: Value) -> Vec<FetchRule> {
    serde_json::from_value(rules).unwrap()
}

fn fetch(method: &str, url: &str, headers: &[(&str, &str)]) -> Value {
    let headers: BTreeMap<_, _> = headers.iter().copied().collect();
    json!([{"await": [Call::Fetch { request: json!({"url": url, "method": method, "headers": headers}) }]}])
}

fn house(with: Value) -> JsHarness {
    let mut house = JsHarness::new();
    house.settings.fetch = rules(with);
    let answer = |_: &ports::upstream::Call| Ok(Response { status: 200, headers: Vec::new(), body: b"hello".to_vec() });
    house.house.upstream.add(Rule::get("/x").answers(answer));
    house.house.upstream.add(Rule::post("/x").answers(answer));
    house
}

/// The error that the code got for a refused request.
fn refused(p: &Process, asked: &RunJsRequest) -> String {
    let ran = p.run(asked).unwrap();
    assert_eq!(ran.state, ExecutionState::Failed, "{ran:?}");
    let error = ran.error.unwrap();
    assert_eq!(error.name, "TypeError");
    error.message
}

#[test]
fn the_port_adds_the_credential_that_the_rule_names() {
    let house = house(json!([
        {"origin": "https://api.example.com", "auth": {"bearer": "BLUE"}, "when": {"X-MCP-Team": "blue"}},
        {"origin": "https://api.example.com", "auth": {"header": {"name": "X-Key", "secret": "KEY"}}, "methods": ["POST"]},
        {"origin": "https://api.example.com"},
    ]));
    let p = house.process();
    let of_team =
        |asked: RunJsRequest| RunJsRequest { headers: [("x-mcp-team".to_owned(), "blue".to_owned())].into(), ..asked };
    completed(p.run(&of_team(code(fetch("GET", API, &[])))));
    completed(p.run(&code(fetch("GET", API, &[]))));
    completed(p.run(&code(fetch("POST", API, &[]))));
    // The code may bring a credential if the rule has none.
    completed(p.run(&code(fetch("GET", API, &[("authorization", "mine")]))));
    let sent: Vec<_> = house.house.upstream.calls().into_iter().map(|call| call.request).collect();
    let signed: Vec<_> = sent.iter().map(|request| (request.method, request.auth.clone())).collect();
    let key = Auth::Header { name: "X-Key".into(), secret: "KEY".into(), prefix: None };
    let blue = Auth::Bearer("BLUE".into());
    assert_eq!(
        signed,
        [(Method::Get, Some(blue)), (Method::Get, None), (Method::Post, Some(key)), (Method::Get, None)]
    );
    // A secret that is not set is an error, not a request without it.
    assert!(sent.iter().all(|request| !request.anonymous));
    let said = refused(&p, &of_team(code(fetch("GET", API, &[("Authorization", "mine")]))));
    assert!(
        said.contains("signs requests to https://api.example.com itself") && said.contains("`authorization`"),
        "{said}"
    );
    let said = refused(&p, &code(fetch("GET", API, &[("X-HTTP-Method-Override", "DELETE")])));
    assert!(said.contains("leave out the header"), "{said}");
    let said = refused(&p, &code(fetch("POST", API, &[("x-key", "mine")])));
    assert!(said.contains("leave out the header `X-Key`"), "{said}");
    assert_eq!(house.house.upstream.calls().len(), 4);
}

#[test]
fn a_credential_is_for_reads_unless_the_rule_says_more() {
    let house = house(json!([{"origin": "https://api.example.com", "auth": {"bearer": "TOKEN"}}]));
    let p = house.process();
    completed(p.run(&code(fetch("GET", API, &[]))));
    let said = refused(&p, &code(fetch("POST", API, &[])));
    assert!(said.contains("allows GET to https://api.example.com, not POST") && said.contains("`methods`"), "{said}");
    assert_eq!(house.house.upstream.calls().len(), 1);
}

#[test]
fn a_rule_of_another_tenant_is_not_revealed() {
    let house = house(json!([
        {"origin": "https://api.example.com", "tenants": ["acme"]},
        {"origin": "https://open.example.com"},
    ]));
    let said = refused(&house.process(), &code(fetch("GET", API, &[])));
    assert!(said.contains("only from https://open.example.com;"), "{said}");
    assert!(house.house.upstream.calls().is_empty());
}

#[test]
fn an_unpromoted_fork_sends_no_writes() {
    let house = house(json!(["https://api.example.com"]));
    let p = house.process();
    p.block(harness::open(&p.service));
    let fork = ForkRequest { session: "s0".to_owned(), intent: "try it".to_owned(), at: None };
    p.block(p.service.fork_session(&local(), &fork)).unwrap();
    let said = refused(&p, &logical("s1", fetch("POST", API, &[])));
    assert!(said.contains("a fork") && said.contains("promote_session"), "{said}");
    assert!(house.house.upstream.calls().is_empty());
    assert_eq!(value(&completed(p.run(&logical("s1", fetch("GET", API, &[])))))[0]["status"], json!(200));
    p.block(p.service.promote_session(&local(), "s1")).unwrap();
    completed(p.run(&logical("s1", fetch("POST", API, &[]))));
    assert_eq!(house.house.upstream.calls().len(), 2);
}

#[test]
fn a_read_only_tenant_sends_only_reads() {
    let mut house = house(json!(["https://api.example.com"]));
    house.allow = catalog::Permissions::new(None, None, true);
    let p = house.process();
    completed(p.run(&code(fetch("GET", API, &[]))));
    let said = refused(&p, &code(fetch("POST", API, &[])));
    assert!(said.contains("may only read"), "{said}");
    assert_eq!(house.house.upstream.calls().len(), 1);
}
