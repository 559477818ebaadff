//! Heaps between the engine and the store.
//! Invariant: blob before pointer; the object that is stored for a key is replaced only by one that stands on nothing, so that
//! following parents always ends; nothing reaches the engine but through a row of the tenant; nothing is made to lead to a
//! heap that is condemned, without saving it and all it stands on first.

use std::collections::HashSet;
use std::sync::Arc;

use base::{Digest, TenantId, Timestamp};
use ports::scripts::{self, Frame, Heap};
use ports::store::{self, Batch, Expect, Write};

use crate::commit::TRIES;
use crate::engine::rows::{ExecutionRow, GuestRow, HeapRow, guest_key, heap_key};
use crate::error::Error;
use crate::error::JsError;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;
use crate::shared::lock;

/// Objects smaller than this are in the transaction that names them.
pub(super) const INLINE_BYTES: usize = 64 * 1024;
/// A bound on what is remembered, which can be read again.
const REMEMBERED: usize = 10_000;
/// More than any chain has; a ring of damaged rows ends here.
const MOST_LINKS: usize = 10_000;

/// A heap as it is stored.
pub(crate) struct StoredHeap {
    pub row: HeapRow,
    pub version: u64,
    /// Where it is in the row.
    inline: Vec<u8>,
}

/// What stores a heap.
pub(super) struct HeapWrite {
    /// None where it is stored.
    pub write: Option<Write>,
    /// How many objects its reader will need.
    pub links: u32,
    /// What is new in storage.
    pub bytes: u64,
}

/// A heap that a transaction stores.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredNow {
    pub key: Digest,
    pub links: u32,
    pub bytes: u64,
}

impl HeapWrite {
    pub(super) fn of(&self, key: Digest) -> StoredNow {
        StoredNow { key, links: self.links, bytes: self.bytes }
    }
}

impl StoredHeap {
    /// The write that saves it, where it is condemned.
    fn saved(&self, tenant: &TenantId, key: Digest) -> Option<Write> {
        self.row.condemned?;
        Some(self.changed(tenant, key, &HeapRow { condemned: None, ..self.row.clone() }))
    }

    /// The write that puts another row in its place.
    pub(super) fn changed(&self, tenant: &TenantId, key: Digest, row: &HeapRow) -> Write {
        let (key, value) = (heap_key(tenant, key), row.write(&self.inline));
        Write::Put { key, value, expect: Expect::Version(self.version) }
    }
}

impl Service {
    pub(super) async fn stored_heap(&self, tenant: &TenantId, key: Digest) -> Result<Option<StoredHeap>, Error> {
        let at = heap_key(tenant, key);
        let found = match self.ports.store.get(&at).await {
            Err(store::Error::Damaged { .. }) => return Err(JsError::DamagedHeap(key).into()),
            found => found?,
        };
        let Some(found) = found else { return Ok(None) };
        let name = format!("{}/{}", at.table.name(), at.id);
        let (row, object) = HeapRow::read(&name, &found.value).map_err(|_| JsError::DamagedHeap(key))?;
        Ok(Some(StoredHeap { inline: object.to_vec(), row, version: found.version }))
    }

    pub(super) async fn object_of(&self, key: Digest, stored: StoredHeap) -> Result<Vec<u8>, Error> {
        let Some(blob) = stored.row.blob else { return Ok(stored.inline) };
        self.ports.blobs.get(&blob).await.map_err(|error| match error {
            ports::blobs::Error::Missing(_) | ports::blobs::Error::Damaged(_) => JsError::DamagedHeap(key).into(),
            other => Error::Blobs(other),
        })
    }

    /// Brings a heap into the engine, with everything it stands on that is not there.
    pub(super) async fn bring(&self, tenant: &TenantId, key: Digest) -> Result<(), Error> {
        let scripts = &self.js()?.scripts;
        let (mut whole, mut tried) = (false, 0);
        loop {
            let objects = self.chain(tenant, key, |heap| !whole && scripts.is_here(heap)).await?;
            // What is wrong is named by the heap that is: a second try for each thing that may be missing.
            match scripts.admit(key, objects).await {
                Err(scripts::Error::NoEngine { heap, engine }) if tried < 2 => {
                    self.bring_engine(tenant, heap, engine).await?
                }
                // What it stands on was there a moment ago.
                Err(scripts::Error::Absent(_)) if tried < 2 => whole = true,
                ended => return ended.map_err(|error| of_engine(error).into()),
            }
            tried += 1;
        }
    }

