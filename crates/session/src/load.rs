//! From what a caller says to the session it means.
//! Invariant: a reference is looked up under the caller's tenant only; another tenant's id reads as no session. Every catalog
//! that teaching, checking or running looks at comes from here; what the tenant may not use is not in it.

use std::sync::Arc;

use base::{Digest, LogicalSessionId, Slot, TenantId};
use catalog::{Catalog, Registry};
use ports::store::{Key, Table};
use teach::Catalogs;

use crate::error::Error;
use crate::rows::{self, ConnectionRow, ExecuteBinding, ExecuteRow, IntentRow, LogicalRow};
use crate::service::Service;
use access::{Caller, Connection};

/// A row and the version it was read at.
#[derive(Debug, Clone)]
pub struct Versioned<T> {
    pub row: T,
    pub version: u64,
}

/// Everything a program needs of its session.
pub struct Session {
    pub id: LogicalSessionId,
    /// The caller's own slot for it.
    pub slot: Slot,
    pub binding: ExecuteBinding,
    pub execute: ExecuteRow,
    /// As the caller's tenant sees them.
    pub catalogs: Catalogs,
    /// What it could be taught beside them.
    pub offered: Arc<Registry>,
    /// Its own row, as it was a moment ago.
    pub logical: Versioned<LogicalRow>,
}

impl Service {
    /// What is offered to a tenant at this moment.
    pub fn registry_for(&self, tenant: &TenantId) -> Arc<Registry> {
        self.tenants.registry_view(tenant, self.registry())
    }

    /// A catalog by the digest a session pinned; `None` where the tenant may use nothing of it any more.
    pub(crate) async fn catalog_for(&self, tenant: &TenantId, digest: Digest) -> Result<Option<Arc<Catalog>>, Error> {
        Ok(self.tenants.catalog_view(tenant, self.catalog(digest).await?))
    }

    pub(crate) async fn session(&self, caller: &Caller, reference: &str) -> Result<Session, Error> {
        let (id, slot) = self.resolve(caller, reference).await?;
        self.session_in(caller, id, slot).await
    }

    /// A session that the caller has this slot for.
    pub(crate) async fn session_in(&self, caller: &Caller, id: LogicalSessionId, slot: Slot) -> Result<Session, Error> {
        let logical = self.logical(caller, id).await?.ok_or_else(|| Error::NoSession(id.to_string()))?;
        let binding = logical.row.execute.clone().ok_or_else(|| Error::Expired(slot.to_string()))?;
        let whole = async {
            let found = self.execute(caller, &binding).await?.ok_or_else(|| Error::Expired(slot.to_string()))?;
            let catalogs = self.pinned(&caller.tenant, &found.row).await?;
            Ok((found.row, catalogs))
        };
        let (execute, catalogs) = whole.await.map_err(|error: Error| match error.is_damage() {
            true => Error::DamagedSession { session: slot.to_string(), cause: Box::new(error) },
            false => error,
        })?;
        let offered = self.registry_for(&caller.tenant);
        Ok(Session { id, slot, binding, execute, catalogs, offered, logical })
    }

    /// What a symbol space stands on, as the tenant sees it.
    pub(crate) async fn pinned(&self, tenant: &TenantId, execute: &ExecuteRow) -> Result<Catalogs, Error> {
        let mut catalogs = Catalogs::new();
        for (name, digest) in &execute.catalogs {
            if let Some(seen) = self.catalog_for(tenant, *digest).await? {
                catalogs.insert(name.clone(), seen);
            }
        }
        Ok(catalogs)
    }

    /// A slot of this connection, or a canonical id, which is given a slot on first use.
    pub(crate) async fn resolve(&self, caller: &Caller, reference: &str) -> Result<(LogicalSessionId, Slot), Error> {
        let reference = reference.trim().trim_matches('`');
        if let Ok(slot) = reference.parse::<Slot>() {
            return Ok((self.in_slot(caller, slot).await?, slot));
        }
        let id = LogicalSessionId::parse(reference).map_err(|_| Error::BadRef(base::printable(reference, 80)))?;
        if self.logical(caller, id).await?.is_none() {
            return Err(Error::NoSession(id.to_string()));
        }
        Ok((id, self.slot_for(caller, id).await?))
    }

    /// The session in a slot of the caller's connection.
    async fn in_slot(&self, caller: &Caller, slot: Slot) -> Result<LogicalSessionId, Error> {
        // A transport's slots go with it.
        let of = match &caller.connection {
            Connection::Principal(principal) => Some((caller.tenant.clone(), principal.clone())),
            Connection::Transport(_) | Connection::Execute(_) => None,
        };
        if let Some(id) = of.as_ref().and_then(|of| self.slots.get(of, slot, self.now())) {
            return Ok(id);
        }
        // Before the read: what it tells is at least as new.
        let now = self.now();
        let slots = self.connection(caller).await?.row.slots;
        let id = slots.get(slot.0 as usize).copied().ok_or(Error::UnknownSlot { slot })?;
        if let Some(of) = of {
            self.slots.put(of, &slots, now);
        }
        Ok(id)
    }

    pub(crate) async fn connection(&self, caller: &Caller) -> Result<Versioned<ConnectionRow>, Error> {
        let key = Key::new(&caller.tenant, Table::Connection, caller.connection.row_id());
        Ok(self.fetch(&key).await?.unwrap_or(Versioned { row: ConnectionRow::default(), version: 0 }))
    }

    pub(crate) async fn intent(&self, caller: &Caller, id: &str) -> Result<Option<IntentRow>, Error> {
        let key = Key::new(&caller.tenant, Table::Intent, id);
        Ok(self.fetch(&key).await?.map(|found| found.row))
    }

    pub(crate) async fn logical(
        &self,
        caller: &Caller,
        id: LogicalSessionId,
    ) -> Result<Option<Versioned<LogicalRow>>, Error> {
        self.fetch(&Key::new(&caller.tenant, Table::LogicalSession, id.to_string())).await
    }

    pub(crate) async fn execute(
        &self,
        caller: &Caller,
        binding: &ExecuteBinding,
    ) -> Result<Option<Versioned<ExecuteRow>>, Error> {
        self.fetch(&Key::new(&caller.tenant, Table::ExecuteSession, binding.session_id.to_string())).await
    }

    pub(crate) async fn fetch<T: serde::de::DeserializeOwned>(&self, key: &Key) -> Result<Option<Versioned<T>>, Error> {
        let Some(found) = self.ports.store.get(key).await? else {
            return Ok(None);
        };
        let name = format!("{}/{}", key.table.name(), key.id);
        Ok(Some(Versioned { row: rows::read(&name, &found.value)?, version: found.version }))
    }
}
