//! Moves heaps between the engine and the store.
//!
//! Invariants:
//! - Blob before pointer: a blob is stored before the row that names it.
//! - A stored object is replaced only by one without a parent, so following parents always ends.
//! - A heap reaches the engine only through a row of the tenant.
//! - Before anything refers to a condemned heap, the heap and all of its ancestors are retained.

use std::collections::HashSet;
use std::sync::Arc;

use base::{Digest, TenantId, Timestamp};
use ports::scripts::{self, Heap, ObjectHeader};
use ports::store::{self, Batch, Expect, Write};

use crate::commit::TRIES;
use crate::engine::rows::{ExecutionRow, GuestRow, HeapRow, guest_key, heap_key};
use crate::error::Error;
use crate::error::JsError;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;
use crate::sync::lock;

/// Smaller objects are stored in the heap's row, in the same transaction as the row that refers to the heap.
pub(super) const INLINE_BYTES: usize = 64 * 1024;
/// The bound of the cache of chain lengths. A forgotten length is read again.
const LINK_CACHE_CAPACITY: usize = 10_000;
/// The bound of the walk that retains ancestors. It is longer than any real chain, and ends the walk if damaged rows
/// form a ring.
const MAX_CHAIN: usize = 10_000;

/// A stored heap.
pub(crate) struct StoredHeap {
    pub row: HeapRow,
    /// The version of the row, which a write expects.
    pub version: u64,
    /// The object, if it is in the row.
    inline: Vec<u8>,
}

/// How to store a heap.
pub(super) struct HeapWrite {
    /// `None` if the heap is already stored.
    pub write: Option<Write>,
    /// The number of objects that a reader will need.
    pub links: u32,
    /// The bytes that are new in storage.
    pub bytes: u64,
}

/// A heap that a transaction stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct CommittedHeap {
    pub key: Digest,
    /// The number of objects in its chain, for heaps that are stored against it.
    pub links: u32,
    /// The bytes that are new in storage, for the tenant's count.
    pub bytes: u64,
}

impl HeapWrite {
    /// Returns what to record once the write was committed.
    pub(super) fn committed(&self, key: Digest) -> CommittedHeap {
        CommittedHeap { key, links: self.links, bytes: self.bytes }
    }
}

impl StoredHeap {
    /// Returns the write that clears the condemned mark, if the heap has one.
    fn retaining_write(&self, tenant: &TenantId, key: Digest) -> Option<Write> {
        self.row.condemned?;
        Some(self.replacing_write(tenant, key, &HeapRow { condemned: None, ..self.row.clone() }))
    }

    /// Returns the write that replaces the row.
    pub(super) fn replacing_write(&self, tenant: &TenantId, key: Digest, row: &HeapRow) -> Write {
        Write::Put { key: heap_key(tenant, key), value: row.write(&self.inline), expect: Expect::Version(self.version) }
    }
}

impl Service {
    /// Reads a heap's row. An unreadable row is an error of its own.
    pub(super) async fn stored_heap(&self, tenant: &TenantId, key: Digest) -> Result<Option<StoredHeap>, Error> {
        let row_key = heap_key(tenant, key);
        let found = match self.ports.store.get(&row_key).await {
            Err(store::Error::Damaged { .. }) => return Err(JsError::DamagedHeap(key).into()),
            found => found?,
        };
        let Some(found) = found else { return Ok(None) };
        let name = format!("{}/{}", row_key.table.name(), row_key.id);
        let (row, object) = HeapRow::read(&name, &found.value).map_err(|_| JsError::DamagedHeap(key))?;
        Ok(Some(StoredHeap { inline: object.to_vec(), row, version: found.version }))
    }

    /// Returns the object of a stored heap, from its row or its blob.
    pub(super) async fn object_of(&self, key: Digest, stored: StoredHeap) -> Result<Vec<u8>, Error> {
        let Some(blob) = stored.row.blob else { return Ok(stored.inline) };
        self.ports.blobs.get(&blob).await.map_err(|error| match error {
            ports::blobs::Error::Missing(_) | ports::blobs::Error::Damaged(_) => JsError::DamagedHeap(key).into(),
            other => Error::Blobs(other),
        })
    }