    /// Brings a heap that the next step will stand on, and has what that step needs made, unless that is done for others already:
    /// steps are not to wait for what may be of use. What goes wrong goes wrong again in the step, which has someone to tell.
    pub(super) async fn get_ready(&self, tenant: &TenantId, key: Digest) {
        let Ok(js) = self.js() else { return };
        let Ok(_permit) = js.making_ready.try_acquire() else { return };
        let brought = if js.scripts.is_here(key) { Ok(()) } else { self.bring(tenant, key).await };
        let ready = match brought {
            Ok(()) => js.scripts.ready(key).await.map_err(|error| of_engine(error).into()),
            Err(error) => Err(error),
        };
        if let Err(error) = ready {
            tracing::debug!(heap = key.short(), %error, "nothing is made ready for a step");
        }
    }

    /// The objects of a heap, the oldest first, from the one whose parent is here, or from the whole one.
    pub(super) async fn chain(
        &self,
        tenant: &TenantId,
        key: Digest,
        is_here: impl Fn(Digest) -> bool + Send,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let scripts = &self.js()?.scripts;
        let (mut objects, mut at, mut seen) = (Vec::new(), key, HashSet::new());
        loop {
            // Rows that lead back to themselves are damaged, whoever wrote them.
            if !seen.insert(at) {
                return Err(JsError::DamagedHeap(at).into());
            }
            let Some(stored) = self.stored_heap(tenant, at).await? else {
                // What it stands on was stored with it, and goes after it: someone may have collected both in this moment.
                let here = at != key && self.stored_heap(tenant, key).await?.is_some();
                return Err(if here { JsError::DamagedHeap(at) } else { JsError::NoHeap(key) }.into());
            };
            let links = stored.row.condemned.is_none().then_some(stored.row.links);
            let object = self.object_of(at, stored).await?;
            let Frame { key: named, parent, .. } = scripts.frame(&object).map_err(|_| JsError::DamagedHeap(at))?;
            if named != at {
                return Err(JsError::DamagedHeap(at).into());
            }
            // What stands on it leans on that it can be read.
            if let Some(links) = links {
                self.remember_links(tenant, at, links)?;
            }
            objects.push(object);
            match parent {
                Some(parent) if !is_here(parent) => at = parent,
                _ => break,
            }
        }
        objects.reverse();
        Ok(objects)
    }

    /// An engine of another build, as it was stored with the heaps it made.
    pub(super) async fn bring_engine(&self, tenant: &TenantId, heap: Digest, engine: Digest) -> Result<(), Error> {
        let missing = || Error::from(JsError::NoEngine { heap, engine });
        let row: Versioned<GuestRow> = self.fetch(&guest_key(tenant, engine)).await?.ok_or_else(missing)?;
        let guest = self.ports.blobs.get(&row.row.blob).await.map_err(|error| match error {
            ports::blobs::Error::Missing(_) | ports::blobs::Error::Damaged(_) => missing(),
            other => Error::Blobs(other),
        })?;
        let admitted = self.js()?.scripts.admit_engine(guest).await.map_err(of_engine)?;
        if admitted == engine { Ok(()) } else { Err(missing()) }
    }

    /// Stores the engine's program for these tenants, so that no run of theirs waits for that.
    pub async fn keep_engine(&self, tenants: &[TenantId]) -> Result<(), Error> {
        for tenant in tenants {
            self.keep_guest(tenant).await?;
        }
        Ok(())
    }

    /// The engine's program is stored before the first heap that needs it.
    pub(super) async fn keep_guest(&self, tenant: &TenantId) -> Result<(), Error> {
        if self.is_guest_kept(tenant)? {
            return Ok(());
        }
        let js = self.js()?;
        // Those that come meanwhile find it kept.
        let _turn = js.keeping.lock().await;
        if self.is_guest_kept(tenant)? {
            return Ok(());
        }
        let engine = js.scripts.engine();
        let (key, kept) = (guest_key(tenant, engine), self.now());
        let blob = self.ports.blobs.put(js.scripts.guest()).await?;
        let batch = Batch::default().put(key, rows::write(&GuestRow { blob, kept }), Expect::Any);
        self.ports.store.commit(batch).await?;
        lock(&js.guests).insert((tenant.clone(), engine), kept);
        Ok(())
    }

    /// The same for a run that leaves a heap. What one stands on has its engine in storage, for as long as it is there.
    pub(super) async fn keep_guest_of(&self, tenant: &TenantId, run: &ExecutionRow) -> Result<(), Error> {
        if run.stands_on_nothing() { self.keep_guest(tenant).await } else { Ok(()) }
    }

