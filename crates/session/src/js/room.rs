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

impl HeapUse {
    /// Returns the bytes that the tenant uses, as far as this process knows.
    fn total(self) -> u64 {
        self.row.saturating_add(self.unflushed)
    }
}

impl Service {
    /// Counts the bytes of a stored heap.
    pub(super) fn count_stored_heap(&self, tenant: &TenantId, bytes: u64) -> Result<(), Error> {
        let mut uses = lock(&self.js()?.heap_use);
        // The earliest time marks a row that was never read, so the next check reads it.
        let never_read = HeapUse { row: 0, read: Timestamp(i64::MIN), unflushed: 0 };
        uses.entry(tenant.clone()).or_insert(never_read).unflushed += bytes;
        Ok(())
    }

    /// Fails if the tenant has no room for another heap.
    pub(super) async fn check_heap_room(&self, tenant: &TenantId) -> Result<(), Error> {
        let Some(limit) = self.js()?.settings.heap_room(tenant) else { return Ok(()) };
        let known = lock(&self.js()?.heap_use).get(tenant).copied();
        let is_fresh = |known: &HeapUse| self.now().0.saturating_sub(known.read.0) < ROW_MAX_AGE_MS;
        // A refusal is based on a fresh row, and flushes this process's count so that other processes refuse as well.
        let may_wait = |known: &HeapUse| known.unflushed < FLUSH_BYTES.min(limit / 8) && known.total() < limit;
        let heap_use = match known.filter(is_fresh).filter(may_wait) {
            Some(known) => known,
            None => self.flush_heap_use(tenant).await?,
        };
        let used = heap_use.total();
        if used < limit {
            return Ok(());
        }
        Err(JsError::NoRoom { used_mb: used / MB, most_mb: limit / MB }.into())
    }

    /// Adds this process's count to the row, and reads what other processes have added.
    async fn flush_heap_use(&self, tenant: &TenantId) -> Result<HeapUse, Error> {
        let key = heap_use_key(tenant);
        let found: Option<Versioned<HeapUseRow>> = self.fetch(&key).await?;
        let Versioned { row, version } = found.unwrap_or(Versioned { row: HeapUseRow::default(), version: 0 });
        let unflushed = lock(&self.js()?.heap_use).get(tenant).map_or(0, |known| known.unflushed);
        let mut flushed = 0;
        if unflushed > 0 {
            let sum = HeapUseRow { bytes: row.bytes.saturating_add(unflushed) };
            let batch = Batch::default().put(key, rows::write(&sum), unchanged(version));
            // After a lost race the count is added the next time.
            if self.try_commit(batch).await?.is_some() {
                flushed = unflushed;
            }
        }
        let mut uses = lock(&self.js()?.heap_use);
        // Other runs may have counted more during the commit, so the flushed bytes are subtracted.
        let still_unflushed = uses.get(tenant).map_or(0, |known| known.unflushed).saturating_sub(flushed);
        let heap_use = HeapUse { row: row.bytes.saturating_add(flushed), read: self.now(), unflushed: still_unflushed };
        uses.insert(tenant.clone(), heap_use);
        Ok(heap_use)
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
