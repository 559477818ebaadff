//! Every route there is: what serves it and what describes it, side by side.
//! Invariant: the router and the OpenAPI description are both made from this table, so neither has a route the other lacks.

use axum::Json;
use axum::routing::{MethodRouter, get, post};
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::Value;

use super::openapi::{self, Answer, Query};
use super::{App, discovery, execute, health, js, sessions, traces};

pub struct Route {
    pub method: Method,
    pub path: &'static str,
    /// Stable: clients are generated from it.
    pub id: &'static str,
    pub about: &'static str,
    pub query: Option<Query>,
    pub body: Vec<Body>,
    pub answers: Vec<Answer>,
    /// Answers without a key.
    pub public: bool,
    pub served: MethodRouter<App>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
}

/// A form of body that it takes.
pub struct Body {
    pub kind: &'static str,
    pub schema: fn(&mut SchemaGenerator) -> Value,
    pub required: bool,
}

pub fn table() -> Vec<Route> {
    let mut routes = vec![
        route(Method::Get, "/healthz", "alive", get(health::alive))
            .about("The process answers.")
            .answers(&[Answer::json::<health::Alive>(200, "It does.")])
            .public(),
        route(Method::Get, "/readyz", "ready", get(health::ready))
            .about("Whether work can be accepted, and which catalogs cannot be offered.")
            .answers(&[Answer::json::<health::Ready>(200, "It can.")])
            .public(),
        route(Method::Get, "/openapi.json", "openapi", get(async || Json(openapi::description())))
            .about("This description.")
            .answers(&[Answer::any(200, "OpenAPI 3.1.")]),
        route(Method::Post, "/v1/discover", "discover", post(discovery::discover))
            .about("Which entities of which APIs an intent is about; with `typed` a decision and its options.")
            .body::<discovery::Asked>()
            .answers(&[Answer::any(200, "Rows, or a decision.")]),
        route(Method::Get, "/v1/registry", "listCatalogs", get(discovery::list))
            .about("The APIs that the caller may use.")
            .query::<discovery::Listing>()
            .answers(&[Answer::json::<discovery::Catalogs>(200, "By id.")]),
        route(Method::Get, "/v1/registry/{id}", "getCatalog", get(discovery::one))
            .about("One API with its entities and what can be done with them.")
            .answers(&[Answer::any(200, "It.")]),
        route(Method::Get, "/v1/sessions", "listSessions", get(sessions::list))
            .about("The tenant's sessions, the last used first.")
            .query::<sessions::Listing>()
            .answers(&[Answer::any(200, "Sessions, and how many more there are.")]),
        route(Method::Get, "/v1/sessions/{logical_session}", "getLogicalSession", get(sessions::one))
            .about("One session, by id, slot or intent, with the table of each wave.")
            .answers(&[Answer::any(200, "It.")]),
    ];
    routes.extend(executes());
    routes.extend(scripts());
    routes.extend(traces());
    routes
}

fn scripts() -> Vec<Route> {
    vec![
        route(Method::Post, "/api/exec", "runJs", post(js::exec))
            .about("Run JavaScript on a heap that lasts.")
            .body::<js::Exec>()
            .answers(&[Answer::any(200, "Its end."), Answer::any(202, "It goes on.")]),
        route(Method::Get, "/api/executions", "listExecutions", get(js::list))
            .about("Runs of JavaScript, the newest first.")
            .query::<js::Listing>()
            .answers(&[Answer::any(200, "Them.")]),
        route(Method::Get, "/api/executions/{id}", "getExecution", get(js::one))
            .about("State and result of a run, at once or when it has ended.")
            .query::<js::Patience>()
            .answers(&[Answer::any(200, "It.")]),
        route(Method::Get, "/api/executions/{id}/output", "getExecutionOutput", get(js::output))
            .about("Console output of a run, by lines or bytes.")
            .query::<js::Portion>()
            .answers(&[Answer::any(200, "A part of it, and where the next begins.")]),
        route(Method::Post, "/api/executions/{id}/cancel", "cancelExecution", post(js::cancel))
            .about("End a run.")
            .answers(&[Answer::any(200, "It is over.")]),
        route(Method::Get, "/api/sessions", "listJsSessions", get(js::sessions))
            .about("Names of sessions that have a log.")
            .answers(&[Answer::any(200, "Them.")]),
        route(Method::Get, "/api/sessions/{name}/snapshots", "listSessionSnapshots", get(js::snapshots))
            .about("The log of a session.")
            .query::<js::Fields>()
            .answers(&[Answer::any(200, "Its entries, in order.")]),
        route(Method::Get, "/api/heaps/{key}", "getHeap", get(js::heap))
            .about("What is known of a heap: sizes, engine, parents, tags.")
            .answers(&[Answer::any(200, "It.")]),
        route(Method::Get, "/api/heaps/{key}/tags", "getHeapTags", get(js::tags))
            .about("Tags of a heap.")
            .answers(&[Answer::any(200, "Them.")]),
        route(Method::Post, "/api/heaps/{key}/tags", "setHeapTags", post(js::set_tags))
            .about("Replace all tags of a heap.")
            .body::<js::Tags>()
            .answers(&[Answer::any(200, "Done.")]),
    ]
}

