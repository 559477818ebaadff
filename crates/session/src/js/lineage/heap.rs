//! The properties of one heap, the differences of two, and heaps as files.
//! Invariant: an imported file is verified completely by the engine before any row refers to its heap.

use std::collections::BTreeMap;

use access::Caller;
use base::{Digest, TenantId};
use ports::scripts::{self, Global, Heap};
use ports::store::{Batch, Range, Table};
use serde::{Deserialize, Serialize};

use crate::commit;
use crate::engine::rows::{GuestRow, HeapRow, guest_key, tags_key};
use crate::engine::view::{ChangedGlobal, GlobalSummary, HeapDiff, HeapInfo, Tags};
use crate::error::Error;
use crate::error::JsError;
use crate::js::heaps::{engine_error, parse_key};
use crate::js::tags::check_tags;
use crate::list_page::{ListRequest, PageBuilder};
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;

/// The most ancestors that an answer lists.
const MAX_ANCESTORS: usize = 20;
/// The name and version of the file format.
const FORMAT: &str = "tokamak-heap/1";
/// The attempts to load a heap, since the engine may evict it at once.
const LOAD_TRIES: usize = 3;

/// The first line of a heap file. The engine's program and the object follow it.
#[derive(Debug, Serialize, Deserialize)]
struct FileHead {
    /// Always `FORMAT`.
    format: String,
    /// The key of the heap.
    heap: Digest,
    /// The engine that made the heap and can read it.
    engine: Digest,
    /// The size of the heap's memory when it is loaded.
    memory_bytes: u64,
    /// The length of the engine's program, which follows this line.
    guest_bytes: usize,
    /// The length of the heap's object, which follows the program.
    object_bytes: usize,
}

/// The bytes of a global in an answer beside its texts.
const SUMMARY_BYTES: usize = 60;

impl Service {
    /// Returns the properties of a heap.
    pub async fn heap_info(&self, caller: &Caller, heap: &str) -> Result<HeapInfo, Error> {
        self.js()?;
        let key = parse_key(heap)?;
        let stored = self.stored_heap(&caller.tenant, key).await?.ok_or(JsError::NoHeap(key))?;
        let mut info = heap_info_of(key, &stored.row);
        info.tags = self.tags_of(&caller.tenant, key).await?;
        info.parents = self.ancestors(caller, key, &stored.row, |row| row.from).await?;
        info.stored_against = self.ancestors(caller, key, &stored.row, |row| row.parent).await?;
        Ok(info)
    }

    /// Returns the ancestors of a heap along one relation, as far as recorded and at most `MAX_ANCESTORS`. The walk checks
    /// for rings: a heap that was deleted and produced again may descend from its own descendant.
    async fn ancestors(
        &self,
        caller: &Caller,
        key: Digest,
        row: &HeapRow,
        relation: impl Fn(&HeapRow) -> Option<Digest> + Send,
    ) -> Result<Vec<Digest>, Error> {
        let mut ancestors: Vec<Digest> = Vec::new();
        let mut next = relation(row);
        while let Some(ancestor) = next {
            if ancestors.len() >= MAX_ANCESTORS || ancestor == key || ancestors.contains(&ancestor) {
                break;
            }
            ancestors.push(ancestor);
            next = self.stored_heap(&caller.tenant, ancestor).await?.and_then(|stored| relation(&stored.row));
        }
        Ok(ancestors)
    }

    /// Returns heaps in the order of their keys, after a given one.
    pub async fn heaps(&self, caller: &Caller, after: Option<Digest>, limit: usize) -> Result<Vec<HeapInfo>, Error> {
        self.js()?;
        let range = Range {
            tenant: caller.tenant.clone(),
            table: Table::Heap,
            prefix: String::new(),
            after: after.map(|key| key.to_string()),
            limit,
        };
        let mut found = Vec::new();
        for (id, row) in self.ports.store.scan(&range).await? {
            let key = Digest::parse(&id).map_err(|_| Error::Damaged(id.clone()))?;
            let (row, _) = HeapRow::read(&id, &row.value)?;
            let mut info = heap_info_of(key, &row);
            info.parents.extend(row.from);
            info.stored_against.extend(row.parent);
            info.tags = self.tags_of(&caller.tenant, key).await?;
            found.push(info);
        }
        Ok(found)
    }

