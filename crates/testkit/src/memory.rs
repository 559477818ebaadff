//! The ports in memory: store, blobs, clock, entropy, secrets, receipts.
//! Invariant: the store and the blobs pass the same conformance suites as the adapters; they differ only in durability.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base::{Digest, Origin, Secret, TenantId, Timestamp};
use ports::index::{Index, IndexKey, Order};
use ports::receipts::{EffectId, EffectIntent, Opened, Receipt};
use ports::store::{
    Batch, Expect, IndexEntry, IndexPosition, IndexRange, Key, MaintenanceRange, Range, Row, Table, Write,
};
use ports::{blobs, receipts, secrets, store};

use crate::lock;

/// A store that has its rows in a map.
#[derive(Debug, Default)]
pub struct MemoryStore {
    stored: Mutex<Stored>,
}

#[derive(Debug, Default)]
struct Stored {
    rows: BTreeMap<Key, MemoryRow>,
    /// The entries of all indexes, in the order in which a scan returns them.
    entries: BTreeSet<MemoryEntry>,
}

/// A row with the index keys of its last put.
#[derive(Debug, Clone)]
struct MemoryRow {
    row: Row,
    keys: BTreeSet<IndexKey>,
}

/// An index entry. The order of the fields is the order of entries: tables are compared by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct MemoryEntry {
    index: Index,
    tenant: TenantId,
    sort: String,
    table_name: &'static str,
    id: String,
    table: Table,
}

impl MemoryEntry {
    fn new(index: Index, sort: &str, key: &Key) -> Self {
        let Key { tenant, table, id } = key.clone();
        Self { index, tenant, sort: sort.to_owned(), table_name: table.name(), id, table }
    }

    fn at(index: Index, position: &IndexPosition) -> Self {
        Self::new(index, &position.sort, &position.key)
    }

    fn key(&self) -> Key {
        Key::new(&self.tenant, self.table, self.id.as_str())
    }
}

impl Stored {
    fn replace(&mut self, key: Key, row: Option<MemoryRow>) {
        let old = match row {
            Some(row) => {
                self.entries.extend(row.keys.iter().map(|entry| MemoryEntry::new(entry.index(), entry.sort(), &key)));
                let keys = row.keys.clone();
                self.rows.insert(key.clone(), row).map(|old| old.keys.difference(&keys).cloned().collect())
            }
            None => self.rows.remove(&key).map(|old| old.keys),
        };
        for entry in old.unwrap_or_default() {
            self.entries.remove(&MemoryEntry::new(entry.index(), entry.sort(), &key));
        }
    }

    fn with_row(&self, entry: &MemoryEntry) -> IndexEntry {
        let key = entry.key();
        let Some(stored) = self.rows.get(&key) else { panic!("an index entry without a row: {key:?}") };
        IndexEntry { sort: entry.sort.clone(), row: stored.row.clone(), key }
    }
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns all rows in the order of their keys, for a test that checks what is in the store.
    pub fn rows(&self) -> Vec<(Key, Row)> {
        lock(&self.stored).rows.iter().map(|(key, stored)| (key.clone(), stored.row.clone())).collect()
    }
}

#[async_trait]
impl store::Store for MemoryStore {
    async fn get(&self, key: &Key) -> Result<Option<Row>, store::Error> {
        Ok(lock(&self.stored).rows.get(key).map(|stored| stored.row.clone()))
    }

    async fn scan(&self, range: &Range) -> Result<Vec<(String, Row)>, store::Error> {
        let key = |id: &str| Key::new(&range.tenant, range.table, id);
        let start = match &range.after {
            Some(after) if *after >= range.prefix => Bound::Excluded(key(after)),
            _ => Bound::Included(key(&range.prefix)),
        };
        let in_range =
            |key: &Key| key.tenant == range.tenant && key.table == range.table && key.id.starts_with(&range.prefix);
        let rows = &lock(&self.stored).rows;
        let matching = rows.range((start, Bound::Unbounded)).take_while(|(key, _)| in_range(key)).take(range.limit);
        Ok(matching.map(|(key, stored)| (key.id.clone(), stored.row.clone())).collect())
    }