fn traces() -> Vec<Route> {
    vec![
        route(Method::Get, "/v1/traces", "listTraces", get(traces::list))
            .about("The caller's sessions, the last used first.")
            .answers(&[Answer::any(200, "Sessions.")]),
        route(Method::Get, "/v1/traces/{logical_session}", "getTrace", get(traces::one))
            .about("A session and its calls: programs, plans, steps, timings, receipts.")
            .answers(&[Answer::any(200, "It, the oldest call first.")]),
        route(Method::Get, "/metrics", "metrics", get(traces::metrics))
            .about("What the process counts, as Prometheus reads it.")
            .answers(&[Answer::of(200, "application/openmetrics-text", "Counters, gauges and histograms.")]),
    ]
}

fn executes() -> Vec<Route> {
    let lines = "application/x-ndjson";
    vec![
        route(Method::Post, "/execute", "openSession", post(execute::open))
            .about("Open an execute session over entities of an API, or find the one there is.")
            .body::<execute::Open>()
            .answers(&[Answer::json::<execute::Opened>(303, "Its address is in Location.")]),
        route(Method::Get, "/execute/{prompt_hash}/{session}", "getSession", get(execute::show))
            .about("The session: its cumulative table, revision and pinned catalogs.")
            .answers(&[Answer::json::<execute::Session>(200, "It.")]),
        route(Method::Post, "/execute/{prompt_hash}/{session}", "runProgram", post(execute::run))
            .about("Plan or run a program; the session's own slot is `s0`.")
            .query::<execute::Asked>()
            .optional_body::<execute::Program>()
            .text_body()
            .answers(&[
                Answer::either::<execute::Finished, execute::Planned>(200, "What it came to, or its plan."),
                Answer::text(200, "What a model would read."),
                Answer::of(200, lines, "A line for each row, and one for the rest."),
                Answer::json::<execute::Running>(202, "It goes on; Location leads to its events."),
            ]),
        route(Method::Post, "/execute/{prompt_hash}/{session}/context", "addToSession", post(execute::expand))
            .about("Teach the session more.")
            .body::<execute::More>()
            .answers(&[Answer::any(200, "What is new in its table.")]),
        route(
            Method::Get,
            "/execute/{prompt_hash}/{session}/operations/{handle}/stream",
            "followOperation",
            get(execute::operation),
        )
        .about("An operation's events: snapshot, progress, terminal.")
        .answers(&[Answer::of(200, "text/event-stream", "Ends after the terminal event.")]),
        route(Method::Get, "/execute/{prompt_hash}/{session}/artifacts/{run}", "getArtifact", get(execute::artifact))
            .about("All rows and fields of a run, by its number or id.")
            .answers(&[Answer::any(200, "It.")]),
    ]
}

fn route(method: Method, path: &'static str, id: &'static str, served: MethodRouter<App>) -> Route {
    let (query, body, answers) = (None, Vec::new(), Vec::new());
    Route { method, path, id, about: "", query, body, answers, public: false, served }
}

impl Route {
    fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    fn public(self) -> Self {
        Self { public: true, ..self }
    }

    fn query<T: JsonSchema>(self) -> Self {
        Self { query: Some(openapi::query::<T>), ..self }
    }

    fn body<T: JsonSchema>(mut self) -> Self {
        self.body.push(Body { kind: "application/json", schema: openapi::named::<T>, required: true });
        self
    }

    fn optional_body<T: JsonSchema>(mut self) -> Self {
        self.body.push(Body { kind: "application/json", schema: openapi::named::<T>, required: false });
        self
    }

    fn text_body(mut self) -> Self {
        self.body.push(Body { kind: "text/plain", schema: openapi::named::<String>, required: false });
        self
    }

    fn answers(self, answers: &[Answer]) -> Self {
        Self { answers: answers.to_vec(), ..self }
    }
}
