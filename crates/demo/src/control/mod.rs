//! Where tests look and set: what happened, what arrived, which faults and tokens there are, and the way back to the start.
//! Invariant: nothing here is an effect of the API itself, so looking changes nothing that is looked at.

mod rules;
mod tokens;
mod watch;

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::json;

use crate::error::Answer;
use crate::query::Asked;
use crate::state::requests::KEPT;
use crate::state::{App, Shared};

pub use watch::watch;

pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/control/effects", get(effects))
        .route("/control/requests", get(requests))
        .route("/control/reset", post(reset))
        .route("/control/faults", get(rules::list).post(rules::set))
        .route("/control/tokens", get(tokens::count).post(tokens::change))
}

async fn effects(State(app): Shared, asked: Asked) -> Answer {
    asked.none()?;
    Ok(Json(app.read().effects.all()).into_response())
}

async fn requests(State(app): Shared, asked: Asked) -> Answer {
    let last = asked.only(&["last"])?.positive("last")?;
    let count = last.and_then(|last| usize::try_from(last).ok()).unwrap_or(KEPT);
    Ok(Json(app.requests.last(count)).into_response())
}

async fn reset(State(app): Shared, asked: Asked) -> Answer {
    asked.none()?;
    app.reset();
    Ok(Json(json!({"reset": true})).into_response())
}
