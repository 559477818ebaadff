//! Transport sessions of older protocol revisions, kept so that a restart does not lose them.
//! Invariant: what is kept is the client's own `initialize`, as bytes nobody here interprets.

use base::{Digest, TenantId};
use ports::store::{Batch, Expect, Key, Table};

use crate::error::Error;
use crate::service::Service;

impl Service {
    pub async fn keep_transport(&self, tenant: &TenantId, id: &str, state: Vec<u8>) -> Result<(), Error> {
        Ok(self.ports.store.commit(Batch::default().put(key(tenant, id), state, Expect::Any)).await?)
    }

    pub async fn transport(&self, tenant: &TenantId, id: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.ports.store.get(&key(tenant, id)).await?.map(|row| row.value))
    }

    pub async fn drop_transport(&self, tenant: &TenantId, id: &str) -> Result<(), Error> {
        Ok(self.ports.store.commit(Batch::default().delete(key(tenant, id), Expect::Any)).await?)
    }
}

fn key(tenant: &TenantId, id: &str) -> Key {
    Key::new(tenant, Table::Transport, Digest::of(id.as_bytes()).to_string())
}
