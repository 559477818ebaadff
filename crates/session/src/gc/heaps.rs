//! Deletes heaps that nothing refers to, and engines that no heap needs.
//!
//! These refer to a heap: the head of a session, a young and recent entry of its log, tags, a pin, a run that has not
//! ended, a young run outside of sessions, and a heap that is based on it.
//!
//! Invariants:
//! - A heap is deleted only if one pass condemned it and a later pass, at least the grace period after, still finds
//!   no reference. Code that adds a reference to a condemned heap retains the heap first (`js/heaps.rs`), which makes
//!   the later delete fail.
//! - Heaps based on a condemned heap are condemned too, and are deleted before it: children before parents.

use std::collections::{HashMap, HashSet};

use base::{Digest, TenantId, Timestamp};
use ports::store::{Batch, Expect, Key, Row, Table};

use super::Collector;
use crate::engine::rows::{ExecutionRow, GuestRow, HeapRow, JsSessionRow, LogRow, StartFrom};
use crate::engine::view::ExecutionState;
use crate::error::Error;
use crate::rows;

/// A heap as the pass found it.
struct HeapEntry {
    parent: Option<Digest>,
    engine: Digest,
    version: u64,
    links: u32,
    condemned: Option<Timestamp>,
    bytes: u64,
}

/// A tenant's heaps and the references between them, as one pass read them.
struct HeapGraph {
    /// When the pass started, against which the grace period is measured.
    began: Timestamp,
    /// All heaps of the tenant, by key.
    known: HashMap<Digest, HeapEntry>,
    /// Heaps that must be kept.
    live: HashSet<Digest>,
    /// Log entries whose heap is past its retention period.
    past: Vec<(Key, Digest)>,
}