    /// Compares the globals of two heaps.
    pub async fn diff_heaps(&self, caller: &Caller, before: &str, after: &str) -> Result<HeapDiff, Error> {
        self.js()?;
        let before_key = parse_key(before)?;
        let after_key = parse_key(after)?;
        let (before_bytes, before) = self.globals_of(&caller.tenant, before_key).await?;
        let (after_bytes, after) = self.globals_of(&caller.tenant, after_key).await?;
        let mut diff = HeapDiff {
            added: Vec::new(),
            removed: Vec::new(),
            changed: Vec::new(),
            unchanged: 0,
            memory_bytes: [before_bytes, after_bytes],
            omitted: 0,
        };
        // All three lists are one answer, so they share its room. The page only counts.
        let mut room: PageBuilder<()> = PageBuilder::new(&self.limits, &ListRequest::default());
        let bytes = |global: &Global| SUMMARY_BYTES + 2 * global.name.len() + global.kind.len() + global.preview.len();
        for (name, new) in &after {
            match before.get(name) {
                None if room.takes(bytes(new)) => diff.added.push(summary(new)),
                Some(old) if old.digest == new.digest && old.kind == new.kind => diff.unchanged += 1,
                Some(old) if room.takes(bytes(old) + bytes(new)) => {
                    diff.changed.push(ChangedGlobal { name: name.clone(), before: summary(old), after: summary(new) });
                }
                None | Some(_) => diff.omitted += 1,
            }
        }
        for (name, old) in &before {
            if after.contains_key(name) {
                continue;
            }
            if room.takes(bytes(old)) {
                diff.removed.push(summary(old));
            } else {
                diff.omitted += 1;
            }
        }
        Ok(diff)
    }

    /// Returns the globals of a heap and the size of its memory.
    async fn globals_of(&self, tenant: &TenantId, key: Digest) -> Result<(u64, BTreeMap<String, Global>), Error> {
        let stored = self.stored_heap(tenant, key).await?.ok_or(JsError::NoHeap(key))?;
        let scripts = &self.js()?.scripts;
        for _ in 0..LOAD_TRIES {
            match scripts.globals(key).await {
                Ok(found) => {
                    let globals = found.into_iter().map(|global| (global.name.clone(), global)).collect();
                    return Ok((stored.row.memory_bytes, globals));
                }
                Err(error) => self.load_missing(tenant, error).await?,
            }
        }
        Err(Error::Busy)
    }

    /// Loads whatever the engine lacked. Any other error is returned.
    async fn load_missing(&self, tenant: &TenantId, error: scripts::Error) -> Result<(), Error> {
        match error {
            scripts::Error::Absent(key) => self.load_heap(tenant, key).await,
            scripts::Error::NoEngine { heap, engine } => self.load_engine(tenant, heap, engine).await,
            other => Err(engine_error(other).into()),
        }
    }

    /// Exports the heap and its engine as one file.
    pub async fn export_heap(&self, caller: &Caller, heap: &str) -> Result<Vec<u8>, Error> {
        let key = parse_key(heap)?;
        let stored = self.stored_heap(&caller.tenant, key).await?.ok_or(JsError::NoHeap(key))?;
        let engine = stored.row.engine;
        let scripts = &self.js()?.scripts;
        let mut object = None;
        for _ in 0..LOAD_TRIES {
            match scripts.standalone_object(key).await {
                Ok(standalone) => {
                    object = Some(standalone);
                    break;
                }
                Err(error) => self.load_missing(&caller.tenant, error).await?,
            }
        }
        let object = object.ok_or(Error::Busy)?;
        let guest = if engine == scripts.engine() {
            scripts.guest().to_vec()
        } else {
            let missing = || Error::from(JsError::NoEngine { heap: key, engine });
            let row: Versioned<GuestRow> = self.fetch(&guest_key(&caller.tenant, engine)).await?.ok_or_else(missing)?;
            self.ports.blobs.get(&row.row.blob).await?
        };
        let head = FileHead {
            format: FORMAT.to_owned(),
            heap: key,
            engine,
            memory_bytes: stored.row.memory_bytes,
            guest_bytes: guest.len(),
            object_bytes: object.len(),
        };
        let mut file = rows::write(&head);
        file.push(b'\n');
        file.extend(guest);
        file.extend(object);
        Ok(file)
    }

