//! `/healthz`: the process answers. `/readyz`: it can do work.
//! Invariant: neither changes anything.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};
use session::Service;

use super::problem::Problem;

pub async fn alive() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

pub async fn ready(State(service): State<Arc<Service>>) -> Result<Json<Value>, Problem> {
    match service.ready().await {
        Ok(()) => Ok(Json(json!({"status": "ready", "catalogs": service.registry().len()}))),
        Err(error) => {
            tracing::error!(error = &error as &dyn std::error::Error, "not ready");
            let (status, detail) = (StatusCode::SERVICE_UNAVAILABLE, error.to_string());
            Err(Problem { status, code: error.code(), detail })
        }
    }
}
