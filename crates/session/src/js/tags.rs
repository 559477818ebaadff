//! Tags and pins of heaps.
//! Invariant: only stored heaps have tags, and an empty set of tags is stored as no row. A pinned heap stays in storage
//! with all of its ancestors until it is unpinned.

use access::Caller;
use base::{Digest, TenantId};
use ports::store::{Batch, Expect, Range, Table, Write};

use super::heaps::parse_key;
use crate::commit::{TRIES, unchanged};
use crate::engine::rows::{HeapRow, tags_key};
use crate::engine::view::Tags;
use crate::error::Error;
use crate::error::JsError;
use crate::list_page::{ListPage, ListRequest, PageBuilder};
use crate::rows;
use crate::service::Service;

/// The most tags of one heap.
const MAX_TAGS: usize = 64;
/// The most bytes in the key of a tag.
const KEY_BYTES: usize = 256;
/// The most bytes in the value of a tag.
const VALUE_BYTES: usize = 4 * 1024;
/// The number of rows that are read at a time.
const PAGE: usize = 500;
/// The bytes of a row of an answer beside its tags: the heap's key and the names of the fields.
const ROW_BYTES: usize = 90;

impl Service {
    /// Pins or unpins a heap.
    pub async fn pin_heap(&self, caller: &Caller, heap: &str, pinned: bool) -> Result<Digest, Error> {
        self.js()?;
        let tenant = &caller.tenant;
        let key = parse_key(heap)?;
        for _ in 0..TRIES {
            // Retaining a condemned heap changes the version of its row. The commit below then conflicts with that
            // write, and the next attempt succeeds.
            let stored = self.retain_heap(tenant, key).await?.ok_or(JsError::NoHeap(key))?;
            if stored.row.pinned == pinned && stored.row.condemned.is_none() {
                return Ok(key);
            }
            let row = HeapRow { pinned, condemned: None, ..stored.row.clone() };
            let batch = Batch { writes: vec![stored.replacing_write(tenant, key, &row)] };
            if self.try_commit(batch).await?.is_some() {
                return Ok(key);
            }
        }
        Err(Error::Busy)
    }

    /// Returns the tags of a heap, which are empty for a heap that is not stored.
    pub async fn heap_tags(&self, caller: &Caller, heap: &str) -> Result<Tags, Error> {
        self.tags_of(&caller.tenant, parse_key(heap)?).await
    }

    /// Reads the tags of a heap.
    pub(super) async fn tags_of(&self, tenant: &TenantId, heap: Digest) -> Result<Tags, Error> {
        Ok(self.fetch(&tags_key(tenant, heap)).await?.map(|found| found.row).unwrap_or_default())
    }

    /// Replaces the tags of a heap.
    pub async fn set_heap_tags(&self, caller: &Caller, heap: &str, tags: Tags) -> Result<(), Error> {
        check_tags(&tags)?;
        self.change_tags(caller, parse_key(heap)?, |_| tags.clone()).await
    }

    /// Removes the given tags, or all of them.
    pub async fn delete_heap_tags(&self, caller: &Caller, heap: &str, keys: Option<&[String]>) -> Result<(), Error> {
        let without = |mut tags: Tags| match keys {
            None => Tags::new(),
            Some(keys) => {
                tags.retain(|key, _| !keys.contains(key));
                tags
            }
        };
        self.change_tags(caller, parse_key(heap)?, without).await
    }

    /// Changes the tags of a heap by compare-and-set. `change` may be called more than once.
    async fn change_tags(&self, caller: &Caller, heap: Digest, change: impl Fn(Tags) -> Tags) -> Result<(), Error> {
        for _ in 0..TRIES {
            // Tags keep a heap in storage, so a condemned heap is retained before it gets some.
            if self.retain_heap(&caller.tenant, heap).await?.is_none() {
                return Err(JsError::NoHeap(heap).into());
            }
            let key = tags_key(&caller.tenant, heap);
            let found = self.fetch::<Tags>(&key).await?;
            let version = found.as_ref().map_or(0, |found| found.version);
            let next = change(found.map(|found| found.row).unwrap_or_default());
            let batch = match (next.is_empty(), version) {
                (true, 0) => return Ok(()),
                (true, _) => Batch::default().delete(key, Expect::Version(version)),
                (false, _) => Batch::default().put(key, rows::write(&next), unchanged(version)),
            };
            if self.try_commit(batch).await?.is_some() {
                return Ok(());
            }
        }
        Err(Error::Busy)
    }

    /// Returns the heaps that have all of these tags, in the order of their keys.
    pub async fn heaps_by_tags(
        &self,
        caller: &Caller,
        filter: &Tags,
        request: &ListRequest,
    ) -> Result<ListPage<(Digest, Tags)>, Error> {
        let mut found = PageBuilder::new(&self.limits, request);
        let mut total = 0;
        let mut after = None;
        loop {
            let range = Range {
                tenant: caller.tenant.clone(),
                table: Table::HeapTags,
                prefix: String::new(),
                after: after.take(),
                limit: PAGE,
            };
            let page = self.ports.store.scan(&range).await?;
            for (id, row) in &page {
                let tags: Tags = rows::read(id, &row.value)?;
                let has_all = filter.iter().all(|(key, value)| tags.get(key) == Some(value));
                let Some(heap) = Digest::parse(id).ok().filter(|_| has_all) else { continue };
                // Rows before the page and after it are only counted.
                total += 1;
                if request.after.as_ref().is_none_or(|after| id > after) {
                    found.push(id, ROW_BYTES + row.value.len(), (heap, tags));
                }
            }
            match page.last() {
                Some((last, _)) if page.len() == PAGE => after = Some(last.clone()),
                _ => return Ok(found.finish(total)),
            }
        }
    }
}

/// Returns the write of the tags given with a run. They replace the tags that its heap may have.
pub(super) fn tag_write(tenant: &TenantId, heap: Digest, tags: &Tags) -> Write {
    let key = tags_key(tenant, heap);
    if tags.is_empty() {
        return Write::Delete { key, expect: Expect::Any };
    }
    Write::Put { key, value: rows::write(tags), expect: Expect::Any }
}

/// Checks the limits on tags.
pub(super) fn check_tags(tags: &Tags) -> Result<(), JsError> {
    if tags.len() > MAX_TAGS {
        return Err(JsError::BadTags("a heap has at most 64"));
    }
    // `delete_heap_tags` takes keys that are separated by commas.
    if tags.keys().any(|key| key.is_empty() || key.len() > KEY_BYTES || key.contains(',')) {
        return Err(JsError::BadTags("a key has from 1 to 256 bytes and no comma"));
    }
    if tags.values().any(|value| value.len() > VALUE_BYTES) {
        return Err(JsError::BadTags("a value has at most 4,096 bytes"));
    }
    Ok(())
}
