//! Stores the transport sessions of the older protocol revisions, so that a client survives a restart of the server.
//! Invariant: a session id is a key within the tenant of the request, and of its principal where principals are separate. The stored value is the client's own `initialize`
//! with the `X-MCP-*` headers that came with it.

use std::sync::Arc;

use app::App;
use async_trait::async_trait;
use rmcp::transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError};

use super::connection;
use super::request_scope::RequestScope;

/// The store of transport sessions that the MCP SDK uses.
pub struct TransportStore(pub Arc<App>);

#[async_trait]
impl SessionStore for TransportStore {
    async fn load(&self, session_id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let caller = RequestScope::current()?.identity.caller(None);
        let stored = self.0.service().transport(&caller, session_id).await?;
        Ok(stored.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
    }

    async fn store(&self, session_id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        let RequestScope { identity, headers } = RequestScope::current()?;
        let mut row = serde_json::to_value(state)?;
        if !headers.is_empty() {
            row[connection::STORED_MEMBER] = serde_json::to_value(headers)?;
        }
        let bytes = serde_json::to_vec(&row)?;
        Ok(self.0.service().store_transport(&identity.caller(None), session_id, bytes).await?)
    }

    async fn delete(&self, session_id: &str) -> Result<(), SessionStoreError> {
        let caller = RequestScope::current()?.identity.caller(None);
        Ok(self.0.service().drop_transport(&caller, session_id).await?)
    }
}
