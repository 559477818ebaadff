//! Scripts over HTTP: `/api/exec`, `/api/executions`, `/api/sessions`, `/api/heaps`.
//! Invariant: the same use cases as the tools, with the same JSON.

use std::collections::BTreeMap;

use app::calls::{
    CancelExecution, GetExecution, GetExecutionOutput, GetHeapTags, ListExecutions, ListSessionSnapshots, ListSessions,
    LogOwner, RunJs, SetHeapTags, ShowHeap,
};
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use base::ExecutionId;
use schemars::JsonSchema;
use serde::Deserialize;
use session::{HeapInfo, OutputPage};

use super::HttpState;
use super::auth::HttpCall;
use super::body::{JsonBody, QueryOf, list_limit};
use super::problem::Problem;
use crate::mcp::{BadSessionName, read_headers, scope_of};
use crate::view::{ExecutionList, ExecutionView, HeapTags, LogEntries, RunJsView, SessionNames, Success};

/// The most executions in a list.
const MAX_LISTED: usize = 500;
/// The most rows in other lists.
const MAX_ROWS: usize = 1_000;

/// A script to run.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Exec {
    /// JavaScript or TypeScript.
    code: String,
    /// The key of the heap to start from. Empty for a fresh heap.
    #[serde(default)]
    heap: Option<String>,
    /// The id of a logical session. The script starts from its heap.
    #[serde(default)]
    logical_session_ref: Option<String>,
    /// The name of the session, if the header X-MCP-Session-Id does not name it.
    #[serde(default)]
    session: Option<String>,
    /// Tags for the heap that the run produces.
    #[serde(default)]
    tags: Option<BTreeMap<String, String>>,
    /// Fail if there is no heap to start from.
    #[serde(default)]
    require_heap: bool,
    /// Answer after this time even if the run goes on.
    #[serde(default)]
    wait_ms: Option<u64>,
    /// End the run after this time.
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    memory_mb: Option<u64>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GetExecutionQuery {
    /// Wait at most this long for the end of the run.
    #[serde(default)]
    wait_ms: u64,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListExecutionsQuery {
    /// The last execution of the page before.
    #[serde(default)]
    #[schemars(extend("format" = "uuid"))]
    after: Option<String>,
    /// The length of the page, 50 by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputQuery {
    /// The first line to read. Lines and bytes exclude each other.
    #[serde(default)]
    line_offset: Option<u64>,
    #[serde(default)]
    line_limit: Option<u64>,
    /// The first byte to read.
    #[serde(default)]
    byte_offset: Option<u64>,
    #[serde(default)]
    byte_limit: Option<u64>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotsQuery {
    /// The fields of each entry, separated by commas. All by default.
    #[serde(default)]
    fields: Option<String>,
    /// The index of the last entry of the page before.
    #[serde(default)]
    after: Option<u64>,
    /// The length of the page, as long as possible by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListSessionsQuery {
    /// The last name of the page before.
    #[serde(default)]
    after: Option<String>,
    /// The length of the page, as long as possible by default.
    #[serde(default)]
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
}

/// All tags of a heap.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tags {
    tags: BTreeMap<String, String>,
}

pub async fn exec(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Exec>,
) -> Result<(StatusCode, Json<RunJsView>), Problem> {
    let headers = read_headers(&headers)
        .map_err(|mistake| Problem::new(StatusCode::BAD_REQUEST, BadSessionName::CODE, mistake.to_string()))?;
    // Without an id cell: a client that closes the connection does not cancel the run. `/api/executions/{id}/cancel` does.
    let mut connection = scope_of(headers);
    connection.session_name = body.session.or(connection.session_name);
    let request = RunJs {
        code: body.code,
        heap: body.heap,
        logical_session_ref: body.logical_session_ref,
        tags: body.tags,
        require_heap: body.require_heap,
        wait_ms: body.wait_ms,
        timeout_ms: body.timeout_ms,
        memory_mb: body.memory_mb,
        connection,
    };
    let answer = state.app.call(&context, request).await?;
    let status = if answer.execution.state.is_final() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(RunJsView::new(&answer))))
}

