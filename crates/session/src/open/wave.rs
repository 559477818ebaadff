//! What an open comes to: a wave, or the word that there is none.
//! Invariant: blob before pointer; everything that an answer says is in one transaction that is durable before it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{CatalogId, Digest};
use ports::store::{Batch, Expect, Key, Table};
use teach::{Catalogs, Extension, render_wave};

use super::find::Found;
use super::{Asked, Continuity, Newer, Opened, Taught};
use crate::commit::unchanged;
use crate::error::Error;
use crate::reuse::SessionReuseKey;
use crate::rows::{self, ExecuteBinding, ExecuteRow, IntentRow, LogicalRow, TOUCH_MS};
use crate::service::Service;
use crate::steadies::Steady;
use access::Caller;

/// For how long a catalog that was put counts as there.
const KEPT_MS: i64 = 10 * 60 * 1000;

/// An open that has something to teach, before it is committed.
pub(super) struct Step {
    pub found: Found,
    pub catalogs: Catalogs,
    pub before: teach::Ledger,
    pub extended: Extension,
    pub newer: Vec<Newer>,
    pub key: Option<SessionReuseKey>,
}

impl Service {
    /// Nothing new. `None` when someone else was faster.
    pub(super) async fn unchanged(
        &self,
        asked: &Asked<'_>,
        found: Found,
        catalogs: &Catalogs,
        newer: Vec<Newer>,
    ) -> Result<Option<Opened>, Error> {
        let caller = asked.caller;
        let Some((binding, execute)) = &found.execute else { return Ok(None) };
        let mut assigned = self.slot_batch(caller, found.id).await?;
        let mut version = execute.version;
        if !newer.is_empty() {
            let at = execute_key(caller, binding);
            assigned.batch = assigned.batch.put(at, rows::write(&execute.row), unchanged(version));
            version += 1;
        }
        if self.now().0.saturating_sub(found.logical.row.used.0) >= TOUCH_MS {
            let logical = LogicalRow { used: self.now(), ..found.logical.row.clone() };
            let at = Key::new(&caller.tenant, Table::LogicalSession, found.id.to_string());
            assigned.batch = assigned.batch.put(at, rows::write(&logical), unchanged(found.logical.version));
        }
        if !assigned.batch.writes.is_empty() && self.try_commit(assigned.batch).await?.is_none() {
            return Ok(None);
        }
        let (entities, revision) = (execute.row.ledger.entity_count(), execute.row.revision);
        if let Some(digest) = asked.digest() {
            let (session, execute, registry) = (found.id, binding.clone(), Arc::downgrade(asked.registry));
            self.steadies.put(digest, Steady { session, execute, version, revision, entities, registry });
        }
        let taught = if asked.request.replay {
            Taught::Table(self.again(caller, &execute.row, catalogs))
        } else {
            Taught::Unchanged { entities }
        };
        Ok(Some(Opened {
            slot: assigned.slot,
            session: found.id,
            execute: binding.clone(),
            reused: true,
            taught,
            revision,
            relations: Vec::new(),
            continuity: Continuity::default(),
            newer,
        }))
    }

    /// Renders the wave, pins its catalogs and commits all of it. `None` when someone else was faster.
    pub(super) async fn teach(&self, asked: &Asked<'_>, step: Step) -> Result<Option<Opened>, Error> {
        let (caller, request) = (asked.caller, asked.request);
        let Step { found, catalogs, before, extended, newer, key } = step;
        let rendered = render_wave(self.teaching.slots, &before, &extended.ledger, &catalogs, &extended.wave);
        for line in &rendered.dropped {
            tracing::error!(line, "a taught line does not check and was left out");
        }
        let pins = self.pin(asked, &found, &extended.ledger, &catalogs).await?;
        let (binding, row, version) = self.next_execute(&found, extended.ledger, pins, (rendered.text.clone(), key));
        // Last, since whoever gets a new slot keeps the connection's others waiting.
        let assigned = self.slot_batch(caller, found.id).await?;
        let batch = self.open_batch(asked, &found, (&binding, &row, version), assigned.batch);
        if self.try_commit(batch).await?.is_none() {
            return Ok(None);
        }
        let text = if request.replay { self.again(caller, &row, &catalogs) } else { rendered.text };
        let new_symbol_space = found.execute.is_none();
        let continuity =
            Continuity { new_symbol_space, refreshed: found.refreshed, previous_execute: found.lost.clone() };
        Ok(Some(Opened {
            slot: assigned.slot,
            session: found.id,
            execute: binding,
            reused: !new_symbol_space,
            taught: Taught::Table(text),
            revision: row.revision,
            relations: extended.wave.relations,
            continuity,
            newer,
        }))
    }

