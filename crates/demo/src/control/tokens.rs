//! OAuth2 tokens: how many there are, how long the next one lives, and taking them back.
//! Invariant: no token is ever shown here.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::json;

use crate::body::JsonBody;
use crate::error::Answer;
use crate::query::Asked;
use crate::state::{App, Shared};

/// Either or both.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Seconds, for tokens issued from here on.
    expires_in: Option<u64>,
    /// `all`, or one token.
    revoke: Option<String>,
}

pub async fn count(State(app): Shared, asked: Asked) -> Answer {
    asked.none()?;
    Ok(answer(&app))
}

pub async fn change(State(app): Shared, asked: Asked, JsonBody(change): JsonBody<Change>) -> Answer {
    asked.none()?;
    if let Some(seconds) = change.expires_in {
        app.tokens.set_expires_in(seconds);
    }
    match change.revoke.as_deref() {
        Some("all") => app.tokens.revoke_all(),
        Some(token) => drop(app.tokens.revoke(token)),
        None => {}
    }
    Ok(answer(&app))
}

fn answer(app: &App) -> Response {
    let (issued, live, expires_in) = app.tokens.count();
    Json(json!({"issued": issued, "live": live, "expires_in": expires_in})).into_response()
}
