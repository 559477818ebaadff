//! Transport sessions of older protocol revisions, stored so that a restart does not lose them.
//! Invariant: the stored value is the client's own `initialize` message, as uninterpreted bytes.

use base::{Digest, TenantId, Timestamp};
use ports::store::{Batch, Expect, Key, Table};

use crate::error::Error;
use crate::service::Service;

impl Service {
    /// Stores the `initialize` message of a transport session.
    pub async fn store_transport(&self, tenant: &TenantId, id: &str, state: Vec<u8>) -> Result<(), Error> {
        // The first line is the time of storing.
        let value = [self.now().0.to_string().as_bytes(), b"\n", &state].concat();
        Ok(self.ports.store.commit(Batch::default().put(key(tenant, id), value, Expect::Any)).await?)
    }

    /// Returns the `initialize` message of a transport session.
    pub async fn transport(&self, tenant: &TenantId, id: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.ports.store.get(&key(tenant, id)).await?.map(|row| split_stored_time(row.value).1))
    }

    /// Forgets a transport session.
    pub async fn drop_transport(&self, tenant: &TenantId, id: &str) -> Result<(), Error> {
        Ok(self.ports.store.commit(Batch::default().delete(key(tenant, id), Expect::Any)).await?)
    }
}

/// Splits a stored value into its time and the client's message. A value without a time is the whole message.
pub(crate) fn split_stored_time(value: Vec<u8>) -> (Option<Timestamp>, Vec<u8>) {
    let line = value.iter().position(|byte| *byte == b'\n');
    let millis = line.and_then(|end| str::from_utf8(&value[..end]).ok()?.parse().ok());
    match (millis, line) {
        (Some(millis), Some(end)) => (Some(Timestamp(millis)), value[end + 1..].to_vec()),
        _ => (None, value),
    }
}

/// Returns the key of a transport session. Its id comes from a client, so the digest bounds its length and characters.
fn key(tenant: &TenantId, id: &str) -> Key {
    Key::new(tenant, Table::Transport, Digest::of(id.as_bytes()).to_string())
}
