//! The HTTP server: MCP at `/mcp`, the routes of `routes`, and the checks in front of both.
//! Invariant: every response has a request id. Every error is JSON with a stable code: JSON-RPC at `/mcp`, problem+json elsewhere.

mod auth;
mod body;
mod connections;
mod discovery;
mod envelope;
mod execute;
mod guard;
mod health;
mod listen;
mod open_calls;
mod openapi;
mod problem;
mod route;
mod routes;
mod scripts;
mod sessions;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use access::Identity;
use app::App;
use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use futures::FutureExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::mcp::{self, McpHttpSettings, McpOptions, OwnHandler, RequestScope, WrapHandler};
use crate::message::MESSAGE_BYTES;
use crate::under_way::UnderWay;
use crate::view;
use open_calls::OpenCalls;

/// The settings of the HTTP server.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// The host names of this server, without a port.
    pub hosts: Vec<String>,
    /// The time for open calls to finish after a stop.
    pub drain: Duration,
    /// The settings of `/mcp`.
    pub mcp: McpOptions,
}

impl HttpOptions {
    pub fn new(hosts: Vec<String>, drain: Duration) -> Self {
        Self { hosts, drain, mcp: McpOptions::default() }
    }
}

/// Why the HTTP server could not start.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The port, which own origins contain, cannot be found out.
    #[error("the listener has no address")]
    Address(#[source] std::io::Error),
}

/// Serves until `stop` is cancelled, then lets open calls finish within the drain time.
pub async fn serve(
    listener: TcpListener,
    app: Arc<App>,
    options: HttpOptions,
    stop: CancellationToken,
) -> Result<(), HttpError> {
    serve_wrapped(listener, app, options, stop, OwnHandler).await
}

/// Serves with a wrapper around the MCP handler. Only test servers need one.
pub async fn serve_wrapped<W: WrapHandler>(
    listener: TcpListener,
    app: Arc<App>,
    options: HttpOptions,
    stop: CancellationToken,
    wrapper: W,
) -> Result<(), HttpError> {
    let port = listener.local_addr().map_err(HttpError::Address)?.port();
    let shutdown = listen::Shutdown {
        stop,
        streams_end: CancellationToken::new(),
        drain: options.drain,
        open_calls: OpenCalls::new(),
    };
    let router = router(app, &options, port, &shutdown, wrapper);
    let connections = connections::Connections::new(options.mcp.connections.clone());
    listen::serve(listener, router, connections, &shutdown).await;
    Ok(())
}

/// The state that every handler shares.
#[derive(Clone)]
pub struct HttpState {
    /// The use cases.
    app: Arc<App>,
    /// Ends the streams that wait for events. Open calls finish before it is cancelled.
    streams_end: CancellationToken,
}

/// Builds the routes and the layers around them. A layer that is added later runs earlier: a request passes the guard, then
/// authentication, then the count of open calls, and then the layers of its route.
fn router<W: WrapHandler>(
    app: Arc<App>,
    options: &HttpOptions,
    port: u16,
    shutdown: &listen::Shutdown,
    wrapper: W,
) -> Router {
    let origins = guard::own_origins(&options.hosts, port);
    let settings = McpHttpSettings {
        hosts: &options.hosts,
        origins: &origins,
        max_body_bytes: MESSAGE_BYTES,
        stop: shutdown.streams_end.clone(),
    };
    // Shared, because a clone of the SDK's service copies its lists of hosts and origins.
    let mcp = Arc::new(mcp::service(&app, &options.mcp, settings, wrapper));
    let answer = async move |request: Request| mcp.handle(request).await.map(Body::new);
    let mcp = Router::new()
        .route("/mcp", any(answer))
        .layer(from_fn(enter_request_scope))
        .layer(from_fn_with_state(UnderWay::new(options.mcp.connections.requests_under_way), envelope::check))
        // The outermost of the three: the SDK would find another tenant's transport session in memory by its id alone.
        .layer(from_fn_with_state(app.clone(), auth::own_transport_session));
    let mut routes = Router::new();
    for route in routes::table() {
        routes = routes.route(route.path, route.handler);
    }
    let guard = Arc::new(guard::Guard::new(app.clone(), &options.hosts, &origins));
    let state = HttpState { app: app.clone(), streams_end: shutdown.streams_end.clone() };
    routes
        .with_state(state)
        .layer(from_fn(answer_panics))
        .merge(mcp)
        .layer(from_fn_with_state(shutdown.open_calls.clone(), open_calls::count))
        .fallback(problem::no_route)
        .method_not_allowed_fallback(problem::no_method)
        .layer(from_fn_with_state(app, auth::check))
        .layer(from_fn_with_state(guard, guard::check))
}

/// Sets the scope that the MCP SDK's callbacks read.
async fn enter_request_scope(
    axum::Extension(identity): axum::Extension<Identity>,
    request: Request,
    next: Next,
) -> Response {
    let headers = match mcp::read_headers(request.headers()) {
        Ok(headers) => headers,
        // Within a transport session, the headers of `initialize` count and those of this request do not.
        Err(_) if request.headers().contains_key(mcp::TRANSPORT_SESSION_HEADER) => mcp::ConnectionHeaders::default(),
        Err(mistake) => {
            return (StatusCode::BAD_REQUEST, format!("{}: {mistake}", mcp::BadSessionName::CODE)).into_response();
        }
    };
    RequestScope { identity, headers }.enter(next.run(request)).await
}

/// Answers a request whose handler panicked. `App::call` catches panics of use cases; this catches those of the handlers.
async fn answer_panics(request: Request, next: Next) -> Response {
    let response = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    response.unwrap_or_else(|_| problem::Problem::internal().into_response())
}

/// Returns a whole result, as `/execute` answers it.
pub fn result_json(run: &session::RunResult) -> serde_json::Value {
    view::json(&execute::finished_json(run))
}

/// Returns the description of every route, as `/openapi.json` serves it.
pub fn openapi() -> serde_json::Value {
    view::json(&openapi::description(&routes::table()))
}