    /// Whether that is known; else it takes as long as the storage does.
    pub(super) fn guest_is_kept(&self, tenant: &TenantId, run: &ExecutionRow) -> Result<bool, Error> {
        Ok(!run.stands_on_nothing() || self.is_guest_kept(tenant)?)
    }

    fn is_guest_kept(&self, tenant: &TenantId) -> Result<bool, Error> {
        let js = self.js()?;
        let at = lock(&js.guests).get(&(tenant.clone(), js.scripts.engine())).copied();
        Ok(at.is_some_and(|at| self.is_lately(at)))
    }

    /// Whether what was seen then cannot have been collected since: nothing goes before it was condemned for the grace period.
    fn is_lately(&self, seen: Timestamp) -> bool {
        let lately = i64::from(self.retention.grace_hours) * 3_600_000 / 2;
        (0..lately).contains(&self.now().0.saturating_sub(seen.0))
    }

    /// A heap that something is about to lead to: saved, with all it stands on, where it was condemned. `None` where it is not
    /// in storage.
    pub(crate) async fn save_heap(&self, tenant: &TenantId, key: Digest) -> Result<Option<StoredHeap>, Error> {
        for _ in 0..TRIES {
            let Some(first) = self.stored_heap(tenant, key).await? else { return Ok(None) };
            if first.row.condemned.is_none() {
                return Ok(Some(first));
            }
            let (mut batch, mut parent) = (Batch::default(), first.row.parent);
            batch.writes.extend(first.saved(tenant, key));
            while let Some(at) = parent {
                // Where something is gone already, nobody can have it any more.
                let Some(above) = self.stored_heap(tenant, at).await? else { return Ok(None) };
                batch.writes.extend(above.saved(tenant, at));
                // What one that is not condemned stands on is not, either.
                let next = above.row.condemned.and(above.row.parent);
                parent = next.filter(|_| batch.writes.len() <= MOST_LINKS);
            }
            if self.try_commit(batch).await?.is_some() {
                return Ok(Some(first));
            }
        }
        Err(Error::Busy)
    }

    /// The write that stores a heap, unless it is there; its blob, where it has one, is stored already. Most heaps are new, so
    /// the first try does not look: the write says so where one is there already, and then `look` is asked for. `from` is what
    /// the run stands on that leaves it.
    pub(super) async fn heap_write(
        &self,
        tenant: &TenantId,
        (heap, from): (&Heap, Option<Digest>),
        look: bool,
    ) -> Result<HeapWrite, Error> {
        let key = heap_key(tenant, heap.key);
        if !look && let Some(links) = self.links_known(tenant, heap.key)? {
            return Ok(HeapWrite { write: None, links, bytes: 0 });
        }
        if look {
            match self.sound_heap(tenant, heap.key).await {
                Ok(Some(links)) => return Ok(HeapWrite { write: None, links, bytes: 0 }),
                Ok(None) => {}
                // Nobody can read what is there, so nobody leans on it: this one goes in its place, and stands on nothing.
                Err(Error::Js(JsError::DamagedHeap(_))) => return self.mended(tenant, (heap, from)).await,
                Err(error) => return Err(error),
            }
        }
        let above = match heap.parent {
            Some(parent) => self.links_of(tenant, parent).await?,
            None => Some(0),
        };
        let (object, parent, links): (Arc<[u8]>, _, _) = match above {
            Some(above) => (heap.object.clone(), heap.parent, above + 1),
            // The engine made it against a heap that this tenant does not have.
            None => (self.js()?.scripts.whole(heap.key).await.map_err(of_engine)?.into(), None, 1),
        };
        let row = HeapRow { parent, links, ..self.new_heap(heap, from, &object).await? };
        let write = Write::Put { key, value: row.write(&object), expect: Expect::Absent };
        Ok(HeapWrite { write: Some(write), links, bytes: row.stored_bytes })
    }

