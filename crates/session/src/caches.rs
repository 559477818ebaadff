//! The caches of the service: search index, slots, unchanged opens, stored catalogs, the last check of the storage,
//! watched settlements.
//! Invariant: a cache holds immutable data or data that can be lost, so clearing one costs time and changes no answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};

use base::{Digest, LogicalSessionId, Principal, Slot, TenantId, Timestamp};
use catalog::Registry;
use teach::discovery::Index;

use crate::error::Error;
use crate::rows::{ExecuteBinding, Revision};
use crate::sync::lock;

/// The search index of the latest registry. The next index is derived from it, so a reload costs only as much as it
/// changed.
#[derive(Default)]
pub(crate) struct DiscoveryIndexCache(Mutex<Option<IndexedRegistry>>);

/// A registry with its search index.
struct IndexedRegistry {
    /// Compared by address: each reload makes a new registry, and no registry changes.
    registry: Arc<Registry>,
    index: Arc<Index>,
}

impl DiscoveryIndexCache {
    /// Returns the index of a registry, built on the first request for it.
    pub fn index_of(&self, registry: &Arc<Registry>) -> Arc<Index> {
        // Locked while the index is built, so that concurrent first requests wait for one build instead of each
        // making their own.
        let mut latest = lock(&self.0);
        let index = match &*latest {
            Some(latest) if Arc::ptr_eq(&latest.registry, registry) => return latest.index.clone(),
            Some(earlier) => Arc::new(earlier.index.next(registry)),
            None => Arc::new(Index::new(registry)),
        };
        *latest = Some(IndexedRegistry { registry: registry.clone(), index: index.clone() });
        index
    }
}

/// The slots of principals, kept for a second after they were read.
///
/// A slot never names another session, so a cached slot is right. Every call names its session by a slot, and reading
/// the row of the principal's connection took a twentieth of a short run.
#[derive(Default)]
pub(crate) struct SlotCache(Mutex<HashMap<(TenantId, Principal, Slot), CachedSlot>>);

/// The session in one slot.
struct CachedSlot {
    /// The time of the read. It bounds the age of the entry, in case the storage was replaced.
    read_at: Timestamp,
    session: LogicalSessionId,
}

/// The age at which a cached slot is read again.
const SLOTS_MAX_AGE_MS: i64 = 1_000;

/// The number of cached slots, at about 100 bytes each.
const SLOTS_CAPACITY: usize = 10_000;

impl SlotCache {
    pub fn get(&self, owner: &(TenantId, Principal), slot: Slot, now: Timestamp) -> Option<LogicalSessionId> {
        let cache = lock(&self.0);
        let cached = cache.get(&(owner.0.clone(), owner.1.clone(), slot))?;
        let age = now.0.saturating_sub(cached.read_at.0);
        // A clock that went backwards makes the age negative, and the entry counts as too old.
        (0..SLOTS_MAX_AGE_MS).contains(&age).then_some(cached.session)
    }

    pub fn put(&self, owner: (TenantId, Principal), slot: Slot, session: LogicalSessionId, read_at: Timestamp) {
        let mut cache = lock(&self.0);
        // Cleared as a whole: every entry is stale after a second, so choosing a victim would save at most one read.
        if cache.len() >= SLOTS_CAPACITY {
            cache.clear();
        }
        cache.insert((owner.0, owner.1, slot), CachedSlot { read_at, session });
    }
}

/// The facts on which an open that changed nothing was answered.
#[derive(Clone)]
pub(crate) struct UnchangedOpen {
    /// The session that the open found.
    pub session: LogicalSessionId,
    /// The execute session that it was bound to. A refresh or an expiry binds another.
    pub execute: ExecuteBinding,
    /// The version of the execute session's row. Another version means that the answer may have changed.
    pub version: u64,
    /// The number of waves, which the answer repeats.
    pub revision: Revision,
    /// The number of entities that the session had been taught.
    pub entities: usize,
    /// The registry of that open. Another registry may have catalog updates to announce. Weak, so that the cache does
    /// not keep old registries in memory.
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
        // Cleared as a whole: a lost entry costs one full open, and no order of use has to be kept.
        if opens.len() >= UNCHANGED_OPENS_CAPACITY {
            opens.clear();
        }
        opens.insert(request, open);
    }
}

/// The time at which this process last put each catalog into the blobs. A recent put is not repeated, because the
/// collector spares blobs that were put within its grace period.
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

/// The last check of whether the storage takes writes, with its time. Locked during a check, so that callers that ask meanwhile get
/// its outcome.
#[derive(Default)]
pub(crate) struct LastProbe(pub tokio::sync::Mutex<Option<(tokio::time::Instant, ProbeResult)>>);

/// The outcome of a check, as it can be answered several times.
type ProbeResult = Result<(), Arc<Error>>;

/// Since when this process has seen a settlement unchanged, by its monotonic clock.
#[derive(Clone, Copy)]
pub(crate) struct Observation {
    pub version: u64,
    pub since: tokio::time::Instant,
}

/// The settlements that this process watches, by tenant and id (`run/settle.rs`). A lost observation delays the next look.
#[derive(Default)]
pub(crate) struct WatchedSettlements(pub Mutex<HashMap<(TenantId, String), Observation>>);
