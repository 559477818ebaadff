//! One heap, or two beside each other; heaps as files.
//! Invariant: a file that is taken in is verified by the engine, whole, before anything names it.

use std::collections::BTreeMap;

use base::{Digest, TenantId};
use ports::scripts::{self, Global, Heap};
use ports::store::{Batch, Range, Table};
use serde::{Deserialize, Serialize};

use crate::commit;
use crate::engine::rows::{GuestRow, HeapRow, guest_key, tags_key};
use crate::engine::view::{Changed, HeapDiff, HeapInfo, Named, Tags};
use crate::error::Error;
use crate::error::JsError;
use crate::js::heaps::{of_engine, parse_key};
use crate::js::tags::check;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;
use access::Caller;

/// Heaps that are named of those above one.
const ABOVE: usize = 20;
const FORMAT: &str = "tokamak-heap/1";
/// Tries to bring a heap into an engine that forgets it again.
const TRIES: usize = 3;

/// The first line of a file that holds a heap; its engine and then its object follow.
#[derive(Debug, Serialize, Deserialize)]
struct FileHead {
    format: String,
    heap: Digest,
    engine: Digest,
    memory_bytes: u64,
    guest_bytes: usize,
    object_bytes: usize,
}

impl Service {
    pub async fn heap_info(&self, caller: &Caller, heap: &str) -> Result<HeapInfo, Error> {
        self.js()?;
        let key = parse_key(heap)?;
        let stored = self.stored_heap(&caller.tenant, key).await?.ok_or(JsError::NoHeap(key))?;
        let mut info = shown(key, &stored.row);
        info.tags = self.tags_of(&caller.tenant, key).await?;
        info.parents = self.above(caller, (key, &stored.row), |row| row.from).await?;
        info.stored_against = self.above(caller, (key, &stored.row), |row| row.parent).await?;
        Ok(info)
    }

    /// The heaps that this way leads to, as far as it is known and no further than anyone reads. A heap that has gone and was
    /// left again may have come from one that came from it.
    async fn above(
        &self,
        caller: &Caller,
        (key, row): (Digest, &HeapRow),
        way: impl Fn(&HeapRow) -> Option<Digest> + Send,
    ) -> Result<Vec<Digest>, Error> {
        let (mut found, mut at) = (Vec::new(), way(row));
        while let Some(next) = at.filter(|next| found.len() < ABOVE && *next != key && !found.contains(next)) {
            found.push(next);
            at = self.stored_heap(&caller.tenant, next).await?.and_then(|stored| way(&stored.row));
        }
        Ok(found)
    }

