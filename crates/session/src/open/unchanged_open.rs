//! Answers an open that changes nothing from memory.
//! Invariant: the answer is used only while every row it was based on has the same version; nothing is written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use base::{Digest, LogicalSessionId, Slot};
use catalog::Registry;
use ports::store::{Key, Table};
use serde_json::json;

use super::{Continuity, OpenCall, OpenedSession, TaughtTable};
use crate::error::Error;
use crate::load::Versioned;
use crate::rows::{ExecuteBinding, LogicalRow, Revision, TOUCH_MS};
use crate::service::Service;
use crate::sync::lock;

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

/// The facts on which an unchanged open was answered.
#[derive(Clone)]
pub(crate) struct UnchangedOpen {
    pub session: LogicalSessionId,
    pub execute: ExecuteBinding,
    /// The version of the execute session's row.
    pub version: u64,
    pub revision: Revision,
    pub entities: usize,
    /// The registry at that time. Another registry may have catalog updates to announce.
    pub registry: Weak<Registry>,
}

/// Unchanged opens by the digest of their request.
#[derive(Default)]
pub(crate) struct UnchangedOpens(Mutex<HashMap<Digest, UnchangedOpen>>);

/// About 200 bytes each.
const CAPACITY: usize = 10_000;

impl UnchangedOpens {
    pub fn get(&self, request: &Digest) -> Option<UnchangedOpen> {
        lock(&self.0).get(request).cloned()
    }

    pub fn put(&self, request: Digest, open: UnchangedOpen) {
        let mut opens = lock(&self.0);
        if opens.len() >= CAPACITY {
            opens.clear();
        }
        opens.insert(request, open);
    }
}
