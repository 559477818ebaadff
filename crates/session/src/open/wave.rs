//! Finishes an open: teaches a wave, or reports that there is nothing to teach.
//! Invariant: blob before pointer; everything in the answer is written in one transaction that is durable before the
//! answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use access::Caller;
use base::{CatalogId, Digest};
use ports::store::{Batch, Expect, Key, Table};
use teach::{Catalogs, Extension, render_wave};

use super::snapshot::SessionSnapshot;
use super::{CatalogUpdate, Continuity, OpenCall, OpenedSession, TaughtTable};
use crate::caches::UnchangedOpen;
use crate::commit::unchanged;
use crate::error::Error;
use crate::reuse_key::SessionReuseKey;
use crate::rows::{self, ExecuteBinding, ExecuteRow, IntentRow, LogicalRow, TOUCH_MS};
use crate::service::Service;

/// For how long a catalog that was put counts as stored.
const STORED_CATALOG_MS: i64 = 10 * 60 * 1000;

/// A wave to teach, before it is committed.
pub(super) struct NewWave {
    pub snapshot: SessionSnapshot,
    pub catalogs: Catalogs,
    /// The ledger before the wave, which decides what the table repeats.
    pub before: teach::Ledger,
    pub extended: Extension,
    pub catalog_updates: Vec<CatalogUpdate>,
    pub key: Option<SessionReuseKey>,
}

impl Service {
    /// Answers an open that teaches nothing. Returns `None` after a lost race.
    pub(super) async fn unchanged(
        &self,
        call: &OpenCall<'_>,
        snapshot: SessionSnapshot,
        catalogs: &Catalogs,
        catalog_updates: Vec<CatalogUpdate>,
    ) -> Result<Option<OpenedSession>, Error> {
        let caller = call.caller;
        let Some((binding, execute)) = &snapshot.execute else { return Ok(None) };
        let mut assigned = self.slot_batch(caller, snapshot.id).await?;
        let mut version = execute.version;
        if !catalog_updates.is_empty() {
            let at = execute_key(caller, binding);
            assigned.batch = assigned.batch.put(at, rows::write(&execute.row), unchanged(version));
            version += 1;
        }
        if self.now().0.saturating_sub(snapshot.logical.row.used.0) >= TOUCH_MS {
            let logical = LogicalRow { used: self.now(), ..snapshot.logical.row.clone() };
            let at = Key::new(&caller.tenant, Table::LogicalSession, snapshot.id.to_string());
            assigned.batch = assigned.batch.put(at, rows::write(&logical), unchanged(snapshot.logical.version));
        }
        if !assigned.batch.writes.is_empty() && self.try_commit(assigned.batch).await?.is_none() {
            return Ok(None);
        }
        let (entities, revision) = (execute.row.ledger.entity_count(), execute.row.revision);
        if let Some(digest) = call.digest() {
            let (session, execute, registry) = (snapshot.id, binding.clone(), Arc::downgrade(call.registry));
            self.unchanged_opens.put(digest, UnchangedOpen { session, execute, version, revision, entities, registry });
        }
        let taught = if call.request.replay {
            TaughtTable::Text(self.cumulative_text(caller, &execute.row, catalogs))
        } else {
            TaughtTable::Unchanged { entities }
        };
        Ok(Some(OpenedSession {
            slot: assigned.slot,
            session: snapshot.id,
            execute: binding.clone(),
            reused: true,
            taught,
            revision,
            relations: Vec::new(),
            continuity: Continuity::default(),
            catalog_updates,
        }))
    }

    /// Renders the wave, pins its catalogs and commits everything. Returns `None` after a lost race.
    pub(super) async fn teach(&self, call: &OpenCall<'_>, wave: NewWave) -> Result<Option<OpenedSession>, Error> {
        let (caller, request) = (call.caller, call.request);
        let NewWave { snapshot, catalogs, before, extended, catalog_updates, key } = wave;
        let rendered = render_wave(self.teaching.slots, &before, &extended.ledger, &catalogs, &extended.wave);
        for line in &rendered.dropped {
            tracing::error!(line, "a line of the table does not compile and was left out");
        }
        let pins = self.pin(call, &snapshot, &extended.ledger, &catalogs).await?;
        let (binding, row, version) = self.next_execute(&snapshot, extended.ledger, pins, rendered.text.clone(), key);
        // Done last, because assigning a slot blocks other opens of the connection.
        let assigned = self.slot_batch(caller, snapshot.id).await?;
        let batch = self.open_batch(call, &snapshot, &binding, &row, version, assigned.batch);
        if self.try_commit(batch).await?.is_none() {
            return Ok(None);
        }
        let text = if request.replay { self.cumulative_text(caller, &row, &catalogs) } else { rendered.text };
        let new_symbol_space = snapshot.execute.is_none();
        let continuity =
            Continuity { new_symbol_space, refreshed: snapshot.refreshed, previous_execute: snapshot.lost.clone() };
        Ok(Some(OpenedSession {
            slot: assigned.slot,
            session: snapshot.id,
            execute: binding,
            reused: !new_symbol_space,
            taught: TaughtTable::Text(text),
            revision: row.revision,
            relations: extended.wave.relations,
            continuity,
            catalog_updates,
        }))
    }

