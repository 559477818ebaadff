//! The routes under `/control`, by which a test reads and sets the state: effects, recorded requests, fault rules, tokens, reset.
//! Invariants: the interceptor neither records nor breaks these requests, so a test can always use them. No route shows a token. A list
//! of fault rules is replaced as a whole or not at all.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use demo::{UncheckedQuery, parse_json};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::{HandlerResult, TestApiError};
use crate::faults::{Fault, FaultRule};
use crate::requests::MAX_RECORDED;
use crate::state::{ApiState, TestApi};

pub fn routes() -> Router<Arc<TestApi>> {
    Router::new()
        .route("/control/effects", get(list_effects))
        .route("/control/requests", get(list_requests))
        .route("/control/faults", get(list_rules).post(set_rules))
        .route("/control/tokens", get(count_tokens).post(change_tokens))
        .route("/control/reset", post(reset))
}

async fn list_effects(State(api): ApiState, query: UncheckedQuery) -> HandlerResult {
    query.none()?;
    Ok(Json(api.effects.all()).into_response())
}

async fn list_requests(State(api): ApiState, query: UncheckedQuery) -> HandlerResult {
    let last = query.only(&["last"])?.positive("last")?;
    let count = last.and_then(|last| usize::try_from(last).ok()).unwrap_or(MAX_RECORDED);
    Ok(Json(api.requests.last(count)).into_response())
}

async fn reset(State(api): ApiState, query: UncheckedQuery) -> HandlerResult {
    query.none()?;
    api.reset();
    Ok(Json(json!({"reset": true})).into_response())
}

/// The body of a POST to `/control/faults`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RulesBody {
    rules: Vec<RuleBody>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleBody {
    /// A fault in the form of the header `X-Demo-Fault`.
    fault: String,
    /// The method of the requests that get the fault. `None` means any method.
    method: Option<String>,
    #[serde(default = "every_path")]
    path: String,
}

fn every_path() -> String {
    "*".to_owned()
}

/// A rule as `/control/faults` shows it.
#[derive(Serialize)]
struct RuleView {
    fault: String,
    method: Option<String>,
    path: String,
    hits: u64,
}

async fn list_rules(State(api): ApiState, query: UncheckedQuery) -> HandlerResult {
    query.none()?;
    Ok(rules_answer(&api))
}

async fn set_rules(State(api): ApiState, query: UncheckedQuery, headers: HeaderMap, body: Bytes) -> HandlerResult {
    let body: RulesBody = parse_json(&headers, &body)?;
    query.none()?;
    let rules: Result<Vec<FaultRule>, TestApiError> = body.rules.into_iter().map(parse_rule).collect();
    api.faults.replace(rules?);
    Ok(rules_answer(&api))
}

fn parse_rule(body: RuleBody) -> Result<FaultRule, TestApiError> {
    let fault: Fault = body.fault.parse().map_err(|error| TestApiError::BadFault { reason: format!("{error}") })?;
    let method = body.method.map(|method| method.to_uppercase());
    Ok(FaultRule { text: body.fault, fault, method, path: body.path, hits: 0 })
}

fn rules_answer(api: &TestApi) -> Response {
    let view = |rule: FaultRule| RuleView { fault: rule.text, method: rule.method, path: rule.path, hits: rule.hits };
    let rules: Vec<RuleView> = api.faults.all().into_iter().map(view).collect();
    Json(json!({"rules": rules})).into_response()
}

/// The body of a POST to `/control/tokens`, with one change or both.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokensBody {
    /// The lifetime in seconds of tokens that are issued after this request.
    expires_in: Option<u64>,
    /// The token to revoke, or `all`.
    revoke: Option<String>,
}

async fn count_tokens(State(api): ApiState, query: UncheckedQuery) -> HandlerResult {
    query.none()?;
    Ok(tokens_answer(&api))
}

async fn change_tokens(State(api): ApiState, query: UncheckedQuery, headers: HeaderMap, body: Bytes) -> HandlerResult {
    let change: TokensBody = parse_json(&headers, &body)?;
    query.none()?;
    if let Some(seconds) = change.expires_in {
        api.tokens.set_expires_in(seconds);
    }
    match change.revoke.as_deref() {
        Some("all") => api.tokens.revoke_all(),
        Some(token) => api.tokens.revoke(token),
        None => {}
    }
    Ok(tokens_answer(&api))
}

fn tokens_answer(api: &TestApi) -> Response {
    Json(api.tokens.counts()).into_response()
}
