//! MCP over Streamable HTTP, with the SDK's service for both protocol eras.
//! Invariant: a handler is made within the request that asks for it, so it belongs to that request's tenant.

use std::sync::Arc;

use app::App;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::live_sessions::LiveSessions;
use super::request_scope::RequestScope;
use super::transport_store::TransportStore;
use super::{HandlerFactory, McpOptions, WrapHandler};

/// The SDK's service with the product's handler, or with a test server's wrapper around it.
pub type McpHttp<W> = StreamableHttpService<<W as WrapHandler>::Wrapped, LiveSessions>;

/// The settings of the SDK's service.
pub struct McpHttpSettings<'a> {
    /// The host names that the SDK accepts. `http::guard` has checked them before.
    pub hosts: &'a [String],
    /// The origins of pages that the SDK accepts. `http::guard` has checked them before.
    pub origins: &'a [String],
    /// The largest body. `http::envelope` has checked it before.
    pub max_body_bytes: usize,
    /// Ends the streams of transport sessions.
    pub stop: CancellationToken,
}

/// Returns the service that answers `/mcp`.
pub fn service<W: WrapHandler>(
    app: &Arc<App>,
    options: &McpOptions,
    settings: McpHttpSettings<'_>,
    wrapper: W,
) -> McpHttp<W> {
    let mut config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(settings.hosts)
        .with_allowed_origins(settings.origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(settings.max_body_bytes)
        // In 2026-07-28 an answer without earlier notifications is one JSON body instead of a stream with one event.
        .with_json_response(true)
        .with_cancellation_token(settings.stop.clone());
    config.session_store = Some(Arc::new(TransportStore(app.clone())));
    let factory = HandlerFactory::new(app.clone(), options, wrapper);
    let make_handler = move || {
        let scope = RequestScope::current().map_err(std::io::Error::other)?;
        Ok(factory.handler(scope.identity.tenant))
    };
    let sessions = LiveSessions::start(options.connections.transport_sessions, settings.stop);
    StreamableHttpService::new(make_handler, sessions, config)
}
