//! Caches the slots of principals for a second.
//! Invariant: slots are only ever added, so a cached slot is right, although newer ones may be missing. Entries
//! expire after a second, in case the storage was replaced.
//!
//! Every call names its session by a slot. Reading the row with all slots of a principal took a twentieth of a short
//! run, because each commit invalidates the pages that SQLite readers cache, and the row is long for clients with
//! many sessions.

use std::collections::HashMap;
use std::sync::Mutex;

use base::{LogicalSessionId, Principal, Slot, TenantId, Timestamp};

use crate::sync::lock;

const MAX_AGE_MS: i64 = 1_000;
/// The bound of the cache.
const CAPACITY: usize = 1_000;

/// Slots by tenant and principal.
#[derive(Default)]
pub(crate) struct SlotCache(Mutex<HashMap<(TenantId, Principal), CachedSlots>>);

/// The slots of a principal, and when they were read.
struct CachedSlots {
    at: Timestamp,
    slots: Box<[LogicalSessionId]>,
}

impl SlotCache {
    pub fn get(&self, owner: &(TenantId, Principal), slot: Slot, now: Timestamp) -> Option<LogicalSessionId> {
        let cache = lock(&self.0);
        let entry = cache.get(owner).filter(|entry| (0..MAX_AGE_MS).contains(&now.0.saturating_sub(entry.at.0)))?;
        entry.slots.get(slot.0 as usize).copied()
    }

    pub fn put(&self, owner: (TenantId, Principal), slots: &[LogicalSessionId], at: Timestamp) {
        let mut cache = lock(&self.0);
        if cache.len() >= CAPACITY {
            cache.clear();
        }
        cache.insert(owner, CachedSlots { at, slots: slots.into() });
    }
}
