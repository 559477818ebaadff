//! Heaps that nothing leads to any more, and engines that no heap needs.
//!
//! What leads to a heap: the head of a session, an entry of its log that is young and among the newest, tags, a run that has
//! not ended, a young run outside of sessions, and a heap that stands on it.
//!
//! Invariants:
//! - A heap goes only when a pass condemned it, and another one, the grace period later, still finds nothing that leads to it.
//!   Who makes something lead to a condemned heap saves it first (`js/heaps.rs`), and the delete that comes late is refused.
//! - What stands on a condemned heap is condemned, and what stands on one that goes has gone: children before parents.

use std::collections::{HashMap, HashSet};

use base::{Digest, TenantId, Timestamp};
use ports::store::{Batch, Expect, Key, Row, Table};

use super::Collecting;
use crate::engine::rows::{ExecutionRow, From, GuestRow, HeapRow, JsSessionRow, LogRow};
use crate::engine::view::State;
use crate::error::Error;
use crate::rows;

/// A heap as the pass found it.
struct Known {
    parent: Option<Digest>,
    engine: Digest,
    version: u64,
    links: u32,
    condemned: Option<Timestamp>,
    bytes: u64,
}

/// What one pass knows of a tenant's heaps.
struct Heaps {
    began: Timestamp,
    known: HashMap<Digest, Known>,
    live: HashSet<Digest>,
    /// Entries that keep their heap no longer.
    past: Vec<(Key, Digest)>,
}

impl Collecting<'_> {
    pub(super) async fn heaps(&mut self, tenant: &TenantId) -> Result<(), Error> {
        let mut heaps =
            Heaps { began: self.service.now(), known: HashMap::new(), live: HashSet::new(), past: Vec::new() };
        match self.find(tenant, &mut heaps).await {
            Ok(()) => {}
            // What leads where cannot be known: everything stays.
            Err(error) if error.is_damage() => {
                tracing::error!(%error, %tenant, "heaps stay: not all that leads to them can be read");
                self.collected.unread.push(format!("{tenant}/heaps"));
                return Ok(());
            }
            Err(error) => return Err(error),
        }
        self.judge(tenant, &mut heaps).await?;
        self.say_gone(&heaps).await?;
        self.guests(tenant, &heaps).await
    }

    /// First the heaps, then what leads to them: one that is made later is not among them.
    async fn find(&mut self, tenant: &TenantId, heaps: &mut Heaps) -> Result<(), Error> {
        self.each((tenant, Table::Heap), |_, key, row| {
            let (Ok(digest), (heap, _)) = (Digest::parse(&key.id), HeapRow::read(&key.id, &row.value)?) else {
                return Err(Error::Damaged(key.id.clone()));
            };
            let HeapRow { parent, engine, links, condemned, stored_bytes: bytes, .. } = heap;
            heaps.known.insert(digest, Known { parent, engine, version: row.version, links, condemned, bytes });
            Ok(())
        })
        .await?;
        let (mut roots, mut entries) = (Vec::new(), HashMap::new());
        self.each((tenant, Table::JsSession), |_, key, row| {
            let session: JsSessionRow = rows::read(&key.id, &row.value)?;
            roots.extend(session.head);
            entries.insert(key.id.clone(), session.entries);
            Ok(())
        })
        .await?;
        self.each((tenant, Table::SessionLog), |pass, key, row| {
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
        self.each((tenant, Table::HeapTags), |_, key, _| {
            roots.push(Digest::parse(&key.id).map_err(|_| Error::Damaged(key.id.clone()))?);
            Ok(())
        })
        .await?;
        self.each((tenant, Table::Execution), |pass, key, row| {
            roots.extend(pass.kept_by(&rows::read(&key.id, &row.value)?));
            Ok(())
        })
        .await?;
        mark(heaps, roots);
        Ok(())
    }

    /// Heaps that a run keeps.
    fn kept_by(&self, run: &ExecutionRow) -> Vec<Digest> {
        if !run.state.is_final() {
            let from = match run.from {
                From::Heap(key) => Some(key),
                From::Fresh | From::Head => None,
            };
            let parked = run.parked.as_ref().map(|parked| parked.heap);
            return [from, run.input_heap, parked].into_iter().flatten().collect();
        }
        // What a session's run left, its log keeps.
        let outside = run.state == State::Completed && run.session.is_none();
        let young = run.ended.is_some_and(|ended| !self.is_over(ended, self.service.retention.heaps));
        run.heap.into_iter().filter(|_| outside && young).collect()
    }

    /// Condemns, saves and removes.
    async fn judge(&mut self, tenant: &TenantId, heaps: &mut Heaps) -> Result<(), Error> {
        let mut order: Vec<(u32, Digest)> = heaps.known.iter().map(|(key, known)| (known.links, *key)).collect();
        // A parent has fewer links than what stands on it. What is saved is saved from below.
        order.sort_unstable();
        for (_, key) in &order {
            let known = &heaps.known[key];
            if heaps.live.contains(key) && known.condemned.is_some() {
                self.sentence(tenant, (*key, known.version), None).await?;
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
                    let gone = self.heap_goes(tenant, (*key, known)).await?;
                    if gone {
                        heaps.known.remove(key);
                    }
                    gone
                }
                Some(_) => true,
                // Not since the pass began: who saw it since then leans on the whole grace period.
                None => self.sentence(tenant, (*key, known.version), Some(self.service.now())).await?,
            };
            if !done {
                // Someone has changed it since: what it stands on stays, too.
                mark(heaps, vec![*key]);
            }
        }
        Ok(())
    }

    async fn heap_goes(&mut self, tenant: &TenantId, (key, known): (Digest, &Known)) -> Result<bool, Error> {
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

    /// Writes since when a heap is condemned; whether it was still as it was found.
    async fn sentence(
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

    /// Entries say that their heap has gone.
    async fn say_gone(&mut self, heaps: &Heaps) -> Result<(), Error> {
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

    /// Engines that no heap needs and nobody has asked to be kept.
    async fn guests(&mut self, tenant: &TenantId, heaps: &Heaps) -> Result<(), Error> {
        let needed: HashSet<Digest> = heaps.known.values().map(|known| known.engine).collect();
        let grace = i64::from(self.service.retention.grace_hours) * 3_600_000;
        let mut doomed = Vec::new();
        self.each((tenant, Table::Guest), |_, key, row| {
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

    /// Looks at every row of a table that a dry pass has not taken away.
    async fn each(
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

/// These, and all that they stand on.
fn mark(heaps: &mut Heaps, mut roots: Vec<Digest>) {
    while let Some(key) = roots.pop() {
        if heaps.live.insert(key) {
            roots.extend(heaps.known.get(&key).and_then(|known| known.parent));
        }
    }
}
