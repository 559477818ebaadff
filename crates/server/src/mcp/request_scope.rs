//! The identity and the `X-MCP-*` headers of the HTTP request that a task answers.
//!
//! Handlers take the identity from the request. Only the callbacks of the MCP SDK that are called without a request read it
//! here: the factory of handlers and the store of transport sessions.
//! Invariant: the scope is set for the whole of an MCP request, before the SDK sees it.

use access::Identity;

use super::ConnectionHeaders;

/// The part of a request that the SDK does not pass to its callbacks.
#[derive(Clone)]
pub struct RequestScope {
    /// The identity that authentication found.
    pub identity: Identity,
    /// The headers that scripts of this connection may see.
    pub headers: ConnectionHeaders,
}

/// No request is being answered by this task.
#[derive(Debug, thiserror::Error)]
#[error("the MCP SDK called back outside of a request")]
pub struct NoRequest;

tokio::task_local! {
    // Local to the task, not to the thread: a request may move to another thread at every await.
    static CURRENT: RequestScope;
}

impl RequestScope {
    /// Runs `work` as part of this request.
    pub async fn enter<T>(self, work: impl Future<Output = T>) -> T {
        CURRENT.scope(self, work).await
    }

    /// Returns the scope of the request that this task answers.
    pub fn current() -> Result<Self, NoRequest> {
        CURRENT.try_with(Clone::clone).map_err(|_| NoRequest)
    }
}