    /// Loads a heap into the engine, with all ancestors that are not in memory.
    pub(super) async fn load_heap(&self, tenant: &TenantId, key: Digest) -> Result<(), Error> {
        let scripts = &self.js()?.scripts;
        let mut load_all = false;
        let mut retries = 0;
        loop {
            let objects = self.heap_chain(tenant, key, |heap| !load_all && scripts.is_in_memory(heap)).await?;
            // The engine names only the first thing that it lacks. Both an engine and an ancestor may be missing, so two
            // retries are needed.
            match scripts.admit(key, objects).await {
                Err(scripts::Error::NoEngine { heap, engine }) if retries < 2 => {
                    self.load_engine(tenant, heap, engine).await?
                }
                // The ancestor was in memory a moment ago and was evicted since, so the whole chain is loaded.
                Err(scripts::Error::Absent(_)) if retries < 2 => load_all = true,
                result => return result.map_err(|error| engine_error(error).into()),
            }
            retries += 1;
        }
    }

    /// Loads a heap that the next step will need and prepares an instance for it, unless enough preparations run
    /// already. An error is ignored, because the step will meet it again and report it to its caller.
    pub(super) async fn prepare_heap(&self, tenant: &TenantId, key: Digest) {
        let Ok(js) = self.js() else { return };
        let Ok(_permit) = js.preparations.try_acquire() else { return };
        let loaded = if js.scripts.is_in_memory(key) { Ok(()) } else { self.load_heap(tenant, key).await };
        let ready = match loaded {
            Ok(()) => js.scripts.prepare(key).await.map_err(|error| engine_error(error).into()),
            Err(error) => Err(error),
        };
        if let Err(error) = ready {
            tracing::debug!(heap = key.short(), %error, "no instance was prepared for a step");
        }
    }

    /// Returns the objects of a heap, the oldest first, starting after the nearest ancestor in memory.
    pub(super) async fn heap_chain(
        &self,
        tenant: &TenantId,
        key: Digest,
        is_in_memory: impl Fn(Digest) -> bool + Send,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let scripts = &self.js()?.scripts;
        let mut objects = Vec::new();
        let mut current = key;
        let mut visited = HashSet::new();
        loop {
            // A row that is its own ancestor is damaged.
            if !visited.insert(current) {
                return Err(JsError::DamagedHeap(current).into());
            }
            let Some(stored) = self.stored_heap(tenant, current).await? else {
                // A parent is deleted after its children. A missing parent means that both were collected a moment
                // ago, unless the child still exists.
                let child_exists = current != key && self.stored_heap(tenant, key).await?.is_some();
                return Err(if child_exists { JsError::DamagedHeap(current) } else { JsError::NoHeap(key) }.into());
            };
            // A condemned heap may be deleted at any time, so its length must not be relied on.
            let links = stored.row.condemned.is_none().then_some(stored.row.links);
            let object = self.object_of(current, stored).await?;
            let ObjectHeader { key: object_key, parent, .. } =
                scripts.header(&object).map_err(|_| JsError::DamagedHeap(current))?;
            if object_key != current {
                return Err(JsError::DamagedHeap(current).into());
            }
            // Remembered only after the object was verified, since heaps that are stored later rely on it.
            if let Some(links) = links {
                self.remember_links(tenant, current, links)?;
            }
            objects.push(object);
            match parent {
                Some(parent) if !is_in_memory(parent) => current = parent,
                _ => break,
            }
        }
        objects.reverse();
        Ok(objects)
    }

    /// Loads an engine of another build, which was stored with the heaps it made.
    pub(super) async fn load_engine(&self, tenant: &TenantId, heap: Digest, engine: Digest) -> Result<(), Error> {
        let missing = || Error::from(JsError::NoEngine { heap, engine });
        let row: Versioned<GuestRow> = self.fetch(&guest_key(tenant, engine)).await?.ok_or_else(missing)?;
        let guest = self.ports.blobs.get(&row.row.blob).await.map_err(|error| match error {
            ports::blobs::Error::Missing(_) | ports::blobs::Error::Damaged(_) => missing(),
            other => Error::Blobs(other),
        })?;
        let admitted = self.js()?.scripts.admit_engine(guest).await.map_err(engine_error)?;
        if admitted == engine { Ok(()) } else { Err(missing()) }
    }

