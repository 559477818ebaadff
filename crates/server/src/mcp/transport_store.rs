//! Keeps the older revisions' transport sessions in our store, so that a client survives a restart of the server.
//! Invariant: a session id is only a key, of the tenant whose request it is; what comes back is the client's own `initialize`, with the `X-MCP-*` headers it came with.

use std::sync::Arc;

use async_trait::async_trait;
use base::TenantId;
use rmcp::transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError};
use session::Service;

use super::named;
use crate::identity;

pub struct TransportStore(pub Arc<Service>);

#[async_trait]
impl SessionStore for TransportStore {
    async fn load(&self, session_id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let found = self.0.transport(&tenant()?, session_id).await?;
        Ok(found.map(|bytes| serde_json::from_slice(&bytes)).transpose()?)
    }

    async fn store(&self, session_id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        let mut row = serde_json::to_value(state)?;
        let headers = named::of_request();
        if !headers.is_empty() {
            row[named::KEPT] = serde_json::to_value(headers)?;
        }
        let bytes = serde_json::to_vec(&row)?;
        Ok(self.0.store_transport(&tenant()?, session_id, bytes).await?)
    }

    async fn delete(&self, session_id: &str) -> Result<(), SessionStoreError> {
        Ok(self.0.drop_transport(&tenant()?, session_id).await?)
    }
}

/// The SDK asks within the request that it answers.
fn tenant() -> Result<TenantId, SessionStoreError> {
    let who = identity::current().ok_or_else(|| std::io::Error::other("a request without an identity"))?;
    Ok(who.tenant)
}
