//! A blob that is removed and put at the same moment, and what killed processes leave of that.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base::Digest;
use ports::Blobs;
use ports::blobs::Error;

use super::server::{Fault, Storage};

const HOUR: Duration = Duration::from_secs(3_600);

fn make_old(storage: &Storage, key: &str, by: Duration) {
    let file = File::options().write(true).open(storage.path(key)).unwrap();
    file.set_modified(SystemTime::now() - by).unwrap();
}

fn say(storage: &Storage, digest: &Digest, word: &str) -> String {
    let key = format!("a/removing/{digest}/{word}");
    std::fs::create_dir_all(storage.path(&key).parent().unwrap()).unwrap();
    std::fs::write(storage.path(&key), b"").unwrap();
    key
}

#[tokio::test]
async fn only_what_is_old_by_the_storages_own_clock_goes() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let digest = blobs.put(b"old").await.unwrap();
    assert!(!blobs.delete(&digest, HOUR).await.unwrap());
    make_old(&storage, &format!("a/{digest}"), 2 * HOUR);
    assert!(blobs.list(None, 1).await.unwrap()[0].idle >= HOUR);
    assert!(blobs.delete(&digest, HOUR).await.unwrap());
    assert!(matches!(blobs.get(&digest).await, Err(Error::Missing(_))));
    assert_eq!(blobs.list(None, 10).await.unwrap(), [], "no word of it is left that looks like a blob");
    let digest = blobs.put(b"renewed").await.unwrap();
    make_old(&storage, &format!("a/{digest}"), 2 * HOUR);
    blobs.put(b"renewed").await.unwrap();
    assert!(!blobs.delete(&digest, HOUR).await.unwrap(), "put again, it is young again");
}

#[tokio::test]
async fn a_put_waits_for_whoever_removes_the_same() {
    let storage = Storage::start().await;
    let blobs = Arc::new(storage.blobs("s3://heaps/a"));
    let digest = Digest::of(b"contended");
    let word = say(&storage, &digest, "someone");
    let put = tokio::spawn({
        let blobs = blobs.clone();
        async move { blobs.put(b"contended").await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!put.is_finished(), "it could be removed any moment");
    // As the other one would: the blob, then the word.
    std::fs::remove_file(storage.path(&format!("a/{digest}"))).unwrap();
    std::fs::remove_file(storage.path(&word)).unwrap();
    assert_eq!(put.await.unwrap().unwrap(), digest);
    assert_eq!(blobs.get(&digest).await.unwrap(), b"contended");
}

#[tokio::test]
async fn the_word_of_a_process_that_died_stops_nobody() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let digest = Digest::of(b"x");
    let word = say(&storage, &digest, "dead");
    make_old(&storage, &word, HOUR);
    assert_eq!(blobs.put(b"x").await.unwrap(), digest);
    assert!(!storage.path(&word).exists());
}

#[tokio::test]
async fn a_storage_that_forgets_the_word_removes_nothing() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let digest = blobs.put(b"x").await.unwrap();
    storage.on("PUT", Fault::Swallow, 1);
    assert!(blobs.delete(&digest, Duration::ZERO).await.is_err());
    assert_eq!(blobs.get(&digest).await.unwrap(), b"x");
}

/// However the two meet: when a put has returned, the blob is there.
#[tokio::test(flavor = "multi_thread")]
async fn a_put_wins_over_a_removal_at_the_same_moment() {
    let storage = Arc::new(Storage::start().await);
    let (ours, theirs) = (storage.blobs("s3://heaps/a"), Arc::new(storage.blobs("s3://heaps/a")));
    let digest = ours.put(b"contended").await.unwrap();
    let mut removed = 0;
    for round in 0..60u64 {
        make_old(&storage, &format!("a/{digest}"), 2 * HOUR);
        // So that the requests of the two meet in every order.
        storage.on("HEAD", Fault::Slow(Duration::from_millis(round % 7)), 3);
        storage.on("DELETE", Fault::Slow(Duration::from_millis(round % 11)), 1);
        let removing = tokio::spawn({
            let theirs = theirs.clone();
            async move { theirs.delete(&digest, HOUR).await.unwrap() }
        });
        tokio::time::sleep(Duration::from_millis(round % 13)).await;
        ours.put(b"contended").await.unwrap();
        assert_eq!(ours.get(&digest).await.unwrap(), b"contended", "in round {round}");
        removed += usize::from(removing.await.unwrap());
        assert_eq!(ours.get(&digest).await.unwrap(), b"contended", "after round {round}");
        storage.all_well();
    }
    assert!(removed > 0, "the two never met");
}
