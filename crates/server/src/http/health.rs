//! `/healthz`: the process answers. `/readyz`: it can accept work. `/metrics`: its counts.
//! Invariant: if keys are required, the public routes show nothing of the catalogs' folders, and only the operator reads metrics.

use app::calls::{Metrics, Ready};
use app::{Context, EntryPoint, Error};
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::HttpState;
use super::auth::HttpCall;
use super::problem::{Problem, no_route};

/// The number of catalog problems that `/readyz` names.
const MAX_SHOWN_PROBLEMS: usize = 20;
/// The media type of `/metrics`.
pub const METRICS_CONTENT_TYPE: &str = "application/openmetrics-text";

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Alive")]
pub struct AliveBody {
    /// Always `ok`.
    status: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Ready")]
pub struct ReadyBody {
    /// Always `ready`.
    status: &'static str,
    /// The number of offered catalogs.
    catalogs: usize,
    catalog_problems: CatalogProblems,
}

/// Catalog files that cannot be offered.
#[derive(Debug, Serialize, JsonSchema)]
struct CatalogProblems {
    count: usize,
    /// Empty if requests need a key.
    first: Vec<String>,
}

/// Answers `GET /healthz`. It touches no storage, so it answers as long as the process lives.
pub async fn alive() -> Json<AliveBody> {
    Json(AliveBody { status: "ok" })
}

/// Answers `GET /readyz`.
pub async fn ready(State(state): State<HttpState>) -> Result<Json<ReadyBody>, Problem> {
    // A load balancer has no identity. The call reads nothing of any tenant.
    let context = Context::new(access::Caller::local(), EntryPoint::Http);
    state
        .app
        .call(&context, Ready)
        .await
        .map_err(|error| Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.code(), error.to_string()))?;
    let registry = state.app.service().registry();
    // A broken catalog file does not make the server unready: the other catalogs are offered, and the operator repairs the file.
    let shown = if state.app.keys_required() { 0 } else { MAX_SHOWN_PROBLEMS };
    let first = registry.problems().iter().take(shown).map(ToString::to_string).collect();
    let catalog_problems = CatalogProblems { count: registry.problems().len(), first };
    Ok(Json(ReadyBody { status: "ready", catalogs: registry.len(), catalog_problems }))
}

/// Answers `GET /metrics`.
pub async fn metrics(State(state): State<HttpState>, HttpCall(context): HttpCall, uri: Uri) -> Response {
    match state.app.call(&context, Metrics).await {
        Ok(text) => {
            let content_type = format!("{METRICS_CONTENT_TYPE}; version=1.0.0; charset=utf-8");
            ([(header::CONTENT_TYPE, content_type)], text).into_response()
        }
        // To a tenant, the route does not exist.
        Err(Error::NotOperator) => no_route(uri).await.into_response(),
        Err(error) => Problem::from(error).into_response(),
    }
}
