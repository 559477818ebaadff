//! Tests of removals of S3 blobs: a removal concurrent with a `put` of the same blob, and markers that killed processes
//! left.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base::Digest;
use ports::Blobs;
use ports::blobs::Error;

use super::server::{Fault, Storage};

const HOUR: Duration = Duration::from_secs(3_600);

/// Sets the date of an object to `age` before now.
fn make_old(storage: &Storage, key: &str, age: Duration) {
    let file = File::options().write(true).open(storage.path(key)).unwrap();
    file.set_modified(SystemTime::now() - age).unwrap();
}

/// Writes a marker as a removal would, and returns its key.
fn write_marker(storage: &Storage, digest: &Digest, id: &str) -> String {
    let key = format!("a/removing/{digest}/{id}");
    std::fs::create_dir_all(storage.path(&key).parent().unwrap()).unwrap();
    std::fs::write(storage.path(&key), b"").unwrap();
    key
}

#[tokio::test]
async fn only_a_blob_that_is_old_by_the_storages_dates_is_deleted() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let digest = blobs.put(b"old").await.unwrap();
    assert!(!blobs.delete(&digest, HOUR).await.unwrap());
    make_old(&storage, &format!("a/{digest}"), 2 * HOUR);
    assert!(blobs.list(None, 1).await.unwrap()[0].idle >= HOUR);
    assert!(blobs.delete(&digest, HOUR).await.unwrap());
    assert!(matches!(blobs.get(&digest).await, Err(Error::Missing(_))));
    assert_eq!(blobs.list(None, 10).await.unwrap(), [], "a marker is not listed as a blob");
    let digest = blobs.put(b"renewed").await.unwrap();
    make_old(&storage, &format!("a/{digest}"), 2 * HOUR);
    blobs.put(b"renewed").await.unwrap();
    assert!(!blobs.delete(&digest, HOUR).await.unwrap(), "a second put makes the blob young");
}

#[tokio::test]
async fn a_put_waits_until_a_removal_of_the_same_blob_has_ended() {
    let storage = Storage::start().await;
    let blobs = Arc::new(storage.blobs("s3://heaps/a"));
    let digest = Digest::of(b"contended");
    let marker = write_marker(&storage, &digest, "someone");
    let put = tokio::spawn({
        let blobs = blobs.clone();
        async move { blobs.put(b"contended").await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!put.is_finished(), "the blob may be deleted at any moment");
    // The other process deletes the blob and then the marker.
    std::fs::remove_file(storage.path(&format!("a/{digest}"))).unwrap();
    std::fs::remove_file(storage.path(&marker)).unwrap();
    assert_eq!(put.await.unwrap().unwrap(), digest);
    assert_eq!(blobs.get(&digest).await.unwrap(), b"contended");
}

#[tokio::test]
async fn an_abandoned_marker_does_not_stop_a_put() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let digest = Digest::of(b"x");
    let marker = write_marker(&storage, &digest, "dead");
    make_old(&storage, &marker, HOUR);
    assert_eq!(blobs.put(b"x").await.unwrap(), digest);
    assert!(!storage.path(&marker).exists());
}

#[tokio::test]
async fn a_storage_that_does_not_keep_the_marker_deletes_nothing() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let digest = blobs.put(b"x").await.unwrap();
    storage.inject("PUT", Fault::Swallow, 1);
    assert!(blobs.delete(&digest, Duration::ZERO).await.is_err());
    assert_eq!(blobs.get(&digest).await.unwrap(), b"x");
}

/// Runs a removal and a `put` of the same blob in many orders. In each order the blob exists after the `put` has
/// returned.
#[tokio::test(flavor = "multi_thread")]
async fn a_put_wins_over_a_concurrent_removal() {
    let storage = Arc::new(Storage::start().await);
    let ours = storage.blobs("s3://heaps/a");
    let theirs = Arc::new(storage.blobs("s3://heaps/a"));
    let digest = ours.put(b"contended").await.unwrap();
    let mut removed = 0;
    for round in 0..60u64 {
        make_old(&storage, &format!("a/{digest}"), 2 * HOUR);
        // The delays differ from round to round, so that the requests of the two interleave in many orders.
        storage.inject("HEAD", Fault::Slow(Duration::from_millis(round % 7)), 3);
        storage.inject("DELETE", Fault::Slow(Duration::from_millis(round % 11)), 1);
        let removing = tokio::spawn({
            let theirs = theirs.clone();
            async move { theirs.delete(&digest, HOUR).await.unwrap() }
        });
        tokio::time::sleep(Duration::from_millis(round % 13)).await;
        ours.put(b"contended").await.unwrap();
        assert_eq!(ours.get(&digest).await.unwrap(), b"contended", "in round {round}");
        removed += usize::from(removing.await.unwrap());
        assert_eq!(ours.get(&digest).await.unwrap(), b"contended", "after round {round}");
        storage.clear_faults();
    }
    assert!(removed > 0, "no removal happened during a put");
}