    async fn scan_index(&self, range: &IndexRange) -> Result<Vec<IndexEntry>, store::Error> {
        let stored = lock(&self.stored);
        let end = range.end();
        let is_in_range = |entry: &&MemoryEntry| {
            let is_selected = entry.sort.starts_with(&range.prefix) && end.as_ref().is_none_or(|end| entry.sort < *end);
            entry.index == range.index && entry.tenant == range.tenant && is_selected
        };
        // Tests have few entries, so all of them are compared.
        let follows = |entry: &&MemoryEntry| match &range.after {
            None => true,
            Some(after) => {
                let place = (after.sort.as_str(), after.key.table.name(), after.key.id.as_str());
                let own = (entry.sort.as_str(), entry.table_name, entry.id.as_str());
                if range.order == Order::Ascending { own > place } else { own < place }
            }
        };
        let selected = stored.entries.iter().filter(is_in_range).filter(follows);
        let with_row = |entry| stored.with_row(entry);
        Ok(match range.order {
            Order::Ascending => selected.take(range.limit).map(with_row).collect(),
            Order::Descending => selected.rev().take(range.limit).map(with_row).collect(),
        })
    }

    async fn scan_index_of_all_tenants(&self, range: &MaintenanceRange) -> Result<Vec<IndexEntry>, store::Error> {
        let stored = lock(&self.stored);
        let after = range.after.as_ref().map(|after| MemoryEntry::at(range.index, after));
        let selected = stored.entries.iter().filter(|entry| {
            entry.index == range.index
                && range.before.as_ref().is_none_or(|before| entry.sort < *before)
                && after.as_ref().is_none_or(|after| *entry > after)
        });
        Ok(selected.take(range.limit).map(|entry| stored.with_row(entry)).collect())
    }

    async fn commit(&self, batch: Batch) -> Result<(), store::Error> {
        let mut stored = lock(&self.stored);
        // The changes of the batch are collected first, and applied only if every write finds the version that it expects.
        let mut changed: BTreeMap<Key, Option<MemoryRow>> = BTreeMap::new();
        for write in batch.writes {
            let current = changed.get(write.key()).map_or_else(|| stored.rows.get(write.key()), Option::as_ref);
            let version = current.map(|current| current.row.version);
            let is_as_expected = match write.expect() {
                Expect::Any => true,
                Expect::Absent => version.is_none(),
                Expect::Version(expected) => version == Some(expected),
            };
            if !is_as_expected {
                return Err(store::Error::Conflict(write.key().clone()));
            }
            match write {
                Write::Put { key, value, .. } => {
                    let row = Row { version: version.unwrap_or(0) + 1, value };
                    changed.insert(key, Some(MemoryRow { row, keys: BTreeSet::new() }));
                }
                Write::PutIndexed { key, value, keys, .. } => {
                    let row = Row { version: version.unwrap_or(0) + 1, value };
                    changed.insert(key, Some(MemoryRow { row, keys: keys.into_iter().collect() }));
                }
                Write::Delete { key, .. } => {
                    changed.insert(key, None);
                }
                Write::Check { .. } => {}
            }
        }
        changed.into_iter().for_each(|(key, row)| stored.replace(key, row));
        Ok(())
    }

    async fn tenants(&self) -> Result<Vec<TenantId>, store::Error> {
        let mut tenants: Vec<TenantId> = lock(&self.stored).rows.keys().map(|key| key.tenant.clone()).collect();
        tenants.dedup();
        Ok(tenants)
    }

    async fn ping(&self) -> Result<(), store::Error> {
        Ok(())
    }
}

/// Blobs in a map. A test can damage a blob, and can change the age of all blobs.
#[derive(Debug, Default)]
pub struct MemoryBlobs {
    blobs: Mutex<BTreeMap<Digest, Vec<u8>>>,
    /// The time since the last put of each blob. Only `age` changes these times.
    idle: Mutex<BTreeMap<Digest, Duration>>,
}

impl MemoryBlobs {
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes every blob older, as if this time had passed without a put.
    pub fn age(&self, by: Duration) {
        lock(&self.idle).values_mut().for_each(|idle| *idle += by);
    }

    /// Returns the digests of all blobs, damaged or not.
    pub fn digests(&self) -> Vec<Digest> {
        lock(&self.blobs).keys().copied().collect()
    }

    /// Changes the stored bytes of a blob. The next `get` fails with `Damaged`, and each later `get` with `Missing`.
    pub fn damage(&self, digest: &Digest) {
        let mut blobs = lock(&self.blobs);
        let Some(bytes) = blobs.get_mut(digest) else { panic!("cannot damage blob {digest}: it is not stored") };
        match bytes.first_mut() {
            Some(byte) => *byte ^= 0xff,
            None => bytes.push(0),
        }
    }

    pub fn remove(&self, digest: &Digest) {
        let removed = lock(&self.blobs).remove(digest);
        assert!(removed.is_some(), "cannot remove blob {digest}: it is not stored");
    }
}

