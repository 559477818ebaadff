//! Fault rules: `{"rules": [{"fault": "status=503;times=2", "method": "GET", "path": "/api/*"}]}`.
//! Invariant: a list is set whole or not at all; one unreadable rule changes nothing.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::body::JsonBody;
use crate::error::{Answer, ApiError};
use crate::faults::{Fault, Rule};
use crate::query::Asked;
use crate::state::{App, Shared};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    rules: Vec<GivenRule>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenRule {
    fault: String,
    method: Option<String>,
    #[serde(default = "everything")]
    path: String,
}

#[derive(Serialize)]
struct Shown {
    fault: String,
    method: Option<String>,
    path: String,
    hits: u64,
}

pub async fn list(State(app): Shared, asked: Asked) -> Answer {
    asked.none()?;
    Ok(answer(&app))
}

pub async fn set(State(app): Shared, asked: Asked, JsonBody(given): JsonBody<Given>) -> Answer {
    asked.none()?;
    let rules: Result<Vec<Rule>, ApiError> = given.rules.into_iter().map(rule).collect();
    app.faults.set(rules?);
    Ok(answer(&app))
}

fn everything() -> String {
    "*".to_owned()
}

fn rule(given: GivenRule) -> Result<Rule, ApiError> {
    let fault: Fault = given.fault.parse().map_err(|error| ApiError::BadFault { reason: format!("{error}") })?;
    let method = given.method.map(|method| method.to_uppercase());
    Ok(Rule { text: given.fault, fault, method, path: given.path, hits: 0 })
}

fn answer(app: &App) -> Response {
    let shown = app.faults.rules().into_iter().map(|rule| Shown {
        fault: rule.text,
        method: rule.method,
        path: rule.path,
        hits: rule.hits,
    });
    Json(json!({"rules": shown.collect::<Vec<_>>()})).into_response()
}