    /// The row of a heap that stands on nothing; its blob, where it has one, is stored.
    async fn new_heap(&self, heap: &Heap, from: Option<Digest>, object: &[u8]) -> Result<HeapRow, Error> {
        let blob = if object.len() < INLINE_BYTES { None } else { Some(self.ports.blobs.put(object).await?) };
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

    /// How many objects a reader of a heap in storage needs, where it is there; all of them are read.
    async fn sound_heap(&self, tenant: &TenantId, key: Digest) -> Result<Option<u32>, Error> {
        let Some(stored) = self.save_heap(tenant, key).await? else { return Ok(None) };
        self.chain(tenant, key, |_| false).await?;
        Ok(Some(stored.row.links))
    }

    /// The write that puts a heap in the place of its damaged self.
    async fn mended(&self, tenant: &TenantId, (heap, from): (&Heap, Option<Digest>)) -> Result<HeapWrite, Error> {
        tracing::warn!(heap = heap.key.short(), "a damaged heap was made anew");
        let object = self.js()?.scripts.whole(heap.key).await.map_err(of_engine)?;
        let mut row = self.new_heap(heap, from, &object).await?;
        // Perhaps only what it stands on is damaged: what its row says of it stays.
        let expect = match self.stored_heap(tenant, heap.key).await {
            Ok(Some(StoredHeap { row: known, version, .. })) => {
                (row.pinned, row.created, row.from) = (known.pinned, known.created, known.from.or(row.from));
                Expect::Version(version)
            }
            Ok(None) => Expect::Absent,
            Err(Error::Js(JsError::DamagedHeap(_))) => Expect::Any,
            Err(error) => return Err(error),
        };
        let (key, value) = (heap_key(tenant, heap.key), row.write(&object));
        Ok(HeapWrite { write: Some(Write::Put { key, value, expect }), links: 1, bytes: row.stored_bytes })
    }

    /// Of a heap that was in storage and nobody's garbage so lately that it still is.
    fn links_known(&self, tenant: &TenantId, key: Digest) -> Result<Option<u32>, Error> {
        let known = lock(&self.js()?.links).get(&(tenant.clone(), key)).copied();
        Ok(known.filter(|(_, seen)| self.is_lately(*seen)).map(|(links, _)| links))
    }

    async fn links_of(&self, tenant: &TenantId, key: Digest) -> Result<Option<u32>, Error> {
        if let Some(links) = self.links_known(tenant, key)? {
            return Ok(Some(links));
        }
        let stored = self.save_heap(tenant, key).await?;
        if let Some(stored) = &stored {
            self.remember_links(tenant, key, stored.row.links)?;
        }
        Ok(stored.map(|stored| stored.row.links))
    }

    /// To be told after a run's heap is in storage.
    pub(super) fn heap_is_stored(&self, tenant: &TenantId, heap: &StoredNow) -> Result<(), Error> {
        self.count_heap(tenant, heap.bytes)?;
        self.remember_links(tenant, heap.key, heap.links)
    }

    /// To be told after a heap is in storage, never before: what stands on it leans on that.
    pub(super) fn remember_links(&self, tenant: &TenantId, key: Digest, links: u32) -> Result<(), Error> {
        let (now, mut known) = (self.now(), lock(&self.js()?.links));
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert((tenant.clone(), key), (links, now));
        Ok(())
    }

    /// Whether a chain is known to be as short as it need be.
    pub(super) fn is_short(&self, tenant: &TenantId, key: Digest) -> bool {
        let most = self.js.as_ref().map_or(0, |js| js.settings.links);
        matches!(self.links_known(tenant, key), Ok(Some(links)) if links <= most)
    }

    /// A chain that has grown long is made one object, so that reading it takes no longer with every step.
    pub(super) async fn shorten(&self, tenant: &TenantId, key: Digest) -> Result<(), Error> {
        let js = self.js()?;
        let Some(links) = self.links_of(tenant, key).await?.filter(|links| *links > js.settings.links) else {
            return Ok(());
        };
        let Some(stored) = self.stored_heap(tenant, key).await? else { return Ok(()) };
        let object = js.scripts.whole(key).await.map_err(of_engine)?;
        let blob = if object.len() < INLINE_BYTES { None } else { Some(self.ports.blobs.put(&object).await?) };
        let row = HeapRow { parent: None, links: 1, blob, stored_bytes: object.len() as u64, ..stored.row.clone() };
        let expect = Expect::Version(stored.version);
        let batch = Batch::default().put(heap_key(tenant, key), row.write(&object), expect);
        if self.try_commit(batch).await?.is_some() {
            tracing::debug!(heap = key.short(), links, bytes = object.len(), "a chain was made one object");
            self.remember_links(tenant, key, 1)?;
        }
        Ok(())
    }
}

/// What the engine says, as whose mistake it is.
pub(super) fn of_engine(error: scripts::Error) -> JsError {
    match error {
        scripts::Error::Damaged(key) => JsError::DamagedHeap(key),
        scripts::Error::NoEngine { heap, engine } => JsError::NoEngine { heap, engine },
        other => JsError::Engine(other),
    }
}

/// A key as a caller writes it.
pub(super) fn parse_key(text: &str) -> Result<Digest, JsError> {
    let text = text.strip_prefix("heap://").unwrap_or(text);
    Digest::parse(text).map_err(|_| JsError::BadHeap(text.chars().take(80).collect()))
}
