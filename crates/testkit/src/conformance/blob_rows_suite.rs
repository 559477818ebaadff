//! The conformance suite of the rows of blobs: touches, candidates of the collector, and deletions against puts.
//! Invariant: each check starts with a new, empty store, so no check depends on another.

use std::sync::Arc;
use std::time::Duration;

use base::{Digest, Timestamp};
use ports::Store;
use ports::blob_rows::{BlobRow, KnownBlob, begin_deletion, end_deletion, key, read, touch, untouched_since};
use ports::store::{Error, Expect};

const FRESH: Duration = Duration::from_millis(100);

/// Runs every check, and panics at the first check that fails. Each call of `make` must return a new, empty store.
pub async fn blob_rows<S: Store + 'static>(make: impl AsyncFn() -> Arc<S>) {
    a_touch_is_stored_unless_it_is_fresh(&*make().await).await;
    candidates_are_the_longest_untouched_blobs(&*make().await).await;
    a_touch_wins_over_a_deletion_that_read_before(&*make().await).await;
    an_interrupted_deletion_is_a_candidate_again(&*make().await).await;
    concurrent_touches_are_one_row(make().await).await;
}

fn at(ms: i64) -> Timestamp {
    Timestamp(1_767_225_600_000 + ms)
}

fn digest(number: u8) -> Digest {
    Digest::of(&[number])
}

async fn touch_at(store: &dyn Store, number: u8, ms: i64) -> BlobRow {
    touch(store, &digest(number), u64::from(number), at(ms), FRESH).await.expect("a touch")
}

async fn candidates(store: &dyn Store, before: i64, limit: usize) -> Vec<KnownBlob> {
    let known = untouched_since(store, at(before), None, limit).await.expect("a list of blobs");
    assert!(known.len() <= limit);
    known
}

async fn digests(store: &dyn Store, before: i64) -> Vec<Digest> {
    candidates(store, before, 100).await.into_iter().map(|known| known.digest).collect()
}

fn is_conflict(result: &Result<(), Error>) -> bool {
    matches!(result, Err(Error::Conflict(_)))
}

async fn a_touch_is_stored_unless_it_is_fresh(store: &dyn Store) {
    assert_eq!(read(store, &digest(1)).await.expect("a read"), None);
    let first = BlobRow { bytes: 1, touched: at(0), generation: 1, deleting: false };
    assert_eq!(touch_at(store, 1, 0).await, first);
    assert_eq!(touch_at(store, 1, 99).await, first, "a second touch within the time writes nothing");
    assert_eq!(read(store, &digest(1)).await.expect("a read"), Some((first, 1)));
    let later = BlobRow { touched: at(100), ..first };
    assert_eq!(touch_at(store, 1, 100).await, later);
    assert_eq!(touch_at(store, 1, -5_000).await, later, "a clock that went back makes no blob older");
    assert_eq!(read(store, &digest(1)).await.expect("a read"), Some((later, 2)));
}

async fn candidates_are_the_longest_untouched_blobs(store: &dyn Store) {
    for (number, ms) in [(1, 300), (2, 100), (3, 200), (4, 400)] {
        touch_at(store, number, ms).await;
    }
    assert_eq!(digests(store, 400).await, [digest(2), digest(3), digest(1)], "a blob at the bound is not before it");
    touch_at(store, 2, 500).await;
    assert_eq!(digests(store, 1000).await, [digest(3), digest(1), digest(4), digest(2)]);
    assert_eq!(candidates(store, 1000, 0).await, []);
    let mut pages = Vec::new();
    let mut after = None;
    loop {
        let page = untouched_since(store, at(1000), after, 3).await.expect("a page");
        let Some(last) = page.last() else { break };
        after = Some(last.position.clone());
        pages.extend(page.into_iter().map(|known| (known.digest, known.row.bytes)));
    }
    assert_eq!(pages, [3, 1, 4, 2].map(|number| (digest(number), u64::from(number))));
}

async fn a_touch_wins_over_a_deletion_that_read_before(store: &dyn Store) {
    touch_at(store, 1, 0).await;
    let known = candidates(store, 1000, 9).await.remove(0);
    touch_at(store, 1, 500).await;
    assert!(is_conflict(&store.commit(begin_deletion(&known)).await), "the blob was touched after it was read");
    let known = candidates(store, 1000, 9).await.remove(0);
    // The collector's decision may depend on other rows, which it adds to the batch.
    let guarded = begin_deletion(&known).check(key(&digest(9)), Expect::Version(1));
    assert!(is_conflict(&store.commit(guarded).await));
    store.commit(begin_deletion(&known)).await.expect("the beginning of a deletion");
    assert!(is_conflict(&store.commit(begin_deletion(&known)).await), "two collectors cannot begin it");
    let again = touch_at(store, 1, 501).await;
    assert_eq!(again, BlobRow { bytes: 1, touched: at(501), generation: 2, deleting: false });
    assert!(is_conflict(&store.commit(end_deletion(&known)).await), "the blob was stored anew");
    assert_eq!(read(store, &digest(1)).await.expect("a read"), Some((again, 4)));
    let known = candidates(store, 1000, 9).await.remove(0);
    store.commit(begin_deletion(&known)).await.expect("the beginning of a deletion");
    store.commit(end_deletion(&known)).await.expect("the end of a deletion");
    assert_eq!(candidates(store, 1000, 9).await, []);
    assert_eq!(touch_at(store, 1, 600).await.generation, 1, "a blob without a row is a new one");
}

async fn an_interrupted_deletion_is_a_candidate_again(store: &dyn Store) {
    touch_at(store, 1, 0).await;
    let known = candidates(store, 1000, 9).await.remove(0);
    store.commit(begin_deletion(&known)).await.expect("the beginning of a deletion");
    let found = candidates(store, 1000, 9).await;
    assert!(found.len() == 1 && found[0].row.deleting, "{found:?}");
    store.commit(begin_deletion(&found[0])).await.expect("the deletion begins again");
    assert!(is_conflict(&store.commit(end_deletion(&known)).await), "the first deletion is not the one under way");
    store.commit(end_deletion(&found[0])).await.expect("the end of a deletion");
    assert_eq!(read(store, &digest(1)).await.expect("a read"), None);
}

async fn concurrent_touches_are_one_row<S: Store + 'static>(store: Arc<S>) {
    let tasks: Vec<_> = (0..16)
        .map(|task| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                for round in 0..10 {
                    touch_at(&*store, 1, round * 1000 + task).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.expect("a task that touches");
    }
    let known = candidates(&*store, 1_000_000, 9).await;
    assert_eq!(known.len(), 1);
    assert!(known[0].row.touched >= at(9_000) && known[0].row.generation == 1, "{known:?}");
}