    /// Puts every catalog of the ledger as a blob and returns their digests.
    async fn pin(
        &self,
        call: &OpenCall<'_>,
        snapshot: &SessionSnapshot,
        ledger: &teach::Ledger,
        catalogs: &Catalogs,
    ) -> Result<BTreeMap<CatalogId, Digest>, Error> {
        let used: BTreeSet<CatalogId> = ledger.catalogs().into_iter().cloned().collect();
        let mut pins = snapshot.execute.as_ref().map(|(_, e)| e.row.catalogs.clone()).unwrap_or_default();
        for seen in catalogs.values().filter(|c| used.contains(&c.id)) {
            // The whole catalog is pinned, because the tenant's restrictions may change later.
            let catalog = match call.unrestricted.by_digest(&seen.digest()) {
                Some(offered) => offered.clone(),
                None => self.catalog(seen.digest()).await?,
            };
            // Blob before pointer: a crash between the two leaves garbage for the collector, never a session with a
            // missing catalog.
            self.store_catalog(&catalog).await?;
            pins.insert(catalog.id.clone(), catalog.digest());
        }
        Ok(pins)
    }

    /// Puts a catalog as a blob, unless this process did so recently. The collector spares blobs that were put within
    /// its grace period.
    async fn store_catalog(&self, catalog: &catalog::Catalog) -> Result<(), Error> {
        let (digest, now) = (catalog.digest(), self.now());
        let recent_ms = STORED_CATALOG_MS.min(i64::from(self.retention.grace_hours) * 3_600_000 / 2);
        if self.stored_catalogs.get(&digest).is_some_and(|at| (0..recent_ms).contains(&(now.0 - at.0))) {
            return Ok(());
        }
        self.ports.blobs.put(catalog.canonical().as_bytes()).await?;
        self.stored_catalogs.put(digest, now);
        Ok(())
    }

    /// Returns the cumulative table. A restricted tenant may have lost rights since, so its table is rendered again
    /// with what it may still use.
    pub(crate) fn cumulative_text(&self, caller: &Caller, row: &ExecuteRow, catalogs: &Catalogs) -> String {
        if !self.tenants.is_restricted(&caller.tenant) {
            return row.cumulative();
        }
        let wave = row.ledger.to_wave(catalogs);
        render_wave(self.teaching.slots, &teach::Ledger::default(), &row.ledger, catalogs, &wave).text
    }

    /// Returns the next version of the execute session's row: a new row, or one more wave.
    fn next_execute(
        &self,
        snapshot: &SessionSnapshot,
        ledger: teach::Ledger,
        catalogs: BTreeMap<CatalogId, Digest>,
        text: String,
        key: Option<SessionReuseKey>,
    ) -> (ExecuteBinding, ExecuteRow, u64) {
        match &snapshot.execute {
            Some((binding, execute)) => {
                let mut row = execute.row.clone();
                row.waves.push(text);
                row.revision += 1;
                (binding.clone(), ExecuteRow { ledger, catalogs, ..row }, execute.version)
            }
            None => {
                let prompt_hash = Digest::of(text.as_bytes());
                let binding = ExecuteBinding { prompt_hash, session_id: self.new_execute_id() };
                let row = ExecuteRow {
                    prompt_hash,
                    logical_session: snapshot.id,
                    catalogs,
                    ledger,
                    revision: 1,
                    waves: vec![text],
                    opened: self.ports.clock.now(),
                    key,
                    announced_catalogs: BTreeSet::new(),
                };
                (binding, row, 0)
            }
        }
    }

    /// Adds the rows of the open to the batch that assigns the slot.
    fn open_batch(
        &self,
        call: &OpenCall<'_>,
        snapshot: &SessionSnapshot,
        binding: &ExecuteBinding,
        row: &ExecuteRow,
        version: u64,
        mut batch: Batch,
    ) -> Batch {
        let caller = call.caller;
        let key = |table, id: String| Key::new(&caller.tenant, table, id);
        if snapshot.is_new {
            let intent = rows::write(&IntentRow { logical_session: snapshot.id });
            batch = batch.put(key(Table::Intent, call.name.clone()), intent, Expect::Absent);
        }
        let used = self.ports.clock.now();
        let long_ago = used.0.saturating_sub(snapshot.logical.row.used.0) >= TOUCH_MS;
        if snapshot.logical.row.execute.as_ref() != Some(binding) || long_ago {
            let logical = LogicalRow { execute: Some(binding.clone()), used, ..snapshot.logical.row.clone() };
            let at = key(Table::LogicalSession, snapshot.id.to_string());
            batch = batch.put(at, rows::write(&logical), unchanged(snapshot.logical.version));
        }
        batch.put(execute_key(caller, binding), rows::write(row), unchanged(version))
    }
}

fn execute_key(caller: &Caller, binding: &ExecuteBinding) -> Key {
    Key::new(&caller.tenant, Table::ExecuteSession, binding.session_id.to_string())
}
