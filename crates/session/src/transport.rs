//! Transport sessions of older protocol revisions, kept so that a restart does not lose them.
//! Invariant: what is kept is the client's own `initialize`, as bytes nobody here interprets.

use base::{Digest, TenantId, Timestamp};
use ports::store::{Batch, Expect, Key, Table};

use crate::error::Error;
use crate::service::Service;

impl Service {
    pub async fn keep_transport(&self, tenant: &TenantId, id: &str, state: Vec<u8>) -> Result<(), Error> {
        // When it was kept, on a line before it.
        let dated = [self.now().0.to_string().as_bytes(), b"\n", &state].concat();
        Ok(self.ports.store.commit(Batch::default().put(key(tenant, id), dated, Expect::Any)).await?)
    }

    pub async fn transport(&self, tenant: &TenantId, id: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.ports.store.get(&key(tenant, id)).await?.map(|row| dated(row.value).1))
    }

    pub async fn drop_transport(&self, tenant: &TenantId, id: &str) -> Result<(), Error> {
        Ok(self.ports.store.commit(Batch::default().delete(key(tenant, id), Expect::Any)).await?)
    }
}

/// When a transport session was kept, and what of it.
pub(crate) fn dated(value: Vec<u8>) -> (Option<Timestamp>, Vec<u8>) {
    let line = value.iter().position(|byte| *byte == b'\n');
    let date = line.and_then(|end| str::from_utf8(&value[..end]).ok()?.parse().ok());
    match (date, line) {
        (Some(date), Some(end)) => (Some(Timestamp(date)), value[end + 1..].to_vec()),
        _ => (None, value),
    }
}

fn key(tenant: &TenantId, id: &str) -> Key {
    Key::new(tenant, Table::Transport, Digest::of(id.as_bytes()).to_string())
}
