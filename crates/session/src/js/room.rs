//! What a tenant's heaps take in storage, and whether there is room for more.
//! Invariant: who has used up its room begins no run. A run that has begun is stored, whatever it takes: nothing that was
//! answered is lost for want of room, and a run adds no more than its memory.
//!
//! A count in each transaction would be one row that all sessions of a tenant write. So each process counts what it stores, and adds
//! that to the tenant's row some megabytes at a time; a pass of the collector writes what it has found. In between the row is wrong
//! by what processes have not added yet.

use base::{TenantId, Timestamp};
use ports::store::{Batch, Expect};

use crate::commit::unchanged;
use crate::engine::HeapUse;
use crate::engine::rows::{HeapUseRow, heap_use_key};
use crate::error::{Error, JsError};
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;
use crate::shared::lock;

const MB: u64 = 1 << 20;
/// So much is counted before it is added; less where a tenant has little room.
const ADDED: u64 = 16 * MB;
/// What others have added is seen so much later.
const LOOK_AGAIN_MS: i64 = 5_000;

impl Service {
    pub(super) fn count_heap(&self, tenant: &TenantId, bytes: u64) -> Result<(), Error> {
        let mut known = lock(&self.js()?.heap_use);
        match known.get_mut(tenant) {
            Some(heap_use) => heap_use.own += bytes,
            None => drop(known.insert(tenant.clone(), HeapUse { row: 0, read: Timestamp(i64::MIN), own: bytes })),
        }
        Ok(())
    }

    /// An error where a tenant has no room for another heap.
    pub(super) async fn has_room(&self, tenant: &TenantId) -> Result<(), Error> {
        let Some(most) = self.js()?.settings.heap_room(tenant) else { return Ok(()) };
        let known = lock(&self.js()?.heap_use).get(tenant).copied();
        let is_fresh = |known: &HeapUse| self.now().0.saturating_sub(known.read.0) < LOOK_AGAIN_MS;
        let used = |known: HeapUse| known.row.saturating_add(known.own);
        // Who is refused is refused for what all have added, and others hear of it.
        let is_little = |known: &HeapUse| known.own < ADDED.min(most / 8) && used(*known) < most;
        let known = match known.filter(is_fresh).filter(is_little) {
            Some(known) => known,
            None => self.add_heap_use(tenant).await?,
        };
        let used = used(known);
        if used < most {
            return Ok(());
        }
        Err(JsError::NoRoom { used_mb: used / MB, most_mb: most / MB }.into())
    }

    /// Adds what was counted here to the row, and reads what others have added.
    async fn add_heap_use(&self, tenant: &TenantId) -> Result<HeapUse, Error> {
        let key = heap_use_key(tenant);
        let found: Option<Versioned<HeapUseRow>> = self.fetch(&key).await?;
        let Versioned { row, version } = found.unwrap_or(Versioned { row: HeapUseRow::default(), version: 0 });
        let own = lock(&self.js()?.heap_use).get(tenant).map_or(0, |known| known.own);
        let all = HeapUseRow { bytes: row.bytes.saturating_add(own) };
        // Where someone else was faster, it is added the next time.
        let added = own > 0 && {
            let batch = Batch::default().put(key, rows::write(&all), unchanged(version));
            self.try_commit(batch).await?.is_some()
        };
        let mut known = lock(&self.js()?.heap_use);
        let now_own = known.get(tenant).map_or(0, |known| known.own).saturating_sub(if added { own } else { 0 });
        let now = HeapUse { row: if added { all.bytes } else { row.bytes }, read: self.now(), own: now_own };
        known.insert(tenant.clone(), now);
        Ok(now)
    }

    /// What a pass of the collector has found, which knows all of it.
    pub(crate) async fn found_heap_use(&self, tenant: &TenantId, bytes: u64) -> Result<(), Error> {
        let key = heap_use_key(tenant);
        let batch = match bytes {
            0 => Batch::default().delete(key, Expect::Any),
            _ => Batch::default().put(key, rows::write(&HeapUseRow { bytes }), Expect::Any),
        };
        self.ports.store.commit(batch).await?;
        if let Some(js) = &self.js {
            lock(&js.heap_use).insert(tenant.clone(), HeapUse { row: bytes, read: self.now(), own: 0 });
        }
        Ok(())
    }
}
