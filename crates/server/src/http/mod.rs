//! The HTTP server: MCP at `/mcp`, health, and the checks in front of all of it.
//! Invariant: every response has a request id; every error is JSON with a stable code: JSON-RPC at `/mcp`, problem+json elsewhere.

mod auth;
mod body;
mod discovery;
mod envelope;
mod execute;
mod guard;
mod health;
mod js;
mod listen;
mod openapi;
mod problem;
mod routes;
mod sessions;
mod traces;
mod under_way;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRef, Request};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use base::TenantId;
use futures::FutureExt;
use session::Service;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::mcp;
use crate::message::MESSAGE_BYTES;
use under_way::UnderWay;

#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Names this server is reached by, without a port.
    pub hosts: Vec<String>,
    /// How long running work may go on after a stop.
    pub drain: Duration,
    /// Whether a request needs an API key.
    pub auth: bool,
    /// For tenants whose calls are bounded.
    pub calls_per_minute: BTreeMap<TenantId, u32>,
    pub mcp: mcp::McpOptions,
}

impl HttpOptions {
    /// For loopback: every caller is the same, and may call as often as it likes.
    pub fn without_keys(hosts: Vec<String>, drain: Duration) -> Self {
        Self { hosts, drain, auth: false, calls_per_minute: BTreeMap::new(), mcp: mcp::McpOptions::default() }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("the listener has no address")]
    Address(#[source] std::io::Error),
}

/// Serves until `stop` is cancelled, then lets running requests finish for at most `drain`.
pub async fn serve(
    listener: TcpListener,
    service: Arc<Service>,
    options: HttpOptions,
    stop: CancellationToken,
) -> Result<(), HttpError> {
    let port = listener.local_addr().map_err(HttpError::Address)?.port();
    let (under_way, over) = (UnderWay::new(), CancellationToken::new());
    let router = router(service, &options, port, (under_way.clone(), over.clone()));
    listen::serve(listener, router, &listen::Stop { stop, over, drain: options.drain, under_way }).await;
    Ok(())
}

/// What handlers stand on.
#[derive(Clone)]
pub struct App {
    service: Arc<Service>,
    /// Whether requests need a key.
    auth: bool,
    /// Ends the streams that wait for events; calls are let finish before it is cancelled.
    over: CancellationToken,
}

impl FromRef<App> for Arc<Service> {
    fn from_ref(app: &App) -> Self {
        app.service.clone()
    }
}

fn router(
    service: Arc<Service>,
    options: &HttpOptions,
    port: u16,
    (under_way, over): (UnderWay, CancellationToken),
) -> Router {
    let origins = guard::origins(&options.hosts, port);
    let lists = mcp::HttpLists { hosts: &options.hosts, origins: &origins };
    let mcp = Arc::new(mcp::service(service.clone(), lists, options.mcp.clone(), MESSAGE_BYTES, over.clone()));
    let guard = Arc::new(guard::Guard::new(service.clone(), &options.hosts, &origins));
    let auth = Arc::new(auth::Auth::new(service.clone(), options.auth, options.calls_per_minute.clone()));
    let mcp = Router::new()
        .route("/mcp", any(move |request: Request| answer(mcp.clone(), request)))
        .layer(from_fn(with_headers))
        .layer(from_fn(envelope::check))
        .layer(from_fn_with_state(auth.clone(), auth::own_transport));
    let app = App { service, auth: options.auth, over };
    let routes =
        routes::table().into_iter().fold(Router::new(), |router, route| router.route(route.path, route.served));
    routes
        .with_state(app)
        .layer(from_fn(whole))
        .merge(mcp)
        .layer(from_fn_with_state(under_way, under_way::count))
        .fallback(problem::no_route)
        .method_not_allowed_fallback(problem::no_method)
        .layer(from_fn_with_state(auth, auth::check))
        .layer(from_fn_with_state(guard, guard::check))
}

/// Through a handle: a clone of the service copies its lists of hosts and origins.
async fn answer(mcp: Arc<mcp::McpHttp>, request: Request) -> Response {
    mcp.handle(request).await.map(Body::new)
}

/// What the MCP SDK does not hand on: the headers that a connection is named by.
async fn with_headers(request: Request, next: Next) -> Response {
    match mcp::read_headers(request.headers()) {
        Ok(headers) => mcp::during_headers(headers, next.run(request)).await,
        // In a transport session it names nothing: `initialize` did.
        Err(_) if request.headers().contains_key(mcp::SESSION_HEADER) => next.run(request).await,
        Err(bad) => (StatusCode::BAD_REQUEST, format!("{}: {bad}", mcp::BadName::CODE)).into_response(),
    }
}

/// A defect of ours ends one call, and the caller hears of it.
async fn whole(request: Request, next: Next) -> Response {
    let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    answered.unwrap_or_else(|_| problem::Problem::internal().into_response())
}

/// All of a result, as `/execute` answers it.
pub fn result_json(ran: &session::RunResult) -> serde_json::Value {
    serde_json::to_value(execute::result(ran)).unwrap_or_default()
}

/// The description of every route, as `/openapi.json` serves it.
pub fn openapi() -> serde_json::Value {
    openapi::description()
}
