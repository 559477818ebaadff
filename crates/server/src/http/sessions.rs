//! `GET /v1/sessions`, `GET /v1/traces`, and one of each.
//! Invariant: reading changes nothing, not even a slot. Another tenant's session looks like one that does not exist.

use app::calls::{ListLogicalSessions, ShowSession, ShowTrace};
use app::{App, Context};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use session::{CallRecord, SessionView};

use super::HttpState;
use super::auth::HttpCall;
use super::body::{QueryOf, list_limit};
use super::problem::Problem;

/// The number of sessions in a list whose request has no limit.
const DEFAULT_LISTED: usize = 100;
/// The most sessions in a list.
const MAX_LISTED: usize = 1_000;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSessionsQuery {
    /// The number of sessions to list, 100 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

/// The caller's sessions, the last used first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionList {
    sessions: Vec<SessionView>,
    /// The number of sessions beyond the limit.
    omitted: u64,
}

/// A session with everything it was taught.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionBody {
    #[serde(flatten)]
    session: SessionView,
    /// The table of each wave.
    waves: Vec<String>,
}

/// A session with its calls.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TraceBody {
    session: SessionView,
    /// The newest calls, the oldest of them first.
    calls: Vec<CallRecord>,
}

pub async fn list(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    QueryOf(query): QueryOf<ListSessionsQuery>,
) -> Result<Json<SessionList>, Problem> {
    let limit = list_limit(query.limit, DEFAULT_LISTED, MAX_LISTED)?;
    newest_sessions(&state.app, &context, limit).await
}

pub async fn list_traces(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
) -> Result<Json<SessionList>, Problem> {
    newest_sessions(&state.app, &context, MAX_LISTED).await
}

async fn newest_sessions(app: &App, context: &Context, limit: usize) -> Result<Json<SessionList>, Problem> {
    let listing = app.call(context, ListLogicalSessions { with_named: false, limit }).await?;
    Ok(Json(SessionList { sessions: listing.sessions, omitted: listing.omitted }))
}

pub async fn show(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path(reference): Path<String>,
) -> Result<Json<SessionBody>, Problem> {
    let shown = state.app.call(&context, ShowSession { reference }).await.map_err(not_found_for_bad_reference)?;
    Ok(Json(SessionBody { session: shown.session, waves: shown.waves }))
}

pub async fn show_trace(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path(reference): Path<String>,
) -> Result<Json<TraceBody>, Problem> {
    let shown = state.app.call(&context, ShowTrace { reference }).await.map_err(|error| match &error {
        app::Error::Session(missing) if names_no_session(missing) => {
            Problem::new(StatusCode::NOT_FOUND, error.code(), format!("{error}; GET /v1/traces lists them"))
        }
        _ => Problem::from(error),
    })?;
    Ok(Json(TraceBody { session: shown.session, calls: shown.calls }))
}

/// A path with a text that cannot name a session is the path of a session that does not exist.
fn not_found_for_bad_reference(error: app::Error) -> Problem {
    let is_missing = matches!(&error, app::Error::Session(missing) if names_no_session(missing));
    let problem = Problem::from(error);
    if is_missing { Problem { status: StatusCode::NOT_FOUND, ..problem } } else { problem }
}

/// Returns whether the reference names no session of the caller.
fn names_no_session(error: &session::Error) -> bool {
    use session::Error;
    matches!(error, Error::NoSession(_) | Error::NoExecute(_) | Error::UnknownSlot { .. } | Error::BadRef(_))
}
