//! Who a request is from, for the places that the MCP SDK calls without handing the request on.
//! Invariant: set for the whole of an HTTP request, before any handler; where it is not set there is no request.

use access::Identity;

tokio::task_local! {
    static CURRENT: Identity;
}

/// Runs `work` as this identity's.
pub async fn during<T>(identity: Identity, work: impl Future<Output = T>) -> T {
    CURRENT.scope(identity, work).await
}

/// Whose request this task answers; `None` outside of any.
pub fn current() -> Option<Identity> {
    CURRENT.try_with(Clone::clone).ok()
}
