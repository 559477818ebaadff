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

/// The longest time for which a catalog that this process put is not put again.
const CATALOG_PUT_VALID_MS: i64 = 10 * 60 * 1000;

/// A wave to teach, before it is committed.
pub(super) struct NewWave {
    /// The rows that the open read, and whose versions its commit expects.
    pub snapshot: SessionSnapshot,
    /// The pinned catalogs, and those that the wave adds, as the tenant sees them.
    pub catalogs: Catalogs,
    /// The ledger before the wave, which decides what the table repeats.
    pub before: teach::Ledger,
    /// The ledger after the wave, and the wave itself.
    pub extended: Extension,
    /// Newer catalogs to announce in the answer.
    pub catalog_updates: Vec<CatalogUpdate>,
    /// The reuse key that a new execute session stores.
    pub key: Option<SessionReuseKey>,
}

/// The next version of an execute session's row.
struct NextExecute {
    binding: ExecuteBinding,
    row: ExecuteRow,
    /// The version that the row must still have at the commit, or 0 for a new row.
    expected_version: u64,
}

impl Service {
    /// Answers an open that teaches nothing. Returns `None` after a lost race.
    pub(super) async fn answer_unchanged(
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
            // The row marks the updates as announced. Its next version is known, because each write adds one.
            let key = execute_key(caller, binding);
            assigned.batch = assigned.batch.put(key, rows::write(&execute.row), unchanged(version));
            version += 1;
        }
        if self.now().0.saturating_sub(snapshot.logical.row.used.0) >= TOUCH_MS {
            let logical = LogicalRow { used: self.now(), ..snapshot.logical.row.clone() };
            let key = Key::new(&caller.tenant, Table::LogicalSession, snapshot.id.to_string());
            assigned.batch = assigned.batch.put(key, rows::write(&logical), unchanged(snapshot.logical.version));
        }
        if !assigned.batch.writes.is_empty() && self.try_commit(assigned.batch).await?.is_none() {
            return Ok(None);
        }
        let entities = execute.row.ledger.entity_count();
        let revision = execute.row.revision;
        // Remembered only after the commit, so that the cache never answers for rows that were not written.
        if let Some(digest) = call.digest() {
            let open = UnchangedOpen {
                session: snapshot.id,
                execute: binding.clone(),
                version,
                revision,
                entities,
                registry: Arc::downgrade(call.registry),
            };
            self.unchanged_opens.put(digest, open);
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
    pub(super) async fn teach_wave(&self, call: &OpenCall<'_>, wave: NewWave) -> Result<Option<OpenedSession>, Error> {
        let caller = call.caller;
        let NewWave { snapshot, catalogs, before, extended, catalog_updates, key } = wave;
        let rendered = render_wave(self.teaching.slots, &before, &extended.ledger, &catalogs, &extended.wave);
        for line in &rendered.dropped {
            tracing::error!(line, "a line of the table does not compile and was left out");
        }
        let pins = self.pin_catalogs(call, &snapshot, &extended.ledger, &catalogs).await?;
        let next = self.next_execute(&snapshot, extended.ledger, pins, rendered.text.clone(), key);
        // Done last, because assigning a slot blocks other opens of the connection.
        let assigned = self.slot_batch(caller, snapshot.id).await?;
        let batch = self.open_batch(call, &snapshot, &next, assigned.batch);
        if self.try_commit(batch).await?.is_none() {
            return Ok(None);
        }
        let text = if call.request.replay { self.cumulative_text(caller, &next.row, &catalogs) } else { rendered.text };
        let new_symbol_space = snapshot.execute.is_none();
        let continuity =
            Continuity { new_symbol_space, refreshed: snapshot.refreshed, previous_execute: snapshot.lost.clone() };
        Ok(Some(OpenedSession {
            slot: assigned.slot,
            session: snapshot.id,
            execute: next.binding,
            reused: !new_symbol_space,
            taught: TaughtTable::Text(text),
            revision: next.row.revision,
            relations: extended.wave.relations,
            continuity,
            catalog_updates,
        }))
    }

    /// Puts every catalog that the ledger uses as a blob and returns the digests to pin.
    async fn pin_catalogs(
        &self,
        call: &OpenCall<'_>,
        snapshot: &SessionSnapshot,
        ledger: &teach::Ledger,
        catalogs: &Catalogs,
    ) -> Result<BTreeMap<CatalogId, Digest>, Error> {
        let used: BTreeSet<CatalogId> = ledger.catalogs().into_iter().cloned().collect();
        let mut pins = snapshot.execute.as_ref().map(|(_, execute)| execute.row.catalogs.clone()).unwrap_or_default();
        for visible in catalogs.values().filter(|catalog| used.contains(&catalog.id)) {
            // The whole catalog is pinned, because the tenant's restrictions may change later.
            let catalog = match call.unrestricted.by_digest(&visible.digest()) {
                Some(offered) => offered.clone(),
                None => self.catalog(visible.digest()).await?,
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
        let digest = catalog.digest();
        let now = self.now();
        // Half of the grace period, so that the blob outlives the commit of the row that will name it.
        let recent_ms = CATALOG_PUT_VALID_MS.min(i64::from(self.retention.grace_hours) * 3_600_000 / 2);
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
    ) -> NextExecute {
        match &snapshot.execute {
            Some((binding, execute)) => {
                let mut row = execute.row.clone();
                row.waves.push(text);
                row.revision += 1;
                NextExecute {
                    binding: binding.clone(),
                    row: ExecuteRow { ledger, catalogs, ..row },
                    expected_version: execute.version,
                }
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
                NextExecute { binding, row, expected_version: 0 }
            }
        }
    }

    /// Adds the rows of the open to the batch that assigns the slot.
    fn open_batch(
        &self,
        call: &OpenCall<'_>,
        snapshot: &SessionSnapshot,
        next: &NextExecute,
        mut batch: Batch,
    ) -> Batch {
        let caller = call.caller;
        let key = |table, id: String| Key::new(&caller.tenant, table, id);
        if snapshot.is_new {
            let intent = rows::write(&IntentRow { logical_session: snapshot.id });
            batch = batch.put(key(Table::Intent, call.intent_row_id.clone()), intent, Expect::Absent);
        }
        let used = self.ports.clock.now();
        let is_touch_due = used.0.saturating_sub(snapshot.logical.row.used.0) >= TOUCH_MS;
        // Written only if it changes, because runs of the session compete for this row.
        if snapshot.logical.row.execute.as_ref() != Some(&next.binding) || is_touch_due {
            let logical = LogicalRow { execute: Some(next.binding.clone()), used, ..snapshot.logical.row.clone() };
            let logical_key = key(Table::LogicalSession, snapshot.id.to_string());
            batch = batch.put(logical_key, rows::write(&logical), unchanged(snapshot.logical.version));
        }
        // This version serialises concurrent waves: of two, one is lost and repeated on the other's ledger.
        batch.put(execute_key(caller, &next.binding), rows::write(&next.row), unchanged(next.expected_version))
    }
}

fn execute_key(caller: &Caller, binding: &ExecuteBinding) -> Key {
    Key::new(&caller.tenant, Table::ExecuteSession, binding.session_id.to_string())
}
