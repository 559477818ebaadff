//! The MCP service for the HTTP router.
//! Invariant: Host and Origin are checked against the same lists as every other route.

use std::sync::Arc;

use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use session::Service;
use tokio_util::sync::CancellationToken;

use super::transport_store::TransportStore;
use super::{McpOptions, Root, Roots};
use crate::identity;

pub type McpHttp = StreamableHttpService<Root, LocalSessionManager>;

/// Who may be asked, and by which pages.
pub struct HttpLists<'a> {
    pub hosts: &'a [String],
    pub origins: &'a [String],
}

pub fn service(
    service: Arc<Service>,
    lists: HttpLists<'_>,
    options: McpOptions,
    body_bytes: usize,
    stop: CancellationToken,
) -> McpHttp {
    let mut config = StreamableHttpServerConfig::default()
        .with_allowed_hosts(lists.hosts)
        .with_allowed_origins(lists.origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(body_bytes)
        // In 2026-07-28 an answer that nothing comes before is one JSON body instead of a stream of one event.
        .with_json_response(true)
        .with_cancellation_token(stop);
    config.session_store = Some(Arc::new(TransportStore(service.clone())));
    let roots = Roots::new(&options);
    // Made for each session, or for each request where there is none, within the request that asks for it.
    let handler = move || {
        let who = identity::current().ok_or_else(|| std::io::Error::other("a request without an identity"))?;
        Ok(roots.root(service.clone(), who.tenant))
    };
    StreamableHttpService::new(handler, Arc::new(LocalSessionManager::default()), config)
}
