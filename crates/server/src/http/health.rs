//! `/healthz`: the process answers. `/readyz`: it can do work.
//! Invariant: neither changes anything.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use session::Service;

use super::problem::Problem;

const SHOWN_PROBLEMS: usize = 20;

pub async fn alive() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

pub async fn ready(State(service): State<Arc<Service>>) -> Result<Json<Value>, Problem> {
    match service.ready().await {
        Ok(()) => {
            let registry = service.registry();
            // A file that cannot be offered is the operator's to repair; the others are served, so this is no refusal.
            let problems: Vec<String> =
                registry.problems().iter().take(SHOWN_PROBLEMS).map(ToString::to_string).collect();
            let (catalogs, count) = (registry.len(), registry.problems().len());
            Ok(Json(json!({
                "status": "ready",
                "catalogs": catalogs,
                "catalog_problems": {"count": count, "first": problems},
            })))
        }
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "not ready");
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.code(), error.to_string()))
        }
    }
}
