//! `GET /v1/traces`, `GET /v1/traces/{logical_session}`, `GET /metrics`.
//! Invariant: nothing is changed, not even a slot; a trace is its own tenant's, and counts of all tenants are the operator's.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base::TenantId;
use serde_json::{Value, json};
use session::Service;

use super::auth::AsCaller;
use super::problem::{Problem, no_route};
use super::sessions;

const SHOWN: usize = 1_000;
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub async fn list(State(service): State<Arc<Service>>, AsCaller(caller): AsCaller) -> Result<Json<Value>, Problem> {
    sessions::newest(&service, &caller, SHOWN).await
}

pub async fn one(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path(reference): Path<String>,
) -> Result<Json<Value>, Problem> {
    let missing = |error: session::Error| match error.code() {
        // By address, whatever is not there is simply not there.
        "no_session" | "unknown_slot" | "bad_ref" => {
            Problem::new(StatusCode::NOT_FOUND, error.code(), format!("{error}; GET /v1/traces lists them"))
        }
        _ => Problem::from(&error),
    };
    let session = service.session_view(&caller, &reference).await.map_err(missing)?;
    let calls = service.trace(&caller, &reference).await.map_err(missing)?;
    Ok(Json(json!({"session": session, "calls": calls})))
}

pub async fn metrics(State(service): State<Arc<Service>>, AsCaller(caller): AsCaller, uri: Uri) -> Response {
    if caller.tenant != TenantId::local() {
        return no_route(uri).await.into_response();
    }
    ([(header::CONTENT_TYPE, METRICS)], service.metrics()).into_response()
}