    /// Stores the engine's program for these tenants in advance, so that no run has to wait for it.
    pub async fn store_engine_for(&self, tenants: &[TenantId]) -> Result<(), Error> {
        for tenant in tenants {
            self.store_engine(tenant).await?;
        }
        Ok(())
    }

    /// Stores the engine's program, which must exist before the first heap that needs it.
    pub(super) async fn store_engine(&self, tenant: &TenantId) -> Result<(), Error> {
        if self.engine_is_stored(tenant)? {
            return Ok(());
        }
        let js = self.js()?;
        // Concurrent callers wait here and then find the program stored.
        let _turn = js.engine_store_lock.lock().await;
        if self.engine_is_stored(tenant)? {
            return Ok(());
        }
        let engine = js.scripts.engine();
        let now = self.now();
        // The blob is stored before the row that names it.
        let blob = self.ports.blobs.put(js.scripts.guest()).await?;
        let row = rows::write(&GuestRow { blob, kept: now });
        self.ports.store.commit(Batch::default().put(guest_key(tenant, engine), row, Expect::Any)).await?;
        lock(&js.stored_engines).insert((tenant.clone(), engine), now);
        Ok(())
    }

    /// Stores the engine for a run that produces a heap. A run that already has a stored heap has a stored engine
    /// too.
    pub(super) async fn store_engine_for_run(&self, tenant: &TenantId, run: &ExecutionRow) -> Result<(), Error> {
        if run.has_no_stored_heap() { self.store_engine(tenant).await } else { Ok(()) }
    }

    /// Returns whether the engine of this run is known to be stored. If not, storing it may take a while.
    pub(super) fn engine_is_stored_for(&self, tenant: &TenantId, run: &ExecutionRow) -> Result<bool, Error> {
        Ok(!run.has_no_stored_heap() || self.engine_is_stored(tenant)?)
    }

    /// Returns whether the tenant's row of this engine was written or seen so recently that it still exists.
    fn engine_is_stored(&self, tenant: &TenantId) -> Result<bool, Error> {
        let js = self.js()?;
        let stored_at = lock(&js.stored_engines).get(&(tenant.clone(), js.scripts.engine())).copied();
        Ok(stored_at.is_some_and(|at| self.is_recent(at)))
    }

    /// Returns whether an observation is so recent that the observed row cannot have been collected since. Collection waits
    /// for the grace period, of which half is used here as a margin.
    fn is_recent(&self, observed: Timestamp) -> bool {
        let recent_ms = i64::from(self.retention.grace_hours) * 3_600_000 / 2;
        (0..recent_ms).contains(&self.now().0.saturating_sub(observed.0))
    }

    /// Makes a heap safe to refer to: clears the condemned mark on it and all of its ancestors. `None` if the heap is
    /// not stored.
    pub(crate) async fn retain_heap(&self, tenant: &TenantId, key: Digest) -> Result<Option<StoredHeap>, Error> {
        for _ in 0..TRIES {
            let Some(heap) = self.stored_heap(tenant, key).await? else { return Ok(None) };
            if heap.row.condemned.is_none() {
                return Ok(Some(heap));
            }
            // The collector deletes a condemned heap by the version that it read. Each write below changes a version,
            // so either the delete fails, or this transaction does and the heap is read again. All in one
            // transaction, because a chain that is retained in part could lose its end.
            let mut batch = Batch::default();
            batch.writes.extend(heap.retaining_write(tenant, key));
            let mut parent = heap.row.parent;
            while let Some(ancestor) = parent {
                // An ancestor is gone, so the heap cannot be read and is treated as deleted.
                let Some(stored) = self.stored_heap(tenant, ancestor).await? else { return Ok(None) };
                batch.writes.extend(stored.retaining_write(tenant, ancestor));
                // The ancestors of an uncondemned heap are not condemned.
                let next = stored.row.condemned.and(stored.row.parent);
                parent = next.filter(|_| batch.writes.len() <= MAX_CHAIN);
            }
            if self.try_commit(batch).await?.is_some() {
                return Ok(Some(heap));
            }
        }
        Err(Error::Busy)
    }

