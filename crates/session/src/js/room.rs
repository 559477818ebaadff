//! The storage that a tenant's heaps use, and its limit.
//! Invariant: a tenant that has reached its limit starts no new run. A run that has started is always stored: an
//! answer is never lost for want of room, and a run adds no more than its memory.
//!
//! Counting in each transaction would make all sessions of a tenant write one row. Each process therefore counts what
//! it stores and adds it to the tenant's row a few megabytes at a time; a collection pass writes the exact value.
//! Between these moments the row lacks what processes have not added yet.

use base::{TenantId, Timestamp};
use ports::store::{Batch, Expect};

use crate::commit::unchanged;
use crate::engine::HeapUse;
use crate::engine::rows::{HeapUseRow, heap_use_key};
use crate::error::{Error, JsError};
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;
use crate::sync::lock;

const MB: u64 = 1 << 20;
/// A count is added to the row when it reaches this, or less for a tenant with a small limit.
const FLUSH_BYTES: u64 = 16 * MB;
/// How old the last reading of the row may be.
const ROW_MAX_AGE_MS: i64 = 5_000;

impl Service {
    /// Counts the bytes of a stored heap.
    pub(super) fn count_stored_heap(&self, tenant: &TenantId, bytes: u64) -> Result<(), Error> {
        let mut known = lock(&self.js()?.heap_use);
        match known.get_mut(tenant) {
            Some(heap_use) => heap_use.unflushed += bytes,
            None => drop(known.insert(tenant.clone(), HeapUse { row: 0, read: Timestamp(i64::MIN), unflushed: bytes })),
        }
        Ok(())
    }

    /// Fails if the tenant has no room for another heap.
    pub(super) async fn check_heap_room(&self, tenant: &TenantId) -> Result<(), Error> {
        let Some(most) = self.js()?.settings.heap_room(tenant) else { return Ok(()) };
        let known = lock(&self.js()?.heap_use).get(tenant).copied();
        let is_fresh = |known: &HeapUse| self.now().0.saturating_sub(known.read.0) < ROW_MAX_AGE_MS;
        let used = |known: HeapUse| known.row.saturating_add(known.unflushed);
        // A refusal is based on a fresh row, and flushes this process's count so that other processes refuse as well.
        let may_wait = |known: &HeapUse| known.unflushed < FLUSH_BYTES.min(most / 8) && used(*known) < most;
        let known = match known.filter(is_fresh).filter(may_wait) {
            Some(known) => known,
            None => self.flush_heap_use(tenant).await?,
        };
        let used = used(known);
        if used < most {
            return Ok(());
        }
        Err(JsError::NoRoom { used_mb: used / MB, most_mb: most / MB }.into())
    }

    /// Adds this process's count to the row, and reads what other processes have added.
    async fn flush_heap_use(&self, tenant: &TenantId) -> Result<HeapUse, Error> {
        let key = heap_use_key(tenant);
        let found: Option<Versioned<HeapUseRow>> = self.fetch(&key).await?;
        let Versioned { row, version } = found.unwrap_or(Versioned { row: HeapUseRow::default(), version: 0 });
        let unflushed = lock(&self.js()?.heap_use).get(tenant).map_or(0, |known| known.unflushed);
        let all = HeapUseRow { bytes: row.bytes.saturating_add(unflushed) };
        // After a lost race the count is added the next time.
        let added = unflushed > 0 && {
            let batch = Batch::default().put(key, rows::write(&all), unchanged(version));
            self.try_commit(batch).await?.is_some()
        };
        let mut known = lock(&self.js()?.heap_use);
        let now_unflushed =
            known.get(tenant).map_or(0, |known| known.unflushed).saturating_sub(if added { unflushed } else { 0 });
        let now =
            HeapUse { row: if added { all.bytes } else { row.bytes }, read: self.now(), unflushed: now_unflushed };
        known.insert(tenant.clone(), now);
        Ok(now)
    }

    /// Writes the exact value that a collection pass found.
    pub(crate) async fn set_heap_use(&self, tenant: &TenantId, bytes: u64) -> Result<(), Error> {
        let key = heap_use_key(tenant);
        let batch = match bytes {
            0 => Batch::default().delete(key, Expect::Any),
            _ => Batch::default().put(key, rows::write(&HeapUseRow { bytes }), Expect::Any),
        };
        self.ports.store.commit(batch).await?;
        if let Some(js) = &self.js {
            lock(&js.heap_use).insert(tenant.clone(), HeapUse { row: bytes, read: self.now(), unflushed: 0 });
        }
        Ok(())
    }
}
