//! `GET /v1/sessions`, `GET /v1/sessions/{logical_session}`.
//! Invariant: looking changes nothing, not even a slot; another tenant's session is none.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use session::Service;

use super::auth::AsCaller;
use super::problem::Problem;
use crate::arguments;

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
    listing: Result<Query<Listing>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let bad = |bad: QueryRejection| Problem::bad_arguments(arguments::wrong_query(&bad.body_text()).to_string());
    let limit = listing.map_err(bad)?.0.limit.unwrap_or(SHOWN);
    if !(1..=MOST).contains(&limit) {
        return Err(Problem::bad_arguments(format!("`limit` is from 1 to {MOST}")));
    }
    let mut sessions = service.list_sessions(&caller).await.map_err(|error| Problem::from(&error))?;
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
    let waves = service.waves(&caller, session.logical_session_id).await.map_err(missing)?;
    let mut body = json!(session);
    body["waves"] = json!(waves);
    Ok(Json(body))
}
