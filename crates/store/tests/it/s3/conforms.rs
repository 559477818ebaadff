//! What every storage of blobs must do, done by S3, with and without copies; and that nothing else of a bucket is touched.

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
    let made = AtomicUsize::new(0);
    testkit::conformance::blobs(async || {
        let number = made.fetch_add(1, Ordering::Relaxed);
        // Under a prefix, and in a bucket of its own.
        let location =
            if number % 2 == 0 { format!("s3://{BUCKET}/a/{number}") } else { format!("s3://bucket-{number}") };
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
    let made = AtomicUsize::new(0);
    testkit::conformance::blobs(async || {
        let number = made.fetch_add(1, Ordering::Relaxed);
        let far = Arc::new(storage.blobs(&format!("s3://{BUCKET}/{number}")));
        // All of them in one folder, half of them with hardly any room.
        let most = if number % 2 == 0 { 1 << 30 } else { 10_000 };
        Arc::new(CachedBlobs::open(far, copies.path(), most).unwrap())
    })
    .await;
}

#[tokio::test]
async fn only_our_own_objects_are_listed_and_removed() {
    let storage = Storage::start().await;
    let (ours, others) = (storage.blobs("s3://heaps/ours"), storage.blobs("s3://heaps/others"));
    let digest = ours.put(b"ours").await.unwrap();
    let foreign = others.put(b"another tenant's").await.unwrap();
    for n in 0..1_500 {
        std::fs::write(storage.path(&format!("others/{n}")), b"").unwrap();
    }
    for name in ["readme.txt", "ABCD", &"g".repeat(64)] {
        std::fs::write(storage.path(&format!("ours/{name}")), b"x").unwrap();
    }
    // As another prefix begins like ours.
    std::fs::create_dir(storage.path("ours-too")).unwrap();
    std::fs::write(storage.path(&format!("ours-too/{foreign}")), b"x").unwrap();
    storage.seen("LIST");
    let found = ours.list(None, 1_000).await.unwrap();
    assert_eq!(found.iter().map(|stored| (stored.digest, stored.bytes)).collect::<Vec<_>>(), [(digest, 4)]);
    assert_eq!(storage.seen("LIST"), 1, "the rest of the bucket is not walked");
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

/// Not asserted anywhere: `cargo nextest run -p store --test it --run-ignored only --no-capture costs` prints what a call costs
/// over loopback.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement"]
async fn costs() {
    let storage = Storage::start().await;
    let copies = tempfile::tempdir().unwrap();
    let far = Arc::new(storage.blobs("s3://heaps/costs"));
    let near = CachedBlobs::open(far.clone(), copies.path(), 1 << 30).unwrap();
    for (size, rounds) in [(70_000, 200u32), (2_500_000, 40)] {
        let all: Vec<Vec<u8>> =
            (0..rounds).map(|n| (0..size).map(|at: u32| (at ^ n).to_le_bytes()[0]).collect()).collect();
        let mut lines = Vec::new();
        let begun = std::time::Instant::now();
        for bytes in &all {
            far.put(bytes).await.unwrap();
        }
        lines.push(("put", begun.elapsed()));
        let begun = std::time::Instant::now();
        for bytes in &all {
            far.get(&Digest::of(bytes)).await.unwrap();
        }
        lines.push(("get", begun.elapsed()));
        for bytes in &all {
            near.get(&Digest::of(bytes)).await.unwrap();
        }
        let begun = std::time::Instant::now();
        for bytes in &all {
            near.get(&Digest::of(bytes)).await.unwrap();
        }
        lines.push(("get of a copy", begun.elapsed()));
        let begun = std::time::Instant::now();
        for bytes in &all {
            far.delete(&Digest::of(bytes), Duration::ZERO).await.unwrap();
        }
        lines.push(("delete", begun.elapsed()));
        for (what, took) in lines {
            eprintln!("{size:>9} bytes  {what:<14} {:>8.2} ms", took.as_secs_f64() * 1e3 / f64::from(rounds));
        }
    }
}