    /// Heaps in the order of their keys, after one of them.
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
            let mut info = shown(key, &row);
            info.parents.extend(row.from);
            info.stored_against.extend(row.parent);
            info.tags = self.tags_of(&caller.tenant, key).await?;
            found.push(info);
        }
        Ok(found)
    }

    pub async fn diff_heaps(&self, caller: &Caller, a: &str, b: &str) -> Result<HeapDiff, Error> {
        self.js()?;
        let (a, b) = (parse_key(a)?, parse_key(b)?);
        let (size_a, before) = self.globals_of(&caller.tenant, a).await?;
        let (size_b, after) = self.globals_of(&caller.tenant, b).await?;
        let mut diff = HeapDiff {
            added: Vec::new(),
            removed: Vec::new(),
            changed: Vec::new(),
            unchanged: 0,
            memory_bytes: [size_a, size_b],
        };
        for (name, now) in &after {
            match before.get(name) {
                None => diff.added.push(named(now)),
                Some(then) if then.digest == now.digest && then.kind == now.kind => diff.unchanged += 1,
                Some(then) => {
                    diff.changed.push(Changed { name: name.clone(), before: named(then), after: named(now) });
                }
            }
        }
        diff.removed = before.iter().filter(|(name, _)| !after.contains_key(*name)).map(|(_, g)| named(g)).collect();
        Ok(diff)
    }

    async fn globals_of(&self, tenant: &TenantId, key: Digest) -> Result<(u64, BTreeMap<String, Global>), Error> {
        let stored = self.stored_heap(tenant, key).await?.ok_or(JsError::NoHeap(key))?;
        let scripts = &self.js()?.scripts;
        for _ in 0..TRIES {
            match scripts.globals(key).await {
                Ok(found) => {
                    let globals = found.into_iter().map(|global| (global.name.clone(), global)).collect();
                    return Ok((stored.row.memory_bytes, globals));
                }
                Err(error) => self.make_good(tenant, error).await?,
            }
        }
        Err(Error::Busy)
    }

    /// Brings what the engine lacks; any other error is one.
    async fn make_good(&self, tenant: &TenantId, error: scripts::Error) -> Result<(), Error> {
        match error {
            scripts::Error::Absent(key) => self.bring(tenant, key).await,
            scripts::Error::NoEngine { heap, engine } => self.bring_engine(tenant, heap, engine).await,
            other => Err(of_engine(other).into()),
        }
    }

    /// One file that holds the heap and the engine it needs.
    pub async fn export_heap(&self, caller: &Caller, heap: &str) -> Result<Vec<u8>, Error> {
        let key = parse_key(heap)?;
        let stored = self.stored_heap(&caller.tenant, key).await?.ok_or(JsError::NoHeap(key))?;
        let (engine, scripts) = (stored.row.engine, &self.js()?.scripts);
        let mut object = None;
        for _ in 0..TRIES {
            match scripts.whole(key).await {
                Ok(whole) => {
                    object = Some(whole);
                    break;
                }
                Err(error) => self.make_good(&caller.tenant, error).await?,
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

    /// Takes in a file of [`Service::export_heap`]; the key of its heap. Nothing leads to it but the tags it is given.
    pub async fn import_heap(&self, caller: &Caller, file: &[u8], tags: &Tags) -> Result<Digest, Error> {
        check(tags)?;
        self.has_room(&caller.tenant).await?;
        let scripts = &self.js()?.scripts;
        let (head, guest, object) = parts(file)?;
        if head.engine != scripts.engine() {
            let admitted = scripts.admit_engine(guest.to_vec()).await;
            if admitted.map_err(|_| JsError::NotAHeap("its engine is damaged"))? != head.engine {
                return Err(JsError::NotAHeap("its engine is another one than it says").into());
            }
            let blob = self.ports.blobs.put(guest).await?;
            let key = guest_key(&caller.tenant, head.engine);
            let row = rows::write(&GuestRow { blob, kept: self.now() });
            self.ports.store.commit(Batch::default().put(key, row, ports::store::Expect::Any)).await?;
        }
        self.keep_guest(&caller.tenant).await?;
        let frame = scripts.frame(object).map_err(|_| JsError::NotAHeap("its object is damaged"))?;
        if frame.parent.is_some() {
            return Err(JsError::NotAHeap("it needs another heap").into());
        }
        if frame.memory_bytes != head.memory_bytes {
            return Err(JsError::NotAHeap("its memory has another size than it says").into());
        }
        scripts.admit(head.heap, vec![object.to_vec()]).await.map_err(of_engine)?;
        let heap = Heap {
            key: head.heap,
            parent: None,
            engine: head.engine,
            object: object.into(),
            memory_bytes: frame.memory_bytes,
            links: 1,
        };
        self.keep_imported(&caller.tenant, &heap, tags).await?;
        Ok(head.heap)
    }

    /// The heap with its tags, beside those that it has where it was here before.
    async fn keep_imported(&self, tenant: &TenantId, heap: &Heap, tags: &Tags) -> Result<(), Error> {
        let at = tags_key(tenant, heap.key);
        for _ in 0..commit::TRIES {
            let writes = self.heap_write(tenant, (heap, None), true).await?.write.into_iter().collect();
            let mut batch = Batch { writes };
            let found: Option<Versioned<Tags>> = self.fetch(&at).await?;
            let (mut all, version) = found.map_or_else(Default::default, |found| (found.row, found.version));
            all.extend(tags.clone());
            check(&all)?;
            if !all.is_empty() {
                batch = batch.put(at.clone(), rows::write(&all), commit::unchanged(version));
            }
            if self.try_commit(batch).await?.is_some() {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }
}

fn parts(file: &[u8]) -> Result<(FileHead, &[u8], &[u8]), JsError> {
    let end = file.iter().take(4096).position(|byte| *byte == b'\n').ok_or(JsError::NotAHeap("no first line"))?;
    let head: FileHead =
        serde_json::from_slice(&file[..end]).map_err(|_| JsError::NotAHeap("its first line is not one of ours"))?;
    let rest = &file[end + 1..];
    if head.format != FORMAT || head.guest_bytes.checked_add(head.object_bytes) != Some(rest.len()) {
        return Err(JsError::NotAHeap("its parts are not as long as it says"));
    }
    let (guest, object) = rest.split_at(head.guest_bytes);
    Ok((head, guest, object))
}

fn shown(heap: Digest, row: &HeapRow) -> HeapInfo {
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

fn named(global: &Global) -> Named {
    let Global { name, kind, preview, size, .. } = global.clone();
    Named { name, kind, preview, size }
}