    /// Returns the write that stores a heap, unless it is stored; a large object is put as a blob first. Most heaps
    /// are new, so the first attempt passes `lookup = false` and skips the lookup. If the transaction then conflicts
    /// on the heap's row, the caller passes `lookup = true`. `from` is the heap that the run started from.
    pub(super) async fn heap_write(
        &self,
        tenant: &TenantId,
        heap: &Heap,
        from: Option<Digest>,
        lookup: bool,
    ) -> Result<HeapWrite, Error> {
        let key = heap_key(tenant, heap.key);
        if !lookup && let Some(links) = self.known_links(tenant, heap.key)? {
            return Ok(HeapWrite { write: None, links, bytes: 0 });
        }
        if lookup {
            match self.check_stored_heap(tenant, heap.key).await {
                Ok(Some(links)) => return Ok(HeapWrite { write: None, links, bytes: 0 }),
                Ok(None) => {}
                // The stored heap is unreadable, so no other heap depends on it. It is replaced by a complete object
                // without a parent.
                Err(Error::Js(JsError::DamagedHeap(_))) => {
                    return self.replace_damaged_heap(tenant, heap, from).await;
                }
                Err(error) => return Err(error),
            }
        }
        let parent_links = match heap.parent {
            Some(parent) => self.links_of(tenant, parent).await?,
            None => Some(0),
        };
        let object: Arc<[u8]>;
        let parent;
        let links;
        match parent_links {
            Some(parent_links) => {
                object = heap.object.clone();
                parent = heap.parent;
                links = parent_links + 1;
            }
            // The engine made the object against a heap of another tenant, which this tenant cannot read.
            None => {
                object = self.js()?.scripts.standalone_object(heap.key).await.map_err(engine_error)?.into();
                parent = None;
                links = 1;
            }
        }
        let row = HeapRow { parent, links, ..self.new_row(heap, from, &object).await? };
        let write = Write::Put { key, value: row.write(&object), expect: Expect::Absent };
        Ok(HeapWrite { write: Some(write), links, bytes: row.stored_bytes })
    }

    /// Returns the row of a heap without a parent. A large object is put as a blob first.
    async fn new_row(&self, heap: &Heap, from: Option<Digest>, object: &[u8]) -> Result<HeapRow, Error> {
        let blob = self.put_unless_inline(object).await?;
        Ok(HeapRow {
            parent: None,
            from: from.filter(|from| *from != heap.key),
            engine: heap.engine,
            memory_bytes: heap.memory_bytes,
            links: 1,
            created: self.now(),
            blob,
            stored_bytes: object.len() as u64,
            condemned: None,
            pinned: false,
        })
    }

    /// Puts a large object as a blob. `None` for an object that is stored in its row.
    async fn put_unless_inline(&self, object: &[u8]) -> Result<Option<Digest>, Error> {
        Ok(if object.len() < INLINE_BYTES { None } else { Some(self.ports.blobs.put(object).await?) })
    }

    /// Returns the number of objects of a stored heap, if it exists. All of them are read and verified.
    async fn check_stored_heap(&self, tenant: &TenantId, key: Digest) -> Result<Option<u32>, Error> {
        let Some(stored) = self.retain_heap(tenant, key).await? else { return Ok(None) };
        self.heap_chain(tenant, key, |_| false).await?;
        Ok(Some(stored.row.links))
    }

    /// Returns the write that replaces a damaged heap.
    async fn replace_damaged_heap(
        &self,
        tenant: &TenantId,
        heap: &Heap,
        from: Option<Digest>,
    ) -> Result<HeapWrite, Error> {
        tracing::warn!(heap = heap.key.short(), "a damaged heap is replaced");
        let object = self.js()?.scripts.standalone_object(heap.key).await.map_err(engine_error)?;
        let mut row = self.new_row(heap, from, &object).await?;
        // Perhaps only an ancestor is damaged. The intact row then keeps its pin, its date and its origin.
        let expect = match self.stored_heap(tenant, heap.key).await {
            Ok(Some(StoredHeap { row: intact, version, .. })) => {
                row.pinned = intact.pinned;
                row.created = intact.created;
                row.from = intact.from.or(row.from);
                Expect::Version(version)
            }
            Ok(None) => Expect::Absent,
            // A row that cannot be read has no version to expect.
            Err(Error::Js(JsError::DamagedHeap(_))) => Expect::Any,
            Err(error) => return Err(error),
        };
        let write = Write::Put { key: heap_key(tenant, heap.key), value: row.write(&object), expect };
        Ok(HeapWrite { write: Some(write), links: 1, bytes: row.stored_bytes })
    }