#[async_trait]
impl blobs::Blobs for MemoryBlobs {
    async fn put(&self, bytes: &[u8]) -> Result<Digest, blobs::Error> {
        let digest = Digest::of(bytes);
        let mut blobs = lock(&self.blobs);
        blobs.insert(digest, bytes.to_vec());
        lock(&self.idle).insert(digest, Duration::ZERO);
        Ok(digest)
    }

    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, blobs::Error> {
        let mut blobs = lock(&self.blobs);
        let bytes = blobs.get(digest).ok_or(blobs::Error::Missing(*digest))?;
        if Digest::of(bytes) == *digest {
            return Ok(bytes.clone());
        }
        blobs.remove(digest);
        Err(blobs::Error::Damaged(*digest))
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<blobs::StoredBlob>, blobs::Error> {
        let blobs = lock(&self.blobs);
        let idle = lock(&self.idle);
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let page = blobs.range((start, Bound::Unbounded)).take(limit);
        let stored = |(digest, bytes): (&Digest, &Vec<u8>)| blobs::StoredBlob {
            digest: *digest,
            bytes: bytes.len() as u64,
            idle: idle.get(digest).copied().unwrap_or_default(),
        };
        Ok(page.map(stored).collect())
    }

    async fn delete(&self, digest: &Digest, idle: Duration) -> Result<bool, blobs::Error> {
        let mut blobs = lock(&self.blobs);
        let is_old = lock(&self.idle).get(digest).is_some_and(|since| *since >= idle);
        Ok(is_old && blobs.remove(digest).is_some())
    }
}

/// A clock that shows the time that a test sets. A sleep returns at once, moves the clock forward and is recorded.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<ClockState>,
}

#[derive(Debug)]
struct ClockState {
    now: Timestamp,
    /// Every sleep so far, in order.
    slept: Vec<Duration>,
}

impl ManualClock {
    pub fn at(now: Timestamp) -> Self {
        Self { state: Mutex::new(ClockState { now, slept: Vec::new() }) }
    }

    pub fn set(&self, now: Timestamp) {
        lock(&self.state).now = now;
    }

    pub fn advance(&self, duration: Duration) {
        let mut state = lock(&self.state);
        state.now = later(state.now, duration);
    }

    /// Returns every sleep so far, in order.
    pub fn slept(&self) -> Vec<Duration> {
        lock(&self.state).slept.clone()
    }
}

impl Default for ManualClock {
    /// Returns a clock at 2026-01-01T00:00:00Z.
    fn default() -> Self {
        Self::at(Timestamp(1_767_225_600_000))
    }
}

#[async_trait]
impl ports::Clock for ManualClock {
    fn now(&self) -> Timestamp {
        lock(&self.state).now
    }

    async fn sleep(&self, duration: Duration) {
        {
            let mut state = lock(&self.state);
            state.now = later(state.now, duration);
            state.slept.push(duration);
        }
        // The yield lets other tasks run. Otherwise a loop that sleeps until another task is done would never end.
        tokio::task::yield_now().await;
    }
}

