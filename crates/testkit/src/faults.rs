//! Faults on request: wrappers around any `Store` and `Blobs` in which the calls that a test chose fail.
//! Invariant: a failing call does not reach the inner port, except with `LostAfter`, which fails after the whole operation.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base::{Digest, TenantId};
use ports::store::{Batch, IndexEntry, IndexRange, Key, MaintenanceRange, Range, Row};
use ports::{Blobs, Cause, Store, blobs, store};

use crate::lock;

/// A call that can fail. The operations of stores and of blobs are different variants, so that both wrappers can share one `Faults`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    Get,
    Scan,
    Commit,
    Ping,
    PutBlob,
    GetBlob,
}

impl Operation {
    pub const ALL: [Operation; 6] = [Self::Get, Self::Scan, Self::Commit, Self::Ping, Self::PutBlob, Self::GetBlob];
}

/// The way in which a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The operation does not happen, and the caller gets `Unavailable`.
    Unavailable,
    /// The operation does not happen, and the caller gets `Full`.
    Full,
    /// The operation does not happen, and the caller gets `Conflict` for the first key of the batch. This is for `Commit` only.
    Conflict,
    /// The stored row differs from the written one. This is for `Get` only.
    Damaged,
    /// The operation happens, and the caller gets `Unavailable`, because the answer was lost.
    LostAfter,
}

/// The plan of faults and the counts of calls, which a test and its wrappers share. All clones refer to the same plan.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of calls of each operation so far.
    calls: BTreeMap<Operation, u64>,
    /// The faults of single calls, by the operation and the number of the call.
    planned: BTreeMap<(Operation, u64), Fault>,
    /// The faults of all calls of an operation, until [`Faults::heal`] removes them.
    standing: BTreeMap<Operation, Fault>,
    /// The delay of all calls of an operation.
    slow: BTreeMap<Operation, Duration>,
}

impl Faults {
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes one later call of `operation` fail. `nth` counts from the next call, which is 1.
    pub fn fail(&self, operation: Operation, nth: u64, fault: Fault) {
        assert!(nth > 0, "the next call is number 1");
        check(operation, fault);
        let mut state = lock(&self.state);
        let at = state.calls.get(&operation).copied().unwrap_or(0) + nth;
        state.planned.insert((operation, at), fault);
    }

    /// Fails every call of `operation` until [`Faults::heal`].
    pub fn fail_always(&self, operation: Operation, fault: Fault) {
        check(operation, fault);
        lock(&self.state).standing.insert(operation, fault);
    }

    /// Delays every call of `operation` by this time until [`Faults::heal`], as distant storage does. Only `PutBlob` can be slow.
    pub fn slow(&self, operation: Operation, by: Duration) {
        assert_eq!(operation, Operation::PutBlob, "nothing else can be slow");
        lock(&self.state).slow.insert(operation, by);
    }

    /// Fails every call of every operation until [`Faults::heal`], as a lost disk does.
    pub fn fail_everything(&self, fault: Fault) {
        Operation::ALL.into_iter().for_each(|operation| self.fail_always(operation, fault));
    }

    /// Removes every fault and delay. The counts of calls are kept.
    pub fn heal(&self) {
        let mut state = lock(&self.state);
        state.planned.clear();
        state.standing.clear();
        state.slow.clear();
    }

    /// Returns the number of calls of `operation`, including failed ones.
    pub fn calls(&self, operation: Operation) -> u64 {
        lock(&self.state).calls.get(&operation).copied().unwrap_or(0)
    }

    /// Counts a call and returns its fault. If an operation has a standing fault, the fault planned for this call is used up too.
    fn next(&self, operation: Operation) -> Option<Fault> {
        let mut state = lock(&self.state);
        let count = state.calls.entry(operation).or_insert(0);
        *count += 1;
        let at = *count;
        let planned = state.planned.remove(&(operation, at));
        state.standing.get(&operation).copied().or(planned)
    }
}

/// Panics if `fault` is not possible for `operation`.
fn check(operation: Operation, fault: Fault) {
    let possible = match fault {
        Fault::Conflict => operation == Operation::Commit,
        Fault::Damaged => operation == Operation::Get,
        Fault::Unavailable | Fault::Full | Fault::LostAfter => true,
    };
    assert!(possible, "{operation:?} cannot end in {fault:?}");
}

fn cause(operation: Operation, fault: Fault) -> Cause {
    format!("injected: {operation:?} fails with {fault:?}").into()
}

/// A store whose calls fail according to its [`Faults`]. The test shares the inner store, which it can read without faults.
#[derive(Debug)]
pub struct FaultyStore<S: ?Sized> {
    inner: Arc<S>,
    faults: Faults,
}

impl<S: ?Sized> FaultyStore<S> {
    pub fn new(inner: Arc<S>, faults: &Faults) -> Self {
        Self { inner, faults: faults.clone() }
    }