    /// Returns the number of objects of a heap that was recently seen in storage and uncondemned.
    fn known_links(&self, tenant: &TenantId, key: Digest) -> Result<Option<u32>, Error> {
        let cached = lock(&self.js()?.chain_lengths).get(&(tenant.clone(), key)).copied();
        Ok(cached.filter(|(_, observed)| self.is_recent(*observed)).map(|(links, _)| links))
    }

    /// Returns the number of objects of a stored heap, which is retained first. `None` if it is not stored.
    async fn links_of(&self, tenant: &TenantId, key: Digest) -> Result<Option<u32>, Error> {
        if let Some(links) = self.known_links(tenant, key)? {
            return Ok(Some(links));
        }
        let stored = self.retain_heap(tenant, key).await?;
        if let Some(stored) = &stored {
            self.remember_links(tenant, key, stored.row.links)?;
        }
        Ok(stored.map(|stored| stored.row.links))
    }

    /// Records a heap after its transaction was committed.
    pub(super) fn record_stored_heap(&self, tenant: &TenantId, heap: &CommittedHeap) -> Result<(), Error> {
        self.count_stored_heap(tenant, heap.bytes)?;
        self.remember_links(tenant, heap.key, heap.links)
    }

    /// Remembers a chain length. Called only after the heap is in storage, because later writes rely on it without
    /// looking.
    pub(super) fn remember_links(&self, tenant: &TenantId, key: Digest, links: u32) -> Result<(), Error> {
        let now = self.now();
        let mut lengths = lock(&self.js()?.chain_lengths);
        if lengths.len() >= LINK_CACHE_CAPACITY {
            lengths.clear();
        }
        lengths.insert((tenant.clone(), key), (links, now));
        Ok(())
    }

    /// Returns whether the chain is known to be within the configured length.
    pub(super) fn chain_is_short(&self, tenant: &TenantId, key: Digest) -> bool {
        let max_links = self.js.as_ref().map_or(0, |js| js.settings.links);
        matches!(self.known_links(tenant, key), Ok(Some(links)) if links <= max_links)
    }

    /// Merges a long chain into one object. Otherwise every step would make reading the heap slower.
    pub(super) async fn merge_chain(&self, tenant: &TenantId, key: Digest) -> Result<(), Error> {
        let js = self.js()?;
        let Some(links) = self.links_of(tenant, key).await?.filter(|links| *links > js.settings.links) else {
            return Ok(());
        };
        let Some(stored) = self.stored_heap(tenant, key).await? else { return Ok(()) };
        let object = js.scripts.standalone_object(key).await.map_err(engine_error)?;
        let blob = self.put_unless_inline(&object).await?;
        let row = HeapRow { parent: None, links: 1, blob, stored_bytes: object.len() as u64, ..stored.row.clone() };
        let expect = Expect::Version(stored.version);
        let batch = Batch::default().put(heap_key(tenant, key), row.write(&object), expect);
        // A lost race is not retried: the chain stays readable, and the next step merges it.
        if self.try_commit(batch).await?.is_some() {
            tracing::debug!(heap = key.short(), links, bytes = object.len(), "a chain of heaps was merged");
            self.remember_links(tenant, key, 1)?;
        }
        Ok(())
    }
}

/// Maps an error of the engine to the heap or engine that causes it.
pub(super) fn engine_error(error: scripts::Error) -> JsError {
    match error {
        scripts::Error::Damaged(key) => JsError::DamagedHeap(key),
        scripts::Error::NoEngine { heap, engine } => JsError::NoEngine { heap, engine },
        other => JsError::Engine(other),
    }
}

/// Parses a heap key of a caller, with or without the `heap://` prefix.
pub(super) fn parse_key(text: &str) -> Result<Digest, JsError> {
    let text = text.strip_prefix("heap://").unwrap_or(text);
    Digest::parse(text).map_err(|_| JsError::BadHeap(text.chars().take(80).collect()))
}