    /// The digests of all that the ledger speaks of, each kept as a blob.
    async fn pin(
        &self,
        asked: &Asked<'_>,
        found: &Found,
        ledger: &teach::Ledger,
        catalogs: &Catalogs,
    ) -> Result<BTreeMap<CatalogId, Digest>, Error> {
        let used: BTreeSet<CatalogId> = ledger.catalogs().into_iter().cloned().collect();
        let mut pins = found.execute.as_ref().map(|(_, e)| e.row.catalogs.clone()).unwrap_or_default();
        for seen in catalogs.values().filter(|c| used.contains(&c.id)) {
            // The whole is pinned, whatever this tenant may use of it today.
            let catalog = match asked.whole.by_digest(&seen.digest()) {
                Some(offered) => offered.clone(),
                None => self.catalog(seen.digest()).await?,
            };
            // Blob before pointer: a crash between the two leaves garbage for gc, never a session that pins nothing.
            self.keep_catalog(&catalog).await?;
            pins.insert(catalog.id.clone(), catalog.digest());
        }
        Ok(pins)
    }

    /// Puts it where a session can find it, unless this process did so lately: gc leaves alone what was put within its grace.
    async fn keep_catalog(&self, catalog: &catalog::Catalog) -> Result<(), Error> {
        let (digest, now) = (catalog.digest(), self.now());
        let lately = KEPT_MS.min(i64::from(self.retention.grace_hours) * 3_600_000 / 2);
        if self.kept_catalogs.at(&digest).is_some_and(|at| (0..lately).contains(&(now.0 - at.0))) {
            return Ok(());
        }
        self.ports.blobs.put(catalog.canonical().as_bytes()).await?;
        self.kept_catalogs.put(digest, now);
        Ok(())
    }

    /// The cumulative table. Whose rights are bounded may have lost some since: it gets what it may still use, in one piece.
    pub(crate) fn again(&self, caller: &Caller, row: &ExecuteRow, catalogs: &Catalogs) -> String {
        if !self.tenants.is_restricted(&caller.tenant) {
            return row.cumulative();
        }
        let wave = row.ledger.to_wave(catalogs);
        render_wave(self.teaching.slots, &teach::Ledger::default(), &row.ledger, catalogs, &wave).text
    }

    fn next_execute(
        &self,
        found: &Found,
        ledger: teach::Ledger,
        catalogs: BTreeMap<CatalogId, Digest>,
        (text, key): (String, Option<SessionReuseKey>),
    ) -> (ExecuteBinding, ExecuteRow, u64) {
        match &found.execute {
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
                    logical_session: found.id,
                    catalogs,
                    ledger,
                    revision: 1,
                    waves: vec![text],
                    opened: self.ports.clock.now(),
                    key,
                    told: BTreeSet::new(),
                };
                (binding, row, 0)
            }
        }
    }

    fn open_batch(
        &self,
        asked: &Asked<'_>,
        found: &Found,
        (binding, row, version): (&ExecuteBinding, &ExecuteRow, u64),
        mut batch: Batch,
    ) -> Batch {
        let caller = asked.caller;
        let key = |table, id: String| Key::new(&caller.tenant, table, id);
        if found.is_new {
            let intent = rows::write(&IntentRow { logical_session: found.id });
            batch = batch.put(key(Table::Intent, asked.name.clone()), intent, Expect::Absent);
        }
        let used = self.ports.clock.now();
        let long_ago = used.0.saturating_sub(found.logical.row.used.0) >= TOUCH_MS;
        if found.logical.row.execute.as_ref() != Some(binding) || long_ago {
            let logical = LogicalRow { execute: Some(binding.clone()), used, ..found.logical.row.clone() };
            let at = key(Table::LogicalSession, found.id.to_string());
            batch = batch.put(at, rows::write(&logical), unchanged(found.logical.version));
        }
        batch.put(execute_key(caller, binding), rows::write(row), unchanged(version))
    }
}

fn execute_key(caller: &Caller, binding: &ExecuteBinding) -> Key {
    Key::new(&caller.tenant, Table::ExecuteSession, binding.session_id.to_string())
}
