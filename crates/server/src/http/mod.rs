//! The HTTP server: MCP at `/mcp`, health, and the checks in front of all of it.
//! Invariant: every response has a request id; every error is JSON with a stable code: JSON-RPC at `/mcp`, problem+json elsewhere.

mod envelope;
mod guard;
mod health;
mod listen;
mod problem;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use session::Service;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::mcp;
use crate::message::MESSAGE_BYTES;

#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Names this server is reached by, without a port.
    pub hosts: Vec<String>,
    /// How long running work may go on after a stop.
    pub drain: Duration,
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
    // Streams that wait for nothing in particular would hold the drain up: they end when the drain begins.
    let router = router(service, &options, port, stop.clone());
    listen::serve(listener, router, options.drain, stop).await;
    Ok(())
}

fn router(service: Arc<Service>, options: &HttpOptions, port: u16, stop: CancellationToken) -> Router {
    let origins = guard::origins(&options.hosts, port);
    let mcp =
        mcp::service(service.clone(), mcp::HttpLists { hosts: &options.hosts, origins: &origins }, MESSAGE_BYTES, stop);
    let guard = Arc::new(guard::Guard::new(service.clone(), &options.hosts, &origins));
    let mcp = Router::new().route_service("/mcp", mcp).layer(axum::middleware::from_fn(envelope::check));
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .with_state(service)
        .merge(mcp)
        .fallback(problem::no_route)
        .method_not_allowed_fallback(problem::no_method)
        .layer(axum::middleware::from_fn_with_state(guard, guard::check))
}
