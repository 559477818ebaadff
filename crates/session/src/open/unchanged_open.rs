//! Answers an open that changes nothing from memory.
//! Invariant: the stored rows are compared with those of the earlier open before the answer is used. Nothing is
//! written.

use std::sync::Arc;

use base::Digest;
use ports::store::{Key, Table};
use serde_json::json;

use super::{Continuity, OpenCall, OpenedSession, TaughtTable};
use crate::error::Error;
use crate::load::Versioned;
use crate::rows::TOUCH_MS;
use crate::service::Service;

impl OpenCall<'_> {
    /// Returns the digest of everything that decides the answer, apart from stored rows. `None` for a call that wants
    /// a table.
    pub(super) fn digest(&self) -> Option<Digest> {
        let request = self.request;
        if request.replay || request.refresh {
            return None;
        }
        let seeds: Vec<_> = request.seeds.iter().map(|seed| (&seed.api, &seed.entity, &seed.capabilities)).collect();
        // The connection is left out: the slot is read anew for each answer.
        let key = json!([self.caller.tenant, self.intent_row_id, seeds, request.ranked]);
        Some(Digest::of(key.to_string().as_bytes()))
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
        let Some(Versioned { row: logical, .. }) = logical else { return Ok(None) };
        // The version of this row is not compared, because each run changes its counters.
        if logical.execute.as_ref() != Some(&known.execute) {
            return Ok(None);
        }
        // The full open writes the time of use, without which a session in use would expire.
        if self.now().0.saturating_sub(logical.used.0) >= TOUCH_MS {
            return Ok(None);
        }
        if execute.is_none_or(|row| row.version != known.version) {
            return Ok(None);
        }
        // Only the full open assigns slots.
        let Some(slot) = self.slot_of(caller, &connection.row, known.session).await? else { return Ok(None) };
        Ok(Some(OpenedSession {
            slot,
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
