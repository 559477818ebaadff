//! Resolves a caller's reference to the session it means.
//! Invariant: a reference is looked up under the caller's tenant only; an id of another tenant appears not to exist.
//! Every catalog that teaching, checking or running uses comes from here, without the parts that the tenant may not
//! use.

use std::sync::Arc;

use access::Caller;
use base::{Digest, LogicalSessionId, Slot, TenantId};
use catalog::{Catalog, Registry};
use ports::store::{Key, Table};
use teach::Catalogs;

use crate::error::Error;
use crate::rows::{self, ConnectionRow, ExecuteBinding, ExecuteRow, IntentRow, LogicalRow};
use crate::service::Service;

/// A row and the version at which it was read.
#[derive(Debug, Clone)]
pub struct Versioned<T> {
    pub row: T,
    /// The version that a compare-and-set expects. 0 stands for a row that does not exist yet.
    pub version: u64,
}

/// Everything that a program needs of its session.
pub struct Session {
    /// The id of the logical session.
    pub id: LogicalSessionId,
    /// The caller's own slot for the session.
    pub slot: Slot,
    /// The address of the execute session, which the URIs of its runs contain.
    pub binding: ExecuteBinding,
    /// The row of the execute session: its ledger and its pins.
    pub execute: ExecuteRow,
    /// The pinned catalogs, as far as the caller's tenant may use them.
    pub catalogs: Catalogs,
    /// The registry from which the session could be taught more.
    pub offered: Arc<Registry>,
    /// The logical session's row, as it was when the session was read.
    pub logical: Versioned<LogicalRow>,
}

impl Service {
    /// Returns the registry that a tenant sees at this moment.
    pub fn registry_for(&self, tenant: &TenantId) -> Arc<Registry> {
        self.tenants.registry_view(tenant, self.registry())
    }

    /// Returns a pinned catalog by its digest. `None` if the tenant may use nothing of it any more.
    pub(crate) async fn catalog_for(&self, tenant: &TenantId, digest: Digest) -> Result<Option<Arc<Catalog>>, Error> {
        Ok(self.tenants.catalog_view(tenant, self.catalog(digest).await?))
    }

    /// Resolves a reference and loads its session.
    pub(crate) async fn session(&self, caller: &Caller, reference: &str) -> Result<Session, Error> {
        let (id, slot) = self.resolve(caller, reference).await?;
        self.session_in(caller, id, slot).await
    }

    /// Loads a session for which the caller has this slot.
    pub(crate) async fn session_in(&self, caller: &Caller, id: LogicalSessionId, slot: Slot) -> Result<Session, Error> {
        let logical = self.logical(caller, id).await?.ok_or_else(|| Error::NoSession(id.to_string()))?;
        let binding = logical.row.execute.clone().ok_or_else(|| Error::Expired(slot.to_string()))?;
        let symbol_space = async {
            let found = self.execute(caller, &binding).await?.ok_or_else(|| Error::Expired(slot.to_string()))?;
            let catalogs = self.pinned_catalogs(&caller.tenant, &found.row).await?;
            Ok((found.row, catalogs))
        };
        // Damage gets an error of its own, because the caller can repair it: opening the session again replaces the
        // damaged execute session.
        let (execute, catalogs) = symbol_space.await.map_err(|error: Error| match error.is_damage() {
            true => Error::DamagedSession { session: slot.to_string(), cause: Box::new(error) },
            false => error,
        })?;
        let offered = self.registry_for(&caller.tenant);
        Ok(Session { id, slot, binding, execute, catalogs, offered, logical })
    }

    /// Returns the pinned catalogs of an execute session, as the tenant sees them.
    pub(crate) async fn pinned_catalogs(&self, tenant: &TenantId, execute: &ExecuteRow) -> Result<Catalogs, Error> {
        let mut catalogs = Catalogs::new();
        for (name, digest) in &execute.catalogs {
            if let Some(catalog) = self.catalog_for(tenant, *digest).await? {
                catalogs.insert(name.clone(), catalog);
            }
        }
        Ok(catalogs)
    }

    /// Resolves a slot of this connection, or a canonical id, which gets a slot on first use.
    pub(crate) async fn resolve(&self, caller: &Caller, reference: &str) -> Result<(LogicalSessionId, Slot), Error> {
        // A reference may be copied together with the backticks that surround it in an answer.
        let reference = reference.trim().trim_matches('`');
        if let Ok(slot) = reference.parse::<Slot>() {
            return Ok((self.session_in_slot(caller, slot).await?, slot));
        }
        let id = LogicalSessionId::parse(reference).map_err(|_| Error::BadRef(base::printable(reference, 80)))?;
        if self.logical(caller, id).await?.is_none() {
            return Err(Error::NoSession(id.to_string()));
        }
        Ok((id, self.slot_for(caller, id).await?))
    }

    /// Returns the row of the caller's connection, which has no slots before its first session.
    pub(crate) async fn connection(&self, caller: &Caller) -> Result<Versioned<ConnectionRow>, Error> {
        let key = Key::new(&caller.tenant, Table::Connection, caller.connection.row_id());
        Ok(self.fetch(&key).await?.unwrap_or(Versioned { row: ConnectionRow::default(), version: 0 }))
    }

    /// Returns the row that leads from an intent, or from a reuse key, to its session.
    pub(crate) async fn intent(&self, caller: &Caller, id: &str) -> Result<Option<IntentRow>, Error> {
        let key = Key::new(&caller.tenant, Table::Intent, id);
        Ok(self.fetch(&key).await?.map(|found| found.row))
    }

    /// Returns the row of a logical session that the caller may see.
    pub(crate) async fn logical(
        &self,
        caller: &Caller,
        id: LogicalSessionId,
    ) -> Result<Option<Versioned<LogicalRow>>, Error> {
        let found: Option<Versioned<LogicalRow>> =
            self.fetch(&Key::new(&caller.tenant, Table::LogicalSession, id.to_string())).await?;
        Ok(found.filter(|found| !self.is_hidden(caller, found.row.owner.as_ref())))
    }

    /// Returns the row of an execute session. The caller compares the prompt hash if it did not come from a row.
    pub(crate) async fn execute(
        &self,
        caller: &Caller,
        binding: &ExecuteBinding,
    ) -> Result<Option<Versioned<ExecuteRow>>, Error> {
        self.fetch(&Key::new(&caller.tenant, Table::ExecuteSession, binding.session_id.to_string())).await
    }

    /// Reads and parses a row.
    pub(crate) async fn fetch<T: serde::de::DeserializeOwned>(&self, key: &Key) -> Result<Option<Versioned<T>>, Error> {
        let Some(found) = self.ports.store.get(key).await? else {
            return Ok(None);
        };
        let name = format!("{}/{}", key.table.name(), key.id);
        Ok(Some(Versioned { row: rows::read(&name, &found.value)?, version: found.version }))
    }
}
