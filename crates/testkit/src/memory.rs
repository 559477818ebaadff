//! Every small port in memory.
//! Invariant: what these do is what the conformance suites demand of the real ones; they differ only in durability.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base::{Digest, Secret, TenantId, Timestamp};
use ports::receipts::{EffectId, Intent, Receipt};
use ports::store::{Batch, Expect, Key, Range, Row, Write};
use ports::{blobs, receipts, secrets, store};

use crate::lock;

/// Rows in a map.
#[derive(Debug, Default)]
pub struct MemoryStore {
    rows: Mutex<BTreeMap<Key, Row>>,
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything stored, in the order of keys: for a test that says what must (or must not) be in the store.
    pub fn rows(&self) -> Vec<(Key, Row)> {
        lock(&self.rows).iter().map(|(key, row)| (key.clone(), row.clone())).collect()
    }
}

#[async_trait]
impl store::Store for MemoryStore {
    async fn get(&self, key: &Key) -> Result<Option<Row>, store::Error> {
        Ok(lock(&self.rows).get(key).cloned())
    }

    async fn scan(&self, range: &Range) -> Result<Vec<(String, Row)>, store::Error> {
        let key = |id: &str| Key::new(&range.tenant, range.table, id);
        let start = match &range.after {
            Some(after) if *after >= range.prefix => Bound::Excluded(key(after)),
            _ => Bound::Included(key(&range.prefix)),
        };
        let within =
            |key: &Key| key.tenant == range.tenant && key.table == range.table && key.id.starts_with(&range.prefix);
        let rows = lock(&self.rows);
        let found = rows.range((start, Bound::Unbounded)).take_while(|(key, _)| within(key)).take(range.limit);
        Ok(found.map(|(key, row)| (key.id.clone(), row.clone())).collect())
    }

    async fn commit(&self, batch: Batch) -> Result<(), store::Error> {
        let mut rows = lock(&self.rows);
        // What the batch has changed so far: it reaches the rows only when every write has had what it expects.
        let mut changed: BTreeMap<Key, Option<Row>> = BTreeMap::new();
        for write in batch.writes {
            let current = changed.get(write.key()).map_or_else(|| rows.get(write.key()), Option::as_ref);
            let version = current.map(|row| row.version);
            let met = match write.expect() {
                Expect::Any => true,
                Expect::Absent => version.is_none(),
                Expect::Version(wanted) => version == Some(wanted),
            };
            if !met {
                return Err(store::Error::Conflict(write.key().clone()));
            }
            match write {
                Write::Put { key, value, .. } => {
                    changed.insert(key, Some(Row { version: version.unwrap_or(0) + 1, value }));
                }
                Write::Delete { key, .. } => {
                    changed.insert(key, None);
                }
            }
        }
        for (key, row) in changed {
            match row {
                Some(row) => rows.insert(key, row),
                None => rows.remove(&key),
            };
        }
        Ok(())
    }

    async fn tenants(&self) -> Result<Vec<TenantId>, store::Error> {
        let mut tenants: Vec<TenantId> = lock(&self.rows).keys().map(|key| key.tenant.clone()).collect();
        tenants.dedup();
        Ok(tenants)
    }

    async fn ping(&self) -> Result<(), store::Error> {
        Ok(())
    }
}

/// Blobs in a map, which a test can damage and let grow old.
#[derive(Debug, Default)]
pub struct MemoryBlobs {
    blobs: Mutex<BTreeMap<Digest, Vec<u8>>>,
    idle: Mutex<BTreeMap<Digest, Duration>>,
}

impl MemoryBlobs {
    pub fn new() -> Self {
        Self::default()
    }

    /// So much time passes without a put.
    pub fn age(&self, by: Duration) {
        lock(&self.idle).values_mut().for_each(|idle| *idle += by);
    }

    /// The digests of everything stored, damaged or not.
    pub fn digests(&self) -> Vec<Digest> {
        lock(&self.blobs).keys().copied().collect()
    }

