//! The caches of the service: search index, slots, unchanged opens, stored catalogs.
//! Invariant: a cache holds immutable data or data that can be lost, so clearing one costs time and changes no answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use base::{Digest, LogicalSessionId, Principal, Slot, TenantId, Timestamp};
use catalog::Registry;
use teach::discovery::Index;

use crate::rows::{ExecuteBinding, Revision};
use crate::sync::lock;

/// The search index of the latest registry. The next index is derived from it, so a reload costs only as much as it
/// changed.
#[derive(Default)]
pub(crate) struct DiscoveryIndexCache(Mutex<Option<(Arc<Registry>, Arc<Index>)>>);

impl DiscoveryIndexCache {
    /// Returns the index of a registry, built on the first request for it.
    pub fn index_of(&self, registry: &Arc<Registry>) -> Arc<Index> {
        let mut last = lock(&self.0);
        let index = match &*last {
            Some((same, index)) if Arc::ptr_eq(same, registry) => return index.clone(),
            Some((_, before)) => Arc::new(before.next(registry)),
            None => Arc::new(Index::new(registry)),
        };
        *last = Some((registry.clone(), index.clone()));
        index
    }
}

/// The slots of principals, kept for a second after they were read.
///
/// Slots are only ever added, so a cached slot is right, although newer slots may be missing. Every call names its
/// session by a slot, and reading the row with all slots of a principal took a twentieth of a short run.
#[derive(Default)]
pub(crate) struct SlotCache(Mutex<HashMap<(TenantId, Principal), CachedSlots>>);

/// The slots of one principal.
struct CachedSlots {
    /// The time of the read. It bounds the age of the entry, in case the storage was replaced.
    read_at: Timestamp,
    slots: Box<[LogicalSessionId]>,
}

/// The age at which cached slots are read again.
const SLOTS_MAX_AGE_MS: i64 = 1_000;

/// The number of principals whose slots are cached.
const SLOTS_CAPACITY: usize = 1_000;

impl SlotCache {
    pub fn get(&self, owner: &(TenantId, Principal), slot: Slot, now: Timestamp) -> Option<LogicalSessionId> {
        let cache = lock(&self.0);
        let cached = cache.get(owner)?;
        let age = now.0.saturating_sub(cached.read_at.0);
        // A clock that went backwards makes the age negative, and the entry counts as too old.
        if !(0..SLOTS_MAX_AGE_MS).contains(&age) {
            return None;
        }
        cached.slots.get(slot.0 as usize).copied()
    }

    pub fn put(&self, owner: (TenantId, Principal), slots: &[LogicalSessionId], read_at: Timestamp) {
        let mut cache = lock(&self.0);
        if cache.len() >= SLOTS_CAPACITY {
            cache.clear();
        }
        cache.insert(owner, CachedSlots { read_at, slots: slots.into() });
    }
}

/// The facts on which an open that changed nothing was answered.
#[derive(Clone)]
pub(crate) struct UnchangedOpen {
    pub session: LogicalSessionId,
    pub execute: ExecuteBinding,
    /// The version of the execute session's row. Another version means that the answer may have changed.
    pub version: u64,
    pub revision: Revision,
    /// The number of entities that the session had been taught.
    pub entities: usize,
    /// The registry of that open. Another registry may have catalog updates to announce.
    pub registry: Weak<Registry>,
}

/// Unchanged opens by the digest of their request.
#[derive(Default)]
pub(crate) struct UnchangedOpenCache(Mutex<HashMap<Digest, UnchangedOpen>>);

/// The number of unchanged opens that are cached, at about 200 bytes each.
const UNCHANGED_OPENS_CAPACITY: usize = 10_000;

impl UnchangedOpenCache {
    pub fn get(&self, request: &Digest) -> Option<UnchangedOpen> {
        lock(&self.0).get(request).cloned()
    }

    pub fn put(&self, request: Digest, open: UnchangedOpen) {
        let mut opens = lock(&self.0);
        if opens.len() >= UNCHANGED_OPENS_CAPACITY {
            opens.clear();
        }
        opens.insert(request, open);
    }
}

/// The time at which this process last put each catalog into the blobs.
#[derive(Default)]
pub(crate) struct StoredCatalogTimes(Mutex<HashMap<Digest, Timestamp>>);

impl StoredCatalogTimes {
    pub fn get(&self, digest: &Digest) -> Option<Timestamp> {
        lock(&self.0).get(digest).copied()
    }

    pub fn put(&self, digest: Digest, stored_at: Timestamp) {
        lock(&self.0).insert(digest, stored_at);
    }
}
