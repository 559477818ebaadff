//! Answers an open that changes nothing from memory.
//! Invariant: the answer is used only while every row it was based on has the same version; nothing is written.

use std::sync::Arc;

use base::{Digest, Slot};
use ports::store::{Key, Table};
use serde_json::json;

use super::{Continuity, OpenCall, OpenedSession, TaughtTable};
use crate::error::Error;
use crate::load::Versioned;
use crate::rows::{LogicalRow, TOUCH_MS};
use crate::service::Service;

impl OpenCall<'_> {
    /// Returns the digest of everything that decides the answer, apart from stored rows. `None` for a call that wants
    /// a table.
    pub(super) fn digest(&self) -> Option<Digest> {
        let request = self.request;
        if request.replay || request.refresh {
            return None;
        }
        let seeds: Vec<_> = request.seeds.iter().map(|s| (&s.api, &s.entity, &s.capabilities)).collect();
        let all = json!([self.caller.tenant, self.name, seeds, request.ranked]);
        Some(Digest::of(all.to_string().as_bytes()))
    }
}

impl Service {
    /// Returns the remembered answer, if it is still valid.
    pub(super) async fn try_unchanged(&self, call: &OpenCall<'_>) -> Result<Option<OpenedSession>, Error> {
        let Some(known) = call.digest().and_then(|digest| self.unchanged_opens.get(&digest)) else { return Ok(None) };
        if !known.registry.upgrade().is_some_and(|registry| Arc::ptr_eq(&registry, call.registry)) {
            return Ok(None);
        }
        let caller = call.caller;
        let key = Key::new(&caller.tenant, Table::ExecuteSession, known.execute.session_id.to_string());
        let (logical, execute, connection) = tokio::try_join!(
            self.logical(caller, known.session),
            async { Ok(self.ports.store.get(&key).await?) },
            self.connection(caller),
        )?;
        let is_bound = |row: &Versioned<LogicalRow>| row.row.execute.as_ref() == Some(&known.execute);
        let is_fresh = |row: &Versioned<LogicalRow>| self.now().0.saturating_sub(row.row.used.0) < TOUCH_MS;
        if !logical.is_some_and(|row| is_bound(&row) && is_fresh(&row))
            || execute.is_none_or(|row| row.version != known.version)
        {
            return Ok(None);
        }
        let Some(slot) = connection.row.slots.iter().position(|id| *id == known.session) else { return Ok(None) };
        Ok(Some(OpenedSession {
            slot: Slot(slot as u32),
            session: known.session,
            execute: known.execute,
            reused: true,
            taught: TaughtTable::Unchanged { entities: known.entities },
            revision: known.revision,
            relations: Vec::new(),
            continuity: Continuity::default(),
            catalog_updates: Vec::new(),
        }))
    }
}
