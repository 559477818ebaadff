//! The table of all routes.
//! Invariant: the router and the OpenAPI description are both made from this table, so neither has a route that the other lacks.

use app::calls::{DiscoverCapabilities, ListRegistry};
use axum::Json;
use axum::routing::{get, post};
use session::{Artifact, HeapInfo, OutputPage};

use super::route::{AnswerForm, Method, Route};
use super::{discovery, execute, health, openapi, scripts, sessions};
use crate::view::{
    ApiDescription, DiscoveredRows, DiscoveryDecision, ExecutionList, ExecutionView, HeapTags, LogEntries, RunJsView,
    SessionNames, Success,
};

/// Returns all routes, in the order in which OpenAPI describes them.
pub fn table() -> Vec<Route> {
    let mut routes = server_routes();
    routes.extend(registry_routes());
    routes.extend(session_routes());
    routes.extend(execute_routes());
    routes.extend(script_routes());
    routes.extend(heap_routes());
    routes
}

fn server_routes() -> Vec<Route> {
    vec![
        Route::new(Method::Get, "/healthz", "alive", get(health::alive))
            .summary("The process answers.")
            .answer(AnswerForm::json::<health::AliveBody>(200, "The process answers."))
            .public(),
        Route::new(Method::Get, "/readyz", "ready", get(health::ready))
            .summary("Whether work can be accepted, and which catalogs cannot be offered.")
            .answer(AnswerForm::json::<health::ReadyBody>(200, "Work can be accepted."))
            .public(),
        Route::new(Method::Get, "/openapi.json", "openapi", get(async || Json(openapi::description(&table()))))
            .summary("This description.")
            .answer(AnswerForm::json::<openapi::OpenApiBody>(200, "The description, in OpenAPI 3.1.")),
        Route::new(Method::Get, "/metrics", "metrics", get(health::metrics))
            .summary("The metrics of the process, in the format of Prometheus.")
            .answer(AnswerForm::text(200, health::METRICS_CONTENT_TYPE, "Counters, gauges and histograms.")),
    ]
}

fn registry_routes() -> Vec<Route> {
    vec![
        Route::new(Method::Post, "/v1/discover", "discover", post(discovery::discover))
            .summary("The entities that match an intent. With `typed`, a decision and its options.")
            .body::<DiscoverCapabilities>()
            .answer(AnswerForm::either::<DiscoveredRows, DiscoveryDecision>(200, "The matches, or a decision.")),
        Route::new(Method::Get, "/v1/registry", "listCatalogs", get(discovery::list))
            .summary("The APIs that the caller may use.")
            .query::<ListRegistry>()
            .answer(AnswerForm::json::<discovery::Catalogs>(200, "The APIs, in the order of their ids.")),
        Route::new(Method::Get, "/v1/registry/{id}", "getCatalog", get(discovery::show))
            .summary("One API with its entities and their operations.")
            .answer(AnswerForm::json::<ApiDescription>(200, "The API.")),
    ]
}

fn session_routes() -> Vec<Route> {
    vec![
        Route::new(Method::Get, "/v1/sessions", "listSessions", get(sessions::list))
            .summary("The caller's sessions, the last used first.")
            .query::<sessions::ListSessionsQuery>()
            .answer(AnswerForm::json::<sessions::SessionList>(200, "The sessions, and the number of others.")),
        Route::new(Method::Get, "/v1/sessions/{logical_session}", "getLogicalSession", get(sessions::show))
            .summary("One session, by id, slot or intent, with the table of each wave.")
            .answer(AnswerForm::json::<sessions::SessionBody>(200, "The session.")),
        Route::new(Method::Get, "/v1/traces", "listTraces", get(sessions::list_traces))
            .summary("The sessions that have a trace, the last used first.")
            .answer(AnswerForm::json::<sessions::SessionList>(200, "The sessions.")),
        Route::new(Method::Get, "/v1/traces/{logical_session}", "getTrace", get(sessions::show_trace))
            .summary("A session and its calls: programs, plans, steps, durations, receipts.")
            .answer(AnswerForm::json::<sessions::TraceBody>(200, "The session and its calls, the oldest first.")),
    ]
}

