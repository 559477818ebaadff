//! MCP on standard input and output.
//! Invariant: nothing but protocol messages goes to standard output.

use std::sync::Arc;

use rmcp::ServiceExt;
use session::Service;
use tokio_util::sync::CancellationToken;

use super::handler::Handler;

#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    #[error("the MCP handshake failed")]
    Handshake(#[source] Box<rmcp::service::ServerInitializeError>),
    #[error("the MCP connection broke")]
    Broken(#[source] tokio::task::JoinError),
}

/// Serves one client until it closes its end or `stop` is cancelled.
pub async fn serve_stdio(service: Arc<Service>, stop: CancellationToken) -> Result<(), StdioError> {
    let running = match Handler::new(service).serve_with_ct(rmcp::transport::stdio(), stop).await {
        Ok(running) => running,
        // A client that leaves before it says hello is not a failure.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(rmcp::service::ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(StdioError::Handshake(Box::new(error))),
    };
    running.waiting().await.map(|_| ()).map_err(StdioError::Broken)
}