    /// Changes the stored bytes: the next `get` says `Damaged`, later ones `Missing`.
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
        let (blobs, idle) = (lock(&self.blobs), lock(&self.idle));
        let start = after.map_or(Bound::Unbounded, Bound::Excluded);
        let found = blobs.range((start, Bound::Unbounded)).take(limit);
        let stored = |(digest, bytes): (&Digest, &Vec<u8>)| blobs::StoredBlob {
            digest: *digest,
            bytes: bytes.len() as u64,
            idle: idle.get(digest).copied().unwrap_or_default(),
        };
        Ok(found.map(stored).collect())
    }

    async fn delete(&self, digest: &Digest, idle: Duration) -> Result<bool, blobs::Error> {
        let mut blobs = lock(&self.blobs);
        let old = lock(&self.idle).get(digest).is_some_and(|since| *since >= idle);
        Ok(old && blobs.remove(digest).is_some())
    }
}

/// A clock that stands until a test moves it. Sleeping takes no time: it moves the clock and is recorded.
#[derive(Debug)]
pub struct ManualClock {
    state: Mutex<ClockState>,
}

#[derive(Debug)]
struct ClockState {
    now: Timestamp,
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

    /// Every sleep so far, in order.
    pub fn slept(&self) -> Vec<Duration> {
        lock(&self.state).slept.clone()
    }
}

impl Default for ManualClock {
    /// 2026-01-01T00:00:00Z.
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
        // A loop that sleeps between two looks must let the task it waits for run.
        tokio::task::yield_now().await;
    }
}

fn later(now: Timestamp, duration: Duration) -> Timestamp {
    now.plus_ms(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

/// 1, 2, 3, … as sixteen big-endian bytes.
#[derive(Debug, Default)]
pub struct CountingEntropy {
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

/// Secrets in a map, each under its tenant.
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
    async fn get(&self, tenant: &TenantId, name: &str) -> Result<Secret, secrets::Error> {
        self.secrets.get(&(tenant.clone(), name.to_owned())).cloned().ok_or_else(|| secrets::Error::NotSet {
            name: name.to_owned(),
            hint: format!("add it to the test's MapSecrets for tenant `{tenant}`"),
        })
    }
}

/// Receipts in a map, with every change on record.
#[derive(Debug, Default)]
pub struct MemoryReceipts {
    kept: Mutex<BTreeMap<EffectId, Receipt>>,
    /// `open` and `close` with the effect, in the order they came.
    events: Mutex<Vec<(&'static str, EffectId)>>,
    /// Counts down: when it is at 0, nothing can be kept.
    room: Mutex<Option<usize>>,
}

impl MemoryReceipts {
    pub fn new() -> Self {
        Self::default()
    }

    /// Fails every call after this many.
    pub fn failing_after(calls: usize) -> Self {
        Self { room: Mutex::new(Some(calls)), ..Self::default() }
    }

    /// With what an earlier try of the run has left.
    pub fn with(self, receipt: Receipt) -> Self {
        lock(&self.kept).insert(receipt.intent.id, receipt);
        self
    }

    pub fn all(&self) -> Vec<Receipt> {
        lock(&self.kept).values().cloned().collect()
    }

    pub fn events(&self) -> Vec<(&'static str, EffectId)> {
        lock(&self.events).clone()
    }

    fn take_room(&self) -> Result<(), receipts::Error> {
        let mut room = lock(&self.room);
        match room.as_mut() {
            Some(0) => Err(receipts::Error::Unavailable("injected: no room for receipts".into())),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

#[async_trait]
impl receipts::Receipts for MemoryReceipts {
    async fn open(&self, intent: &Intent) -> Result<Option<Receipt>, receipts::Error> {
        self.take_room()?;
        lock(&self.events).push(("open", intent.id));
        let mut kept = lock(&self.kept);
        if let Some(earlier) = kept.get(&intent.id) {
            return Ok(Some(earlier.clone()));
        }
        kept.insert(intent.id, Receipt::open(intent.clone()));
        Ok(None)
    }

    async fn close(&self, receipt: &Receipt) -> Result<(), receipts::Error> {
        self.take_room()?;
        lock(&self.events).push(("close", receipt.intent.id));
        lock(&self.kept).insert(receipt.intent.id, receipt.clone());
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
    }

    #[tokio::test]
    async fn the_memory_blobs_conform() {
        crate::conformance::blobs(async || Arc::new(MemoryBlobs::new())).await;
    }

    #[tokio::test]
    async fn a_damaged_blob_is_said_once_and_then_missing() {
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
    async fn sleeping_moves_the_clock() {
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
        assert_eq!(secrets.get(&ours, "token").await.unwrap().expose(), "hunter2");
        assert!(
            matches!(secrets.get(&theirs, "token").await, Err(secrets::Error::NotSet { name, .. }) if name == "token")
        );
    }
}