    /// Imports a file that [`Service::export_heap`] wrote and returns the heap's key. Only the given tags refer to
    /// the heap.
    pub async fn import_heap(&self, caller: &Caller, file: &[u8], tags: &Tags) -> Result<Digest, Error> {
        check_tags(tags)?;
        self.check_heap_room(&caller.tenant).await?;
        let scripts = &self.js()?.scripts;
        let (head, guest, object) = split_file(file)?;
        // A file of this server's own engine needs no second copy of the program.
        if head.engine != scripts.engine() {
            let admitted = scripts.admit_engine(guest.to_vec()).await;
            if admitted.map_err(|_| JsError::NotAHeap("its engine is damaged"))? != head.engine {
                return Err(JsError::NotAHeap("its engine does not match its header").into());
            }
            let blob = self.ports.blobs.put(guest).await?;
            let key = guest_key(&caller.tenant, head.engine);
            let row = rows::write(&GuestRow { blob, kept: self.now() });
            self.ports.store.commit(Batch::default().put(key, row, ports::store::Expect::Any)).await?;
        }
        self.store_engine(&caller.tenant).await?;
        let header = scripts.header(object).map_err(|_| JsError::NotAHeap("its object is damaged"))?;
        if header.parent.is_some() {
            return Err(JsError::NotAHeap("its object needs another heap").into());
        }
        if header.memory_bytes != head.memory_bytes {
            return Err(JsError::NotAHeap("its memory size does not match its header").into());
        }
        // The engine computes the digest of the memory and refuses an object that is not the heap of this key.
        scripts.admit(head.heap, vec![object.to_vec()]).await.map_err(engine_error)?;
        let heap = Heap {
            key: head.heap,
            parent: None,
            engine: head.engine,
            object: object.into(),
            memory_bytes: header.memory_bytes,
            links: 1,
        };
        self.store_imported(&caller.tenant, &heap, tags).await?;
        Ok(head.heap)
    }

    /// Stores the heap and adds the tags to those that it may already have.
    async fn store_imported(&self, tenant: &TenantId, heap: &Heap, tags: &Tags) -> Result<(), Error> {
        let tags_key = tags_key(tenant, heap.key);
        for _ in 0..commit::TRIES {
            let writes = self.heap_write(tenant, heap, None, true).await?.write.into_iter().collect();
            let mut batch = Batch { writes };
            let found: Option<Versioned<Tags>> = self.fetch(&tags_key).await?;
            let (mut all, version) = found.map_or_else(Default::default, |found| (found.row, found.version));
            all.extend(tags.clone());
            check_tags(&all)?;
            if !all.is_empty() {
                batch = batch.put(tags_key.clone(), rows::write(&all), commit::unchanged(version));
            }
            if self.try_commit(batch).await?.is_some() {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }
}

/// Splits a heap file into its header, engine and object.
fn split_file(file: &[u8]) -> Result<(FileHead, &[u8], &[u8]), JsError> {
    let end =
        file.iter().take(4096).position(|byte| *byte == b'\n').ok_or(JsError::NotAHeap("its first line is missing"))?;
    let head: FileHead =
        serde_json::from_slice(&file[..end]).map_err(|_| JsError::NotAHeap("its first line is not a valid header"))?;
    let rest = &file[end + 1..];
    if head.format != FORMAT || head.guest_bytes.checked_add(head.object_bytes) != Some(rest.len()) {
        return Err(JsError::NotAHeap("its parts are not as long as its first line says"));
    }
    let (guest, object) = rest.split_at(head.guest_bytes);
    Ok((head, guest, object))
}

/// Returns the properties that the heap's row holds. The caller adds ancestors and tags.
fn heap_info_of(heap: Digest, row: &HeapRow) -> HeapInfo {
    HeapInfo {
        heap,
        memory_bytes: row.memory_bytes,
        stored_bytes: row.stored_bytes,
        engine: row.engine,
        created: row.created.to_string(),
        parents: Vec::new(),
        stored_against: Vec::new(),
        tags: BTreeMap::new(),
        pinned: row.pinned,
    }
}

/// Returns a global without its digest.
fn summary(global: &Global) -> GlobalSummary {
    let Global { name, kind, preview, size, .. } = global.clone();
    GlobalSummary { name, kind, preview, size }
}
