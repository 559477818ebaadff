//! The rows of blobs: the blobs that a store knows, with the time at which each was touched for the last time.
//!
//! The collector lists candidates from the index of these times and reads no other table for them. The protocol
//! between a put and a deletion is in `crates/store/README.md`; its steps are the functions here.
//!
//! Invariants:
//! - The row of a blob is durable before its bytes are written, and is deleted after its bytes.
//! - Each step changes a row by compare-and-set. After a put has touched a row, a deletion that read it earlier fails.

use std::time::Duration;

use base::{Digest, TenantId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::index::{Index, IndexKey, sort_time};
use crate::store::{Batch, Error, Expect, IndexPosition, IndexRange, Key, Store, Table};

/// The number of times that `touch` reads a row again after a conflict. Each conflict means that another writer has
/// made progress, so a few attempts are enough.
const MAX_TOUCHES: usize = 16;

/// The row of one blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobRow {
    /// The number of bytes of the blob.
    pub bytes: u64,
    /// The time of the last touch. The collector leaves the blob alone until a grace period has passed since then.
    pub touched: Timestamp,
    /// The number of times that a put found the blob's deletion under way and stored the blob anew, plus one. A
    /// storage that names its objects by digest and generation never deletes the bytes of a newer put.
    pub generation: u64,
    /// The collector has decided to delete the bytes and may have done so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deleting: bool,
}

/// A blob that the store knows: its row, with the version that the next step requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownBlob {
    pub digest: Digest,
    pub row: BlobRow,
    pub version: u64,
    /// The place in the index, after which the next page of candidates begins.
    pub position: IndexPosition,
}

/// Returns the key of a blob's row. Blobs belong to no tenant, so their rows are under the tenant of the server itself.
pub fn key(digest: &Digest) -> Key {
    Key::new(&TenantId::local(), Table::Blob, digest.to_string())
}

/// Records that a blob is about to be stored or named. A caller stores the bytes, or commits the row that names them,
/// only after this has returned, and before the grace period has passed. If the last touch is less than `fresh` ago,
/// nothing is written; `fresh` is at most half of the grace period.
pub async fn touch(
    store: &dyn Store,
    digest: &Digest,
    bytes: u64,
    now: Timestamp,
    fresh: Duration,
) -> Result<BlobRow, Error> {
    let mut attempts = 0;
    loop {
        let found = read(store, digest).await?;
        let next = match found {
            Some((row, _)) if !row.deleting && is_fresh(row.touched, now, fresh) => return Ok(row),
            Some((row, _)) => BlobRow {
                bytes,
                touched: row.touched.max(now),
                generation: row.generation + u64::from(row.deleting),
                deleting: false,
            },
            None => BlobRow { bytes, touched: now, generation: 1, deleting: false },
        };
        let expect = found.map_or(Expect::Absent, |(_, version)| Expect::Version(version));
        attempts += 1;
        match store.commit(put(Batch::default(), digest, &next, expect)).await {
            Ok(()) => return Ok(next),
            Err(Error::Conflict(_)) if attempts < MAX_TOUCHES => {}
            Err(error) => return Err(error),
        }
    }
}

/// Returns blobs whose last touch was before `before`, the longest untouched ones first. Among them are those whose
/// deletion was begun and did not end.
pub async fn untouched_since(
    store: &dyn Store,
    before: Timestamp,
    after: Option<IndexPosition>,
    limit: usize,
) -> Result<Vec<KnownBlob>, Error> {
    let range = IndexRange::new(&TenantId::local(), Index::BlobTouched, limit);
    let entries = store.scan_index(&IndexRange { before: Some(sort_time(before)), after, ..range }).await?;
    let known = entries.into_iter().map(|entry| {
        let digest = Digest::parse(&entry.key.id).map_err(|error| damaged(&entry.key.id, error))?;
        let row = parse(&entry.key.id, &entry.row.value)?;
        Ok(KnownBlob { digest, row, version: entry.row.version, position: entry.position() })
    });
    known.collect()
}

/// Returns the batch that decides the deletion of a blob. It conflicts if the blob was touched since it was read. The
/// caller adds the checks that its decision depends on, commits, and then deletes the bytes.
pub fn begin_deletion(blob: &KnownBlob) -> Batch {
    let row = BlobRow { deleting: true, ..blob.row };
    put(Batch::default(), &blob.digest, &row, Expect::Version(blob.version))
}

/// Returns the batch that removes the row of a blob whose bytes are deleted. `blob` is as it was before
/// `begin_deletion`. The batch conflicts if a put has stored the blob anew since then.
pub fn end_deletion(blob: &KnownBlob) -> Batch {
    Batch::default().delete(key(&blob.digest), Expect::Version(blob.version + 1))
}

/// Returns the row of a blob with its version, or `None` if the store does not know the blob.
pub async fn read(store: &dyn Store, digest: &Digest) -> Result<Option<(BlobRow, u64)>, Error> {
    let Some(row) = store.get(&key(digest)).await? else { return Ok(None) };
    Ok(Some((parse(&digest.to_string(), &row.value)?, row.version)))
}

fn put(batch: Batch, digest: &Digest, row: &BlobRow, expect: Expect) -> Batch {
    // A struct of numbers always has a JSON form. An empty value would be reported as damage by the next read.
    let value = serde_json::to_vec(row).unwrap_or_default();
    let keys = vec![IndexKey::new(Index::BlobTouched, sort_time(row.touched))];
    batch.put_indexed(key(digest), value, expect, keys)
}

fn parse(id: &str, value: &[u8]) -> Result<BlobRow, Error> {
    serde_json::from_slice(value).map_err(|error| damaged(id, error))
}

fn damaged(id: &str, cause: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Damaged { what: format!("row {}/{id}", Table::Blob.name()), cause: Box::new(cause) }
}

fn is_fresh(touched: Timestamp, now: Timestamp, fresh: Duration) -> bool {
    let fresh_ms = i64::try_from(fresh.as_millis()).unwrap_or(i64::MAX);
    touched.plus_ms(fresh_ms) > now
}
