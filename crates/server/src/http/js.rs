//! The JavaScript side over HTTP: `/api/exec`, `/api/executions`, `/api/sessions`, `/api/heaps`.
//! Invariant: the same calls of `session` as the tools, and the same JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::Caller;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use base::{ExecutionId, LogicalSessionId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use session::{Error, OutputRequest, RunJsRequest, Service, SessionTarget};

use super::auth::AsCaller;
use super::body::{Given, Queried, limit};
use super::problem::Problem;
use crate::js;
use crate::mcp::{BadName, Named};

const MOST_LISTED: usize = 500;

/// A run of JavaScript.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// JavaScript or TypeScript.
    code: String,
    /// The key of the heap to start from; empty for a fresh one.
    #[serde(default)]
    heap: Option<String>,
    /// A logical session's id; it goes on from its heap.
    #[serde(default)]
    logical_session_ref: Option<String>,
    /// The name of the session, where the header X-MCP-Session-Id does not say it.
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    tags: Option<BTreeMap<String, String>>,
    /// A heap that is not there is an error.
    #[serde(default)]
    require_heap: bool,
    #[serde(default)]
    wait_ms: Option<u64>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    memory_mb: Option<u64>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Patience {
    /// How long to wait for the end of the run.
    #[serde(default)]
    wait_ms: u64,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Listing {
    /// The last one of the list before.
    #[serde(default)]
    #[schemars(extend("format" = "uuid"))]
    after: Option<String>,
    /// How many; 50 unless told otherwise.
    #[serde(default)]
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Portion {
    #[serde(default)]
    line_offset: Option<u64>,
    #[serde(default)]
    line_limit: Option<u64>,
    #[serde(default)]
    byte_offset: Option<u64>,
    #[serde(default)]
    byte_limit: Option<u64>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fields {
    /// Comma-separated.
    #[serde(default)]
    fields: Option<String>,
}

/// All tags of a heap.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tags {
    tags: BTreeMap<String, String>,
}

type Answered = Result<Json<Value>, Problem>;

fn problem(error: Error) -> Problem {
    Problem::from(&error)
}

pub async fn exec(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    headers: HeaderMap,
    Given(given): Given<Exec>,
) -> Result<Response, Problem> {
    let refused = |bad: BadName| Problem::new(StatusCode::BAD_REQUEST, BadName::CODE, bad.to_string());
    let mut named = Named::of(crate::mcp::read_headers(&headers).map_err(refused)?);
    named.name = given.session.or(named.name);
    let run = RunJsRequest {
        code: given.code,
        heap: given.heap,
        session: named.session(given.logical_session_ref),
        tags: given.tags,
        require_heap: given.require_heap,
        wait_ms: given.wait_ms,
        timeout_ms: given.timeout_ms,
        memory_mb: given.memory_mb,
        headers: named.headers,
        // Who leaves gives nothing up: `/api/executions/{id}/cancel` does.
        id_cell: None,
    };
    let ran = service.run_js(&caller, &run).await.map_err(problem)?;
    let value = js::ran(&service, &caller, &ran).await.map_err(problem)?;
    let status = if ran.state.is_final() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(value)).into_response())
}

pub async fn list(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Queried(listing): Queried<Listing>,
) -> Answered {
    let after = match &listing.after {
        Some(after) => Some(ExecutionId::parse(after).map_err(|_| Problem::bad_arguments("`after` is no execution"))?),
        None => None,
    };
    let limit = limit(listing.limit, js::LISTED, MOST_LISTED)?;
    let found = service.executions(&caller, after, limit).await.map_err(problem)?;
    Ok(Json(js::list(&found)))
}

pub async fn one(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path(id): Path<String>,
    Queried(patience): Queried<Patience>,
) -> Answered {
    let found = service.wait_for_execution(&caller, &id, patience.wait_ms).await.map_err(problem)?;
    Ok(Json(js::execution(&found)))
}

pub async fn output(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path(id): Path<String>,
    portion: Result<Queried<Portion>, Problem>,
) -> Answered {
    // Whether there is such a run comes before what is asked of it.
    service.execution(&caller, &id).await.map_err(problem)?;
    let Queried(Portion { line_offset, line_limit, byte_offset, byte_limit }) = portion?;
    let wanted = OutputRequest { line_offset, line_limit, byte_offset, byte_limit };
    let page = service.execution_output(&caller, &id, &wanted).await.map_err(problem)?;
    Ok(Json(js::output(&page)))
}

pub async fn cancel(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path(id): Path<String>,
) -> Answered {
    service.cancel_execution(&caller, &id).await.map_err(problem)?;
    Ok(Json(json!({"ok": true})))
}

pub async fn sessions(State(service): State<Arc<Service>>, AsCaller(caller): AsCaller) -> Answered {
    let names = service.js_sessions(&caller).await.map_err(problem)?;
    Ok(Json(json!({"sessions": names})))
}

pub async fn snapshots(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path(name): Path<String>,
    Queried(fields): Queried<Fields>,
) -> Answered {
    let fields = js::fields(fields.fields.as_deref()).map_err(|error| problem(error.into()))?;
    let entries = log(&service, &caller, name).await.map_err(problem)?;
    Ok(Json(json!({"entries": entries.iter().map(|entry| js::entry(entry, &fields)).collect::<Vec<_>>()})))
}

/// A logical session is listed by its id; any other name is a connection's.
async fn log(service: &Service, caller: &Caller, name: String) -> Result<Vec<session::LogEntry>, Error> {
    if LogicalSessionId::parse(&name).is_ok() {
        match service.session_log(caller, &SessionTarget::Logical(name.clone())).await {
            Err(Error::NoSession(_)) => {}
            found => return found,
        }
    }
    service.session_log(caller, &SessionTarget::Named(name)).await
}

pub async fn heap(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path(key): Path<String>,
) -> Answered {
    let info = service.heap_info(&caller, &key).await.map_err(problem)?;
    Ok(Json(js::heap(&info)))
}

pub async fn tags(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path(key): Path<String>,
) -> Answered {
    let tags = service.heap_tags(&caller, &key).await.map_err(problem)?;
    Ok(Json(json!({"tags": tags})))
}

pub async fn set_tags(
    State(service): State<Arc<Service>>,
    AsCaller(caller): AsCaller,
    Path(key): Path<String>,
    Given(given): Given<Tags>,
) -> Answered {
    service.set_heap_tags(&caller, &key, given.tags).await.map_err(problem)?;
    Ok(Json(json!({"ok": true})))
}
