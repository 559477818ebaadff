//! `GET /v1/sessions`, `GET /v1/sessions/{logical_session}`.
//! Invariant: looking changes nothing, not even a slot; another tenant's session is none.

use std::sync::Arc;

use access::Caller;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use session::Service;

use super::auth::AsCaller;
use super::body::{Queried, limit};
use super::problem::Problem;

const SHOWN: usize = 100;
const MOST: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// Sessions, 100 unless given, at most 1,000.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

pub async fn list(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Queried(listing): Queried<Listing>,
) -> Result<Json<Value>, Problem> {
    newest(&service, &caller, limit(listing.limit, SHOWN, MOST)?).await
}

/// The caller's sessions, and how many there are beyond the limit.
pub async fn newest(service: &Service, caller: &Caller, limit: usize) -> Result<Json<Value>, Problem> {
    let mut sessions = service.list_sessions(caller).await.map_err(|error| Problem::from(&error))?;
    let omitted = sessions.len().saturating_sub(limit);
    sessions.truncate(limit);
    Ok(Json(json!({"sessions": sessions, "omitted": omitted})))
}

pub async fn one(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path(reference): Path<String>,
) -> Result<Json<Value>, Problem> {
    let missing = |error: session::Error| {
        let problem = Problem::from(&error);
        // By address, what is no session's name is a session that is not there.
        let status = if error.code() == "bad_ref" { StatusCode::NOT_FOUND } else { problem.status };
        Problem { status, ..problem }
    };
    let session = service.session_view(&caller, &reference).await.map_err(missing)?;
    let waves = service.wave_tables(&caller, session.logical_session_id).await.map_err(missing)?;
    let mut body = json!(session);
    body["waves"] = json!(waves);
    Ok(Json(body))
}