    pub fn inner(&self) -> &S {
        &self.inner
    }
}

#[async_trait]
impl<S: Store + ?Sized> Store for FaultyStore<S> {
    async fn get(&self, key: &Key) -> Result<Option<Row>, store::Error> {
        let fault = before_row(&self.faults, Operation::Get, None)?;
        let row = self.inner.get(key).await?;
        after_row(Operation::Get, fault).map(|()| row)
    }

    async fn scan(&self, range: &Range) -> Result<Vec<(String, Row)>, store::Error> {
        let fault = before_row(&self.faults, Operation::Scan, None)?;
        let rows = self.inner.scan(range).await?;
        after_row(Operation::Scan, fault).map(|()| rows)
    }

    async fn scan_index(&self, range: &IndexRange) -> Result<Vec<IndexEntry>, store::Error> {
        let fault = before_row(&self.faults, Operation::Scan, None)?;
        let entries = self.inner.scan_index(range).await?;
        after_row(Operation::Scan, fault).map(|()| entries)
    }

    async fn scan_index_of_all_tenants(&self, range: &MaintenanceRange) -> Result<Vec<IndexEntry>, store::Error> {
        let fault = before_row(&self.faults, Operation::Scan, None)?;
        let entries = self.inner.scan_index_of_all_tenants(range).await?;
        after_row(Operation::Scan, fault).map(|()| entries)
    }

    async fn commit(&self, batch: Batch) -> Result<(), store::Error> {
        let first = batch.writes.first().map(|write| write.key().clone());
        let fault = before_row(&self.faults, Operation::Commit, first)?;
        self.inner.commit(batch).await?;
        after_row(Operation::Commit, fault)
    }

    async fn tenants(&self) -> Result<Vec<TenantId>, store::Error> {
        let fault = before_row(&self.faults, Operation::Scan, None)?;
        let tenants = self.inner.tenants().await?;
        after_row(Operation::Scan, fault).map(|()| tenants)
    }

    async fn ping(&self) -> Result<(), store::Error> {
        let fault = before_row(&self.faults, Operation::Ping, None)?;
        self.inner.ping().await?;
        after_row(Operation::Ping, fault)
    }
}

/// Returns the fault to apply after the operation, or fails with the fault that replaces the operation.
fn before_row(faults: &Faults, operation: Operation, first: Option<Key>) -> Result<Option<Fault>, store::Error> {
    match (faults.next(operation), first) {
        (None, _) => Ok(None),
        (Some(Fault::LostAfter), _) => Ok(Some(Fault::LostAfter)),
        (Some(Fault::Conflict), Some(key)) => Err(store::Error::Conflict(key)),
        (Some(Fault::Full), _) => Err(store::Error::Full(cause(operation, Fault::Full))),
        (Some(Fault::Damaged), _) => {
            Err(store::Error::Damaged { what: "a row".to_owned(), cause: cause(operation, Fault::Damaged) })
        }
        (Some(fault @ (Fault::Unavailable | Fault::Conflict)), _) => {
            Err(store::Error::Unavailable(cause(operation, fault)))
        }
    }
}

fn after_row(operation: Operation, fault: Option<Fault>) -> Result<(), store::Error> {
    fault.map_or(Ok(()), |fault| Err(store::Error::Unavailable(cause(operation, fault))))
}

/// Blobs whose calls fail according to their [`Faults`].
#[derive(Debug)]
pub struct FaultyBlobs<B: ?Sized> {
    inner: Arc<B>,
    faults: Faults,
}

impl<B: ?Sized> FaultyBlobs<B> {
    pub fn new(inner: Arc<B>, faults: &Faults) -> Self {
        Self { inner, faults: faults.clone() }
    }

    pub fn inner(&self) -> &B {
        &self.inner
    }
}

#[async_trait]
impl<B: Blobs + ?Sized> Blobs for FaultyBlobs<B> {
    async fn put(&self, bytes: &[u8]) -> Result<Digest, blobs::Error> {
        let fault = before_blob(&self.faults, Operation::PutBlob)?;
        let slow = lock(&self.faults.state).slow.get(&Operation::PutBlob).copied();
        if let Some(by) = slow {
            tokio::time::sleep(by).await;
        }
        let digest = self.inner.put(bytes).await?;
        after_blob(Operation::PutBlob, fault).map(|()| digest)
    }

    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, blobs::Error> {
        let fault = before_blob(&self.faults, Operation::GetBlob)?;
        let bytes = self.inner.get(digest).await?;
        after_blob(Operation::GetBlob, fault).map(|()| bytes)
    }

    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<blobs::StoredBlob>, blobs::Error> {
        let fault = before_blob(&self.faults, Operation::GetBlob)?;
        let page = self.inner.list(after, limit).await?;
        after_blob(Operation::GetBlob, fault).map(|()| page)
    }

