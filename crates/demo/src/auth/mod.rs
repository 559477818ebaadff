//! One small list behind every kind of credential.
//! Invariants: the credentials are fixed and documented, and are secret to nobody; without the right one the answer is a 401
//! that says in WWW-Authenticate what was wanted, whatever else is wrong with the request.

mod guards;
mod oauth;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};

use crate::error::{Answer, ApiError};
use crate::query::Asked;
use crate::state::{App, Shared};

pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/auth/bearer", get(bearer))
        .route("/auth/header", get(header))
        .route("/auth/query", get(query))
        .route("/auth/basic", get(basic))
        .route("/auth/oauth2", get(oauth2))
        .route("/oauth/token", post(oauth::token))
}

async fn bearer(State(app): Shared, headers: HeaderMap, asked: Asked) -> Answer {
    guards::bearer(&headers)?;
    list(&app, asked, &[])
}

async fn header(State(app): Shared, headers: HeaderMap, asked: Asked) -> Answer {
    guards::header(&headers)?;
    list(&app, asked, &[])
}

async fn query(State(app): Shared, asked: Asked) -> Answer {
    guards::query(asked.first("api_key"))?;
    list(&app, asked, &["api_key"])
}

async fn basic(State(app): Shared, headers: HeaderMap, asked: Asked) -> Answer {
    guards::basic(&headers)?;
    list(&app, asked, &[])
}

async fn oauth2(State(app): Shared, headers: HeaderMap, asked: Asked) -> Answer {
    guards::oauth2(&app.tokens, &headers)?;
    list(&app, asked, &[])
}

/// The projects, paged as everywhere.
fn list(app: &App, asked: Asked, besides: &[&'static str]) -> Result<Response, ApiError> {
    let (_, window) = asked.list(besides)?;
    Ok(window.answer(app.read().world.projects.iter()))
}