impl Collector<'_> {
    pub(super) async fn collect_heaps(&mut self, tenant: &TenantId) -> Result<(), Error> {
        let mut heaps =
            HeapGraph { began: self.service.now(), known: HashMap::new(), live: HashSet::new(), past: Vec::new() };
        match self.load_graph(tenant, &mut heaps).await {
            Ok(()) => {}
            // An unreadable row may hold a reference to any heap, so every heap is kept.
            Err(error) if error.is_damage() => {
                tracing::error!(%error, %tenant, "heaps are kept, because rows that may refer to them cannot be read");
                self.collected.unread.push(format!("{tenant}/heaps"));
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        self.condemn_and_delete(tenant, &mut heaps).await?;
        self.mark_entries_without_heap(&heaps).await?;
        if !self.pass.dry_run {
            let bytes = heaps.known.values().map(|known| known.bytes).sum();
            self.service.set_heap_use(tenant, bytes).await?;
        }
        self.delete_unused_engines(tenant, &heaps).await
    }

    /// Reads the heaps before the references: a heap created meanwhile is unknown to this pass and thus safe.
    async fn load_graph(&mut self, tenant: &TenantId, heaps: &mut HeapGraph) -> Result<(), Error> {
        let (mut roots, mut entries) = (Vec::new(), HashMap::new());
        self.for_each_row((tenant, Table::Heap), |_, key, row| {
            let (Ok(digest), (heap, _)) = (Digest::parse(&key.id), HeapRow::read(&key.id, &row.value)?) else {
                return Err(Error::Damaged(key.id.clone()));
            };
            let HeapRow { parent, engine, links, condemned, stored_bytes: bytes, pinned, .. } = heap;
            roots.extend(pinned.then_some(digest));
            heaps.known.insert(digest, HeapEntry { parent, engine, version: row.version, links, condemned, bytes });
            Ok(())
        })
        .await?;
        self.for_each_row((tenant, Table::JsSession), |_, key, row| {
            let session: JsSessionRow = rows::read(&key.id, &row.value)?;
            roots.extend(session.head);
            entries.insert(key.id.clone(), session.entries);
            Ok(())
        })
        .await?;
        self.for_each_row((tenant, Table::SessionLog), |pass, key, row| {
            let entry: LogRow = rows::read(&key.id, &row.value)?;
            let place = key.id.rsplit_once('/').and_then(|(session, at)| Some((session, at.parse::<u64>().ok()?)));
            let (session, at) = place.ok_or_else(|| Error::Damaged(key.id.clone()))?;
            let days = &pass.service.retention;
            let newest = entries.get(session).is_none_or(|entries| at + u64::from(days.log_entries) >= *entries);
            if newest && !pass.is_over(entry.timestamp, days.heaps) {
                roots.push(entry.output_heap);
            } else if !entry.gone {
                heaps.past.push((key.clone(), entry.output_heap));
            }
            Ok(())
        })
        .await?;
        self.for_each_row((tenant, Table::HeapTags), |_, key, _| {
            roots.push(Digest::parse(&key.id).map_err(|_| Error::Damaged(key.id.clone()))?);
            Ok(())
        })
        .await?;
        self.for_each_row((tenant, Table::Execution), |pass, key, row| {
            roots.extend(pass.heaps_kept_by(&rows::read(&key.id, &row.value)?));
            Ok(())
        })
        .await?;
        mark_live(heaps, roots);
        Ok(())
    }

    /// Returns the heaps that a run refers to.
    fn heaps_kept_by(&self, run: &ExecutionRow) -> Vec<Digest> {
        if !run.state.is_final() {
            let from = match run.from {
                StartFrom::Heap(key) => Some(key),
                StartFrom::Fresh | StartFrom::Head => None,
            };
            let parked = run.parked.as_ref().map(|parked| parked.heap);
            return [from, run.input_heap, parked].into_iter().flatten().collect();
        }
        // The log of a session refers to the heaps of its completed runs.
        let outside = run.state == ExecutionState::Completed && run.session.is_none();
        let young = run.ended.is_some_and(|ended| !self.is_over(ended, self.service.retention.heaps));
        run.heap.into_iter().filter(|_| outside && young).collect()
    }

    /// Condemns unreferenced heaps, clears the mark of referenced ones, and deletes those whose grace period is over.
    async fn condemn_and_delete(&mut self, tenant: &TenantId, heaps: &mut HeapGraph) -> Result<(), Error> {
        let mut order: Vec<(u32, Digest)> = heaps.known.iter().map(|(key, known)| (known.links, *key)).collect();
        // A parent has fewer links than its children, so this order clears marks from the oldest ancestor on.
        order.sort_unstable();
        for (_, key) in &order {
            let known = &heaps.known[key];
            if heaps.live.contains(key) && known.condemned.is_some() {
                self.set_condemned(tenant, (*key, known.version), None).await?;
            }
        }
        let grace = i64::from(self.service.retention.grace_hours) * 3_600_000;
        for (_, key) in order.iter().rev().filter(|(_, key)| !heaps.live.contains(key)).collect::<Vec<_>>() {
            if heaps.live.contains(key) {
                continue;
            }
            let known = &heaps.known[key];
            let done = match known.condemned {
                Some(at) if heaps.began.0.saturating_sub(at.0) >= grace => {
                    let gone = self.delete_heap(tenant, (*key, known)).await?;
                    if gone {
                        heaps.known.remove(key);
                    }
                    gone
                }
                Some(_) => true,
                // The grace period starts now, not at the start of the pass: a caller that saw the heap meanwhile may
                // rely on the full period.
                None => self.set_condemned(tenant, (*key, known.version), Some(self.service.now())).await?,
            };
            if !done {
                // The row changed since it was read, so the heap is in use, and its ancestors are too.
                mark_live(heaps, vec![*key]);
            }
        }
        Ok(())
    }

    async fn delete_heap(&mut self, tenant: &TenantId, (key, known): (Digest, &HeapEntry)) -> Result<bool, Error> {
        let before = self.collected.rows.get(Table::Heap.name()).copied();
        let heap = Key::new(tenant, Table::Heap, key.to_string());
        let bytes = known.bytes;
        self.remove(vec![(heap, Expect::Version(known.version))]).await?;
        let gone = self.collected.rows.get(Table::Heap.name()).copied() != before;
        if gone {
            self.collected.heap_bytes += bytes;
        }
        Ok(gone)
    }

    /// Sets or clears the condemned mark. Returns false if the row changed since it was read.
    async fn set_condemned(
        &mut self,
        tenant: &TenantId,
        (key, version): (Digest, u64),
        condemned: Option<Timestamp>,
    ) -> Result<bool, Error> {
        self.collected.condemned += u64::from(condemned.is_some());
        if self.pass.dry_run {
            return Ok(true);
        }
        let at = Key::new(tenant, Table::Heap, key.to_string());
        let Some(found) = self.service.ports.store.get(&at).await?.filter(|row| row.version == version) else {
            return Ok(false);
        };
        let (row, object) = HeapRow::read(&at.id, &found.value)?;
        let value = HeapRow { condemned, ..row }.write(object);
        let batch = Batch::default().put(at, value, Expect::Version(version));
        Ok(self.service.try_commit(batch).await?.is_some())
    }

    /// Marks log entries whose heap was deleted.
    async fn mark_entries_without_heap(&mut self, heaps: &HeapGraph) -> Result<(), Error> {
        let gone = heaps.past.iter().filter(|(_, heap)| !heaps.known.contains_key(heap));
        if self.pass.dry_run {
            return Ok(());
        }
        for (key, _) in gone {
            let Some(found) = self.service.fetch::<LogRow>(key).await? else { continue };
            let entry = LogRow { gone: true, ..found.row };
            let batch = Batch::default().put(key.clone(), rows::write(&entry), Expect::Version(found.version));
            self.service.try_commit(batch).await?;
        }
        Ok(())
    }

    /// Deletes engines that no heap needs and that were not needed recently.
    async fn delete_unused_engines(&mut self, tenant: &TenantId, heaps: &HeapGraph) -> Result<(), Error> {
        let needed: HashSet<Digest> = heaps.known.values().map(|known| known.engine).collect();
        let grace = i64::from(self.service.retention.grace_hours) * 3_600_000;
        let mut doomed = Vec::new();
        self.for_each_row((tenant, Table::Guest), |_, key, row| {
            let guest: GuestRow = rows::read(&key.id, &row.value)?;
            let needed = Digest::parse(&key.id).is_ok_and(|engine| needed.contains(&engine));
            if !needed && heaps.began.0.saturating_sub(guest.kept.0) >= grace {
                doomed.push((key.clone(), Expect::Version(row.version)));
            }
            Ok(())
        })
        .await?;
        self.remove(doomed).await
    }

    /// Calls `look` for every row of a table, except those that a dry run would have deleted.
    async fn for_each_row(
        &mut self,
        (tenant, table): (&TenantId, Table),
        mut look: impl FnMut(&Self, &Key, &Row) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut after = None;
        loop {
            let rows = self.portion((tenant, table), after).await?;
            let Some((last, _)) = rows.last() else { return Ok(()) };
            after = Some(last.clone());
            for (id, row) in &rows {
                let key = Key::new(tenant, table, id);
                if !self.doomed.contains(&key) {
                    look(self, &key, row)?;
                }
            }
        }
    }
}

/// Marks these heaps and all of their ancestors as live.
fn mark_live(heaps: &mut HeapGraph, mut roots: Vec<Digest>) {
    while let Some(key) = roots.pop() {
        if heaps.live.insert(key) {
            roots.extend(heaps.known.get(&key).and_then(|known| known.parent));
        }
    }
}
