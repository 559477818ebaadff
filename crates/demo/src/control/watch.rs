//! Stands before every route: keeps a record of the request and lets the fault that was asked for happen.
//! Invariants: without a fault the answer passes untouched; `/control` is neither recorded nor broken, so a test can always
//! look and always heal.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::error::ApiError;
use crate::faults::{Active, HEADER, Incoming, Kind, When, limited, silence, spoil};
use crate::line::Line;
use crate::state::App;

/// The longest body a request may have.
const MOST_BODY: usize = 16 << 20;

pub async fn watch(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    if request.uri().path().starts_with("/control/") {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let body = match read(body).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    app.requests.note(&parts, &body);
    let found = pick(&app, &parts);
    let line = parts.extensions.get::<ConnectInfo<Line>>().map(|ConnectInfo(line)| line.clone());
    let request = Request::from_parts(parts, Body::from(body));
    match found {
        Ok(None) => next.run(request).await,
        Ok(Some(active)) => broken(active, line, request, next).await,
        Err(error) => error.into_response(),
    }
}

fn pick(app: &App, parts: &Parts) -> Result<Option<Active>, ApiError> {
    let header = match parts.headers.get(HEADER).map(|value| value.to_str()).transpose() {
        Ok(header) => header,
        Err(_) => return Err(ApiError::BadFault { reason: format!("`{HEADER}` is not text") }),
    };
    let incoming = Incoming { method: parts.method.as_str(), path: parts.uri.path(), header };
    app.faults.pick(&incoming).map_err(|error| ApiError::BadFault { reason: error.to_string() })
}

async fn read(body: Body) -> Result<Bytes, ApiError> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    // Refused by what it promises, so that nobody waits for it.
    if body.size_hint().lower() > MOST_BODY as u64 {
        return Err(ApiError::TooLarge { most: MOST_BODY });
    }
    axum::body::to_bytes(body, MOST_BODY).await.map_err(|_| ApiError::TooLarge { most: MOST_BODY })
}

async fn broken(active: Active, line: Option<Line>, request: Request, next: Next) -> Response {
    let Active { fault, turn } = active;
    if let Some(turn) = turn {
        let answer = if turn.allowed { Some(next.run(request).await) } else { None };
        return limited(&turn, answer);
    }
    if let (Kind::Close, Some(line)) = (&fault.kind, line) {
        line.cut();
    }
    match (&fault.kind, fault.when) {
        (Kind::Close, When::Before) => silence(),
        (Kind::Slow(pause), When::Before) => {
            tokio::time::sleep(*pause).await;
            next.run(request).await
        }
        (kind, When::Before) => spoil(kind, Json(json!({})).into_response()).await,
        (kind, When::After) => spoil(kind, next.run(request).await).await,
    }
}