fn later(now: Timestamp, duration: Duration) -> Timestamp {
    now.plus_ms(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

/// Entropy that counts: 1, 2, 3, … as sixteen big-endian bytes.
#[derive(Debug, Default)]
pub struct CountingEntropy {
    /// The last number that was returned.
    last: AtomicU64,
}

impl CountingEntropy {
    pub fn new() -> Self {
        Self::default()
    }
}

impl ports::Entropy for CountingEntropy {
    fn bytes(&self) -> [u8; 16] {
        u128::from(self.last.fetch_add(1, Ordering::Relaxed) + 1).to_be_bytes()
    }
}

/// Secrets in a map, by tenant and name.
#[derive(Debug, Default)]
pub struct MapSecrets {
    secrets: BTreeMap<(TenantId, String), Secret>,
}

impl MapSecrets {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn with(mut self, tenant: &TenantId, name: &str, value: &str) -> Self {
        self.secrets.insert((tenant.clone(), name.to_owned()), Secret::new(value));
        self
    }
}

#[async_trait]
impl secrets::Secrets for MapSecrets {
    async fn get(&self, tenant: &TenantId, name: &str, _: &Origin) -> Result<Secret, secrets::Error> {
        self.secrets.get(&(tenant.clone(), name.to_owned())).cloned().ok_or_else(|| secrets::Error::NotSet {
            name: name.to_owned(),
            hint: format!("add it to the test's MapSecrets for tenant `{tenant}`"),
        })
    }

    async fn check_binding(&self, _: &TenantId, _: &str, _: &Origin) -> Result<(), secrets::Error> {
        Ok(())
    }
}

/// Receipts in a map, with a record of every `open` and `close`.
#[derive(Debug, Default)]
pub struct MemoryReceipts {
    receipts: Mutex<BTreeMap<EffectId, Receipt>>,
    /// The name of each call (`open` or `close`) and its effect, in the order of the calls.
    events: Mutex<Vec<(&'static str, EffectId)>>,
    /// The number of calls that may still succeed. With `None` all calls succeed.
    calls_left: Mutex<Option<usize>>,
}

impl MemoryReceipts {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns receipts of which the first `calls` calls succeed and all later calls fail.
    pub fn failing_after(calls: usize) -> Self {
        Self { calls_left: Mutex::new(Some(calls)), ..Self::default() }
    }

    /// Adds a receipt that an earlier attempt of the run left.
    pub fn with(self, receipt: Receipt) -> Self {
        lock(&self.receipts).insert(receipt.intent.id, receipt);
        self
    }

    pub fn all(&self) -> Vec<Receipt> {
        lock(&self.receipts).values().cloned().collect()
    }

    pub fn events(&self) -> Vec<(&'static str, EffectId)> {
        lock(&self.events).clone()
    }

    fn count_call(&self) -> Result<(), receipts::Error> {
        let mut calls_left = lock(&self.calls_left);
        match calls_left.as_mut() {
            Some(0) => Err(receipts::Error::Unavailable("injected: no room for receipts".into())),
            Some(calls_left) => {
                *calls_left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

#[async_trait]
impl receipts::Receipts for MemoryReceipts {
    async fn earlier(&self, id: &EffectId) -> Result<Option<Receipt>, receipts::Error> {
        Ok(lock(&self.receipts).get(id).cloned())
    }

    async fn open(&self, intent: &EffectIntent) -> Result<Opened, receipts::Error> {
        self.count_call()?;
        lock(&self.events).push(("open", intent.id));
        lock(&self.receipts).insert(intent.id, Receipt::open(intent.clone()));
        Ok(Opened::Stored)
    }

    async fn close(&self, receipt: &Receipt) -> Result<(), receipts::Error> {
        self.count_call()?;
        lock(&self.events).push(("close", receipt.intent.id));
        lock(&self.receipts).insert(receipt.intent.id, receipt.clone());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ports::{Blobs, Clock, Entropy, Secrets};

    use super::*;

    #[tokio::test]
    async fn the_memory_store_conforms() {
        crate::conformance::store(async || Arc::new(MemoryStore::new())).await;
        crate::conformance::indexes(async || Arc::new(MemoryStore::new())).await;
        crate::conformance::blob_rows(async || Arc::new(MemoryStore::new())).await;
    }

    #[tokio::test]
    async fn the_memory_blobs_conform() {
        crate::conformance::blobs(async || Arc::new(MemoryBlobs::new())).await;
    }

    #[tokio::test]
    async fn a_damaged_blob_is_reported_once_and_then_missing() {
        let blobs = MemoryBlobs::new();
        for bytes in [b"abc".as_slice(), b""] {
            let digest = blobs.put(bytes).await.unwrap();
            blobs.damage(&digest);
            assert!(matches!(blobs.get(&digest).await, Err(blobs::Error::Damaged(d)) if d == digest));
            assert!(matches!(blobs.get(&digest).await, Err(blobs::Error::Missing(d)) if d == digest));
            assert_eq!(blobs.put(bytes).await.unwrap(), digest);
            assert_eq!(blobs.get(&digest).await.unwrap(), bytes);
            blobs.remove(&digest);
        }
        assert!(blobs.digests().is_empty());
    }

    #[tokio::test]
    async fn a_sleep_moves_the_clock() {
        let clock = ManualClock::at(Timestamp(1_000));
        clock.sleep(Duration::from_millis(250)).await;
        clock.advance(Duration::from_secs(1));
        assert_eq!(clock.now(), Timestamp(2_250));
        assert_eq!(clock.slept(), [Duration::from_millis(250)]);
        clock.set(Timestamp(5));
        assert_eq!(clock.now(), Timestamp(5));
        assert_eq!(ManualClock::default().now().to_string(), "2026-01-01T00:00:00.000Z");
    }

    #[test]
    fn entropy_counts_and_its_ids_differ() {
        let entropy = CountingEntropy::new();
        let (first, second) = (entropy.bytes(), entropy.bytes());
        assert_eq!((first[15], second[15]), (1, 2));
        assert_ne!(base::RunId::from_random(first), base::RunId::from_random(second));
    }

    #[tokio::test]
    async fn secrets_belong_to_their_tenant() {
        let (ours, theirs) = (TenantId::local(), TenantId::parse("other").unwrap());
        let secrets = MapSecrets::new().with(&ours, "token", "hunter2");
        let origin = Origin::parse("https://api.test").unwrap();
        assert_eq!(secrets.get(&ours, "token", &origin).await.unwrap().expose(), "hunter2");
        assert!(
            matches!(secrets.get(&theirs, "token", &origin).await, Err(secrets::Error::NotSet { name, .. }) if name == "token")
        );
    }
}