    async fn delete(&self, digest: &Digest, idle: Duration) -> Result<bool, blobs::Error> {
        let fault = before_blob(&self.faults, Operation::PutBlob)?;
        let deleted = self.inner.delete(digest, idle).await?;
        after_blob(Operation::PutBlob, fault).map(|()| deleted)
    }
}

fn before_blob(faults: &Faults, operation: Operation) -> Result<Option<Fault>, blobs::Error> {
    match faults.next(operation) {
        None => Ok(None),
        Some(Fault::LostAfter) => Ok(Some(Fault::LostAfter)),
        Some(Fault::Full) => Err(blobs::Error::Full(cause(operation, Fault::Full))),
        Some(fault @ (Fault::Unavailable | Fault::Conflict | Fault::Damaged)) => {
            Err(blobs::Error::Unavailable(cause(operation, fault)))
        }
    }
}

fn after_blob(operation: Operation, fault: Option<Fault>) -> Result<(), blobs::Error> {
    fault.map_or(Ok(()), |fault| Err(blobs::Error::Unavailable(cause(operation, fault))))
}

#[cfg(test)]
mod tests {
    use base::TenantId;
    use ports::store::{Expect, Table};

    use super::*;
    use crate::memory::{MemoryBlobs, MemoryStore};

    fn key() -> Key {
        Key::new(&TenantId::local(), Table::Run, "a")
    }

    fn put(value: &[u8]) -> Batch {
        Batch::default().put(key(), value.to_vec(), Expect::Any)
    }

    #[tokio::test]
    async fn without_faults_the_wrappers_conform() {
        let make_store = async || Arc::new(FaultyStore::new(Arc::new(MemoryStore::new()), &Faults::new()));
        crate::conformance::store(make_store).await;
        crate::conformance::indexes(make_store).await;
        crate::conformance::blob_rows(make_store).await;
        crate::conformance::blobs(async || Arc::new(FaultyBlobs::new(Arc::new(MemoryBlobs::new()), &Faults::new())))
            .await;
    }

    #[tokio::test]
    async fn only_the_chosen_call_fails_and_it_changes_nothing() {
        let faults = Faults::new();
        let store = FaultyStore::new(Arc::new(MemoryStore::new()), &faults);
        store.commit(put(b"1")).await.unwrap();
        faults.fail(Operation::Commit, 2, Fault::Full);
        store.commit(put(b"2")).await.unwrap();
        assert!(matches!(store.commit(put(b"3")).await, Err(store::Error::Full(_))));
        assert_eq!(store.get(&key()).await.unwrap().unwrap(), Row { version: 2, value: b"2".to_vec() });
        store.commit(put(b"4")).await.unwrap();
        assert_eq!(faults.calls(Operation::Commit), 4);
        assert_eq!(faults.calls(Operation::Get), 1);
        assert_eq!(store.inner().rows().len(), 1);
    }

    #[tokio::test]
    async fn the_operation_of_a_lost_answer_has_happened() {
        let faults = Faults::new();
        let store = FaultyStore::new(Arc::new(MemoryStore::new()), &faults);
        faults.fail(Operation::Commit, 1, Fault::LostAfter);
        assert!(matches!(store.commit(put(b"1")).await, Err(store::Error::Unavailable(_))));
        assert_eq!(store.get(&key()).await.unwrap().unwrap().value, b"1");

        let blobs = FaultyBlobs::new(Arc::new(MemoryBlobs::new()), &faults);
        faults.fail(Operation::PutBlob, 1, Fault::LostAfter);
        assert!(matches!(blobs.put(b"x").await, Err(blobs::Error::Unavailable(_))));
        assert_eq!(blobs.inner().digests(), [Digest::of(b"x")]);
    }

    #[tokio::test]
    async fn an_injected_conflict_names_the_first_key() {
        let faults = Faults::new();
        let store = FaultyStore::new(Arc::new(MemoryStore::new()), &faults);
        faults.fail(Operation::Commit, 1, Fault::Conflict);
        assert!(matches!(store.commit(put(b"1")).await, Err(store::Error::Conflict(k)) if k == key()));
        assert!(store.inner().rows().is_empty());
    }

    #[tokio::test]
    async fn every_call_fails_until_the_faults_are_removed() {
        let faults = Faults::new();
        let store = FaultyStore::new(Arc::new(MemoryStore::new()), &faults);
        let blobs = FaultyBlobs::new(Arc::new(MemoryBlobs::new()), &faults);
        faults.fail_everything(Fault::Unavailable);
        for _ in 0..3 {
            assert!(store.ping().await.is_err());
            assert!(store.commit(put(b"1")).await.is_err());
            assert!(blobs.put(b"1").await.is_err());
            assert!(blobs.get(&Digest::of(b"1")).await.is_err());
        }
        faults.heal();
        store.ping().await.unwrap();
        store.commit(put(b"1")).await.unwrap();
        blobs.put(b"1").await.unwrap();
    }
}
