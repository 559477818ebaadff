//! The conformance suite for blobs in S3, with and without copies, and checks that other objects of a bucket are not touched.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base::Digest;
use ports::Blobs;
use store::blobs::CachedBlobs;

use super::server::{BUCKET, Storage};

#[tokio::test(flavor = "multi_thread")]
async fn s3_conforms() {
    let storage = Storage::start().await;
    let next_location = AtomicUsize::new(0);
    testkit::conformance::blobs(async || {
        let number = next_location.fetch_add(1, Ordering::Relaxed);
        // Every second location is a bucket of its own, and the others are prefixes.
        let location = if number.is_multiple_of(2) {
            format!("s3://{BUCKET}/a/{number}")
        } else {
            format!("s3://bucket-{number}")
        };
        if number % 2 == 1 {
            std::fs::create_dir(storage.root.path().join(format!("bucket-{number}"))).unwrap();
        }
        Arc::new(storage.blobs(&location))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn s3_with_copies_conforms() {
    let storage = Storage::start().await;
    let copies = tempfile::tempdir().unwrap();
    let next_prefix = AtomicUsize::new(0);
    testkit::conformance::blobs(async || {
        let number = next_prefix.fetch_add(1, Ordering::Relaxed);
        let blobs = Arc::new(storage.blobs(&format!("s3://{BUCKET}/{number}")));
        // All caches share one folder, and every second one has hardly any room.
        let max_bytes = if number.is_multiple_of(2) { 1 << 30 } else { 10_000 };
        Arc::new(CachedBlobs::open(blobs, copies.path(), max_bytes).unwrap())
    })
    .await;
}

#[tokio::test]
async fn only_blobs_under_the_prefix_are_listed_and_deleted() {
    let storage = Storage::start().await;
    let ours = storage.blobs("s3://heaps/ours");
    let others = storage.blobs("s3://heaps/others");
    let digest = ours.put(b"ours").await.unwrap();
    let foreign = others.put(b"another tenant's").await.unwrap();
    for n in 0..1_500 {
        std::fs::write(storage.path(&format!("others/{n}")), b"").unwrap();
    }
    for name in ["readme.txt", "ABCD", &"g".repeat(64)] {
        std::fs::write(storage.path(&format!("ours/{name}")), b"x").unwrap();
    }
    // The name of another prefix begins with the name of this one.
    std::fs::create_dir(storage.path("ours-too")).unwrap();
    std::fs::write(storage.path(&format!("ours-too/{foreign}")), b"x").unwrap();
    storage.take_request_count("LIST");
    let listed = ours.list(None, 1_000).await.unwrap();
    assert_eq!(listed.iter().map(|blob| (blob.digest, blob.bytes)).collect::<Vec<_>>(), [(digest, 4)]);
    assert_eq!(storage.take_request_count("LIST"), 1, "the rest of the bucket is not listed");
    assert!(!ours.delete(&foreign, Duration::ZERO).await.unwrap());
    assert_eq!(others.get(&foreign).await.unwrap(), b"another tenant's");
    assert_eq!(ours.list(Some(&digest), 10).await.unwrap(), []);
}

#[tokio::test]
async fn the_key_of_an_object_is_the_digest_under_the_prefix() {
    let storage = Storage::start().await;
    let digest = storage.blobs("s3://heaps/deep/down").put(b"bytes").await.unwrap();
    assert_eq!(std::fs::read(storage.path(&format!("deep/down/{digest}"))).unwrap(), b"bytes");
    let digest = storage.blobs("s3://heaps").put(b"more bytes").await.unwrap();
    assert_eq!(std::fs::read(storage.path(&digest.to_string())).unwrap(), b"more bytes");
    assert_eq!(digest, Digest::of(b"more bytes"));
}

/// Prints the duration of each call over loopback, and asserts nothing. Run it with
/// `cargo nextest run -p store --test it --run-ignored only --no-capture costs`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn costs() {
    let storage = Storage::start().await;
    let copies = tempfile::tempdir().unwrap();
    let blobs = Arc::new(storage.blobs("s3://heaps/costs"));
    let cached = CachedBlobs::open(blobs.clone(), copies.path(), 1 << 30).unwrap();
    for (size, rounds) in [(70_000, 200u32), (2_500_000, 40)] {
        let contents: Vec<Vec<u8>> =
            (0..rounds).map(|n| (0..size).map(|index: u32| (index ^ n).to_le_bytes()[0]).collect()).collect();
        let mut lines = Vec::new();
        let started = std::time::Instant::now();
        for bytes in &contents {
            blobs.put(bytes).await.unwrap();
        }
        lines.push(("put", started.elapsed()));
        let started = std::time::Instant::now();
        for bytes in &contents {
            blobs.get(&Digest::of(bytes)).await.unwrap();
        }
        lines.push(("get", started.elapsed()));
        for bytes in &contents {
            cached.get(&Digest::of(bytes)).await.unwrap();
        }
        let started = std::time::Instant::now();
        for bytes in &contents {
            cached.get(&Digest::of(bytes)).await.unwrap();
        }
        lines.push(("get of a copy", started.elapsed()));
        let started = std::time::Instant::now();
        for bytes in &contents {
            blobs.delete(&Digest::of(bytes), Duration::ZERO).await.unwrap();
        }
        lines.push(("delete", started.elapsed()));
        for (call, duration) in lines {
            eprintln!("{size:>9} bytes  {call:<14} {:>8.2} ms", duration.as_secs_f64() * 1e3 / f64::from(rounds));
        }
    }
}