pub async fn list_executions(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    QueryOf(query): QueryOf<ListExecutionsQuery>,
) -> Result<Json<ExecutionList>, Problem> {
    let after = match query.after {
        Some(id) => Some(ExecutionId::parse(&id).map_err(|_| Problem::bad_arguments("`after` is no execution"))?),
        None => None,
    };
    let limit = list_limit(query.limit, ListExecutions::DEFAULT_LIMIT, MAX_LISTED)?;
    let executions = state.app.call(&context, ListExecutions { after, limit: Some(limit) }).await?;
    Ok(Json(ExecutionList::new(&executions)))
}

pub async fn get_execution(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path(execution_id): Path<String>,
    QueryOf(query): QueryOf<GetExecutionQuery>,
) -> Result<Json<ExecutionView>, Problem> {
    let execution = state.app.call(&context, GetExecution { execution_id, wait_ms: query.wait_ms }).await?;
    Ok(Json(ExecutionView::new(&execution)))
}

pub async fn get_output(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path(execution_id): Path<String>,
    query: Result<QueryOf<OutputQuery>, Problem>,
) -> Result<Json<OutputPage>, Problem> {
    let query = match query {
        Ok(QueryOf(query)) => query,
        Err(problem) => {
            // An execution that does not exist is 404, whatever the query says.
            state.app.call(&context, GetExecution { execution_id, wait_ms: 0 }).await?;
            return Err(problem);
        }
    };
    let request = GetExecutionOutput {
        execution_id,
        line_offset: query.line_offset,
        line_limit: query.line_limit,
        byte_offset: query.byte_offset,
        byte_limit: query.byte_limit,
    };
    Ok(Json(state.app.call(&context, request).await?))
}

pub async fn cancel_execution(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path(execution_id): Path<String>,
) -> Result<Json<Success>, Problem> {
    state.app.call(&context, CancelExecution { execution_id }).await?;
    Ok(Json(Success::yes()))
}

pub async fn list_sessions(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    QueryOf(query): QueryOf<ListSessionsQuery>,
) -> Result<Json<SessionNames>, Problem> {
    let limit = list_limit(query.limit, MAX_ROWS, MAX_ROWS)?;
    let request = ListSessions { after: query.after, limit: Some(limit) };
    Ok(Json(SessionNames::new(state.app.call(&context, request).await?)))
}

pub async fn list_snapshots(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path(name): Path<String>,
    QueryOf(query): QueryOf<SnapshotsQuery>,
) -> Result<Json<LogEntries>, Problem> {
    let request = ListSessionSnapshots {
        fields: query.fields,
        logical_session_ref: None,
        after: query.after,
        limit: Some(list_limit(query.limit, MAX_ROWS, MAX_ROWS)?),
        owner: LogOwner::Address(name),
    };
    let fields = request.chosen_fields()?;
    let entries = state.app.call(&context, request).await?;
    Ok(Json(LogEntries::new(&entries, &fields)))
}

pub async fn get_heap(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path(heap): Path<String>,
) -> Result<Json<HeapInfo>, Problem> {
    Ok(Json(state.app.call(&context, ShowHeap { heap }).await?))
}

pub async fn get_tags(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path(heap): Path<String>,
) -> Result<Json<HeapTags>, Problem> {
    Ok(Json(HeapTags { tags: state.app.call(&context, GetHeapTags { heap }).await? }))
}

pub async fn set_tags(
    State(state): State<HttpState>,
    HttpCall(context): HttpCall,
    Path(heap): Path<String>,
    JsonBody(body): JsonBody<Tags>,
) -> Result<Json<Success>, Problem> {
    state.app.call(&context, SetHeapTags { heap, tags: body.tags }).await?;
    Ok(Json(Success::yes()))
}
