//! An open that was asked before and changes nothing, answered from what this process knows.
//! Invariant: it is answered so only while every row it was decided on has the version it had then; nothing is written.

use std::sync::Arc;

use base::{Digest, Slot};
use ports::store::{Key, Table};
use serde_json::json;

use super::{Asked, Continuity, Opened, Taught};
use crate::error::Error;
use crate::load::Versioned;
use crate::rows::{LogicalRow, TOUCH_MS};
use crate::service::Service;

impl Asked<'_> {
    /// What decides the answer, beside what is stored. `None` for a call that wants more than a line.
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
    pub(super) async fn steady(&self, asked: &Asked<'_>) -> Result<Option<Opened>, Error> {
        let Some(known) = asked.digest().and_then(|digest| self.steadies.get(&digest)) else { return Ok(None) };
        if !known.registry.upgrade().is_some_and(|registry| Arc::ptr_eq(&registry, asked.registry)) {
            return Ok(None);
        }
        let caller = asked.caller;
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
        Ok(Some(Opened {
            slot: Slot(slot as u32),
            session: known.session,
            execute: known.execute,
            reused: true,
            taught: Taught::Unchanged { entities: known.entities },
            revision: known.revision,
            relations: Vec::new(),
            continuity: Continuity::default(),
            newer: Vec::new(),
        }))
    }
}
