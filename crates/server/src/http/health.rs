//! `/healthz`: the process answers. `/readyz`: it can do work.
//! Invariant: neither changes anything; where keys are needed, neither tells a stranger what is in the catalogs' folders.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::App;
use super::problem::Problem;

const SHOWN_PROBLEMS: usize = 20;

#[derive(Debug, Serialize, JsonSchema)]
pub struct Alive {
    /// Always `ok`.
    status: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct Ready {
    /// Always `ready`.
    status: &'static str,
    /// How many are offered.
    catalogs: usize,
    catalog_problems: Problems,
}

/// Files that cannot be offered.
#[derive(Debug, Serialize, JsonSchema)]
struct Problems {
    count: usize,
    /// None where requests need a key.
    first: Vec<String>,
}

pub async fn alive() -> Json<Alive> {
    Json(Alive { status: "ok" })
}

pub async fn ready(State(app): State<App>) -> Result<Json<Ready>, Problem> {
    match app.service.ready().await {
        Ok(()) => {
            let registry = app.service.registry();
            // A file that cannot be offered is the operator's to repair; the others are served, so this is no refusal.
            let shown = if app.auth { 0 } else { SHOWN_PROBLEMS };
            let first = registry.problems().iter().take(shown).map(ToString::to_string).collect();
            let (catalogs, count) = (registry.len(), registry.problems().len());
            Ok(Json(Ready { status: "ready", catalogs, catalog_problems: Problems { count, first } }))
        }
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "not ready");
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.code(), error.to_string()))
        }
    }
}