fn execute_routes() -> Vec<Route> {
    vec![
        Route::new(Method::Post, "/execute", "openSession", post(execute::open))
            .summary("Opens an execute session over entities of an API, or finds the session that has them.")
            .body::<execute::Open>()
            .answer(AnswerForm::json::<execute::Opened>(303, "The session; Location has its address.")),
        Route::new(Method::Get, "/execute/{prompt_hash}/{session}", "getSession", get(execute::show))
            .summary("The session: its cumulative table, revision and pinned catalogs.")
            .answer(AnswerForm::json::<execute::SessionShown>(200, "The session.")),
        Route::new(Method::Post, "/execute/{prompt_hash}/{session}", "runProgram", post(execute::run))
            .summary("Plans or runs a program. The session's own slot is `s0`.")
            .query::<execute::RunQuery>()
            .optional_body::<execute::Program>()
            .text_body()
            .answer(AnswerForm::either::<execute::Finished, execute::Planned>(200, "The result, or the plan."))
            .answer(AnswerForm::text(200, "text/plain", "The text that a model would read."))
            .answer(AnswerForm::text(200, "application/x-ndjson", "A line for each row, and one for the rest."))
            .answer(AnswerForm::json::<execute::Running>(202, "The run goes on; Location has its events.")),
        Route::new(Method::Post, "/execute/{prompt_hash}/{session}/context", "addToSession", post(execute::add_seeds))
            .summary("Teaches the session more entities.")
            .body::<execute::AddSeedsBody>()
            .answer(AnswerForm::json::<execute::Expanded>(200, "The new part of the session's table.")),
        Route::new(
            Method::Get,
            "/execute/{prompt_hash}/{session}/operations/{handle}/stream",
            "followOperation",
            get(execute::follow_operation),
        )
        .summary("The events of an operation: snapshot, progress, terminal.")
        .answer(AnswerForm::text(
            200,
            "text/event-stream",
            "Events. The stream ends after the terminal event.",
        )),
        Route::new(
            Method::Get,
            "/execute/{prompt_hash}/{session}/artifacts/{run}",
            "getArtifact",
            get(execute::read_artifact),
        )
        .summary("All rows and fields of a run, by its number or id.")
        .answer(AnswerForm::json::<Artifact>(200, "The result.")),
    ]
}

fn script_routes() -> Vec<Route> {
    vec![
        Route::new(Method::Post, "/api/exec", "runJs", post(scripts::exec))
            .summary("Runs JavaScript or TypeScript on a heap that outlives the call.")
            .body::<scripts::Exec>()
            .answer(AnswerForm::json::<RunJsView>(200, "The run has ended."))
            .answer(AnswerForm::json::<RunJsView>(202, "The run goes on.")),
        Route::new(Method::Get, "/api/executions", "listExecutions", get(scripts::list_executions))
            .summary("Script runs, the newest first.")
            .query::<scripts::ListExecutionsQuery>()
            .answer(AnswerForm::json::<ExecutionList>(200, "The executions, the newest first.")),
        Route::new(Method::Get, "/api/executions/{id}", "getExecution", get(scripts::get_execution))
            .summary("The state and result of a run, at once or when it has ended.")
            .query::<scripts::GetExecutionQuery>()
            .answer(AnswerForm::json::<ExecutionView>(200, "The execution.")),
        Route::new(Method::Get, "/api/executions/{id}/output", "getExecutionOutput", get(scripts::get_output))
            .summary("The console output of a run, by lines or bytes.")
            .query::<scripts::OutputQuery>()
            .answer(AnswerForm::json::<OutputPage>(200, "A part of the output, and the start of the next part.")),
        Route::new(Method::Post, "/api/executions/{id}/cancel", "cancelExecution", post(scripts::cancel_execution))
            .summary("Cancels a run.")
            .answer(AnswerForm::json::<Success>(200, "The run is cancelled.")),
        Route::new(Method::Get, "/api/sessions", "listJsSessions", get(scripts::list_sessions))
            .summary("The names of sessions that have a log of script runs.")
            .query::<scripts::ListSessionsQuery>()
            .answer(AnswerForm::json::<SessionNames>(200, "The names.")),
        Route::new(Method::Get, "/api/sessions/{name}/snapshots", "listSessionSnapshots", get(scripts::list_snapshots))
            .summary("The log of a session's script runs.")
            .query::<scripts::SnapshotsQuery>()
            .answer(AnswerForm::json::<LogEntries>(200, "The entries, the oldest first.")),
    ]
}

fn heap_routes() -> Vec<Route> {
    vec![
        Route::new(Method::Get, "/api/heaps/{key}", "getHeap", get(scripts::get_heap))
            .summary("The properties of a heap: sizes, engine, parents, tags.")
            .answer(AnswerForm::json::<HeapInfo>(200, "The heap.")),
        Route::new(Method::Get, "/api/heaps/{key}/tags", "getHeapTags", get(scripts::get_tags))
            .summary("The tags of a heap.")
            .answer(AnswerForm::json::<HeapTags>(200, "The tags.")),
        Route::new(Method::Post, "/api/heaps/{key}/tags", "setHeapTags", post(scripts::set_tags))
            .summary("Replaces all tags of a heap.")
            .body::<scripts::Tags>()
            .answer(AnswerForm::json::<Success>(200, "The tags are replaced.")),
    ]
}
