//! The HTTP server: MCP at `/mcp`, health, and the checks in front of all of it.
//! Invariant: every response has a request id; every error is JSON with a stable code: JSON-RPC at `/mcp`, problem+json elsewhere.

mod discovery;
mod envelope;
mod guard;
mod health;
mod listen;
mod problem;
mod under_way;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
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
    pub offer: mcp::Offer,
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

/// `over` ends the streams that wait for events; calls are let finish before it is cancelled.
fn router(
    service: Arc<Service>,
    options: &HttpOptions,
    port: u16,
    (under_way, over): (UnderWay, CancellationToken),
) -> Router {
    let origins = guard::origins(&options.hosts, port);
    let lists = mcp::HttpLists { hosts: &options.hosts, origins: &origins };
    let mcp = mcp::service(service.clone(), options.offer, lists, MESSAGE_BYTES, over);
    let guard = Arc::new(guard::Guard::new(service.clone(), &options.hosts, &origins));
    let mcp = Router::new()
        .route_service("/mcp", mcp)
        .layer(axum::middleware::from_fn(envelope::check))
        .layer(axum::middleware::from_fn_with_state(under_way, under_way::count));
    Router::new()
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .route("/v1/discover", post(discovery::discover))
        .route("/v1/registry", get(discovery::list))
        .route("/v1/registry/{id}", get(discovery::one))
        .with_state(service)
        .merge(mcp)
        .fallback(problem::no_route)
        .method_not_allowed_fallback(problem::no_method)
        .layer(axum::middleware::from_fn_with_state(guard, guard::check))
}
