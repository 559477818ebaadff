//! The conformance suite of the port `Blobs`: checks that every implementation must pass.
//! Invariant: each check starts with new, empty storage, so no check depends on another.

use std::sync::Arc;
use std::time::Duration;

use base::Digest;
use ports::Blobs;
use ports::blobs::Error;

/// Runs every check, and panics at the first check that fails. Each call of `make` must return new, empty storage.
pub async fn blobs<B: Blobs + ?Sized + 'static>(make: impl AsyncFn() -> Arc<B>) {
    round_trips(&*make().await).await;
    missing_blobs_are_missing(&*make().await).await;
    concurrent_puts_are_one_blob(make().await).await;
    lists_are_in_the_order_of_digests(&*make().await).await;
    a_delete_removes_only_old_blobs(&*make().await).await;
    a_put_wins_over_a_delete(make().await).await;
}

async fn round_trips<B: Blobs + ?Sized>(blobs: &B) {
    let large: Vec<u8> = (0..5 * 1024 * 1024u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let all: [&[u8]; 5] = [b"", b"\0", b"plain", &[0xff, 0, 0xfe, b'\n', b'\r'], &large];
    for bytes in all {
        let digest = blobs.put(bytes).await.expect("put");
        assert_eq!(digest, Digest::of(bytes), "a blob's name is the digest of its bytes");
        assert_eq!(blobs.put(bytes).await.expect("second put"), digest, "equal bytes are one blob");
    }
    for bytes in all {
        let read = blobs.get(&Digest::of(bytes)).await.expect("get");
        assert!(read == bytes, "{} bytes came back as {} other bytes", bytes.len(), read.len());
    }
}

async fn missing_blobs_are_missing<B: Blobs + ?Sized>(blobs: &B) {
    blobs.put(b"another").await.expect("put");
    let digest = Digest::of(b"never put");
    let answer = blobs.get(&digest).await;
    assert!(matches!(answer, Err(Error::Missing(d)) if d == digest), "a blob never put gave {answer:?}");
}

async fn lists_are_in_the_order_of_digests<B: Blobs + ?Sized>(blobs: &B) {
    assert_eq!(blobs.list(None, 10).await.expect("list"), []);
    let mut expected = Vec::new();
    for n in 0..300u32 {
        let bytes = vec![7u8; n as usize];
        expected.push((blobs.put(&bytes).await.expect("put"), u64::from(n)));
    }
    expected.sort();
    let mut listed = Vec::new();
    let mut after = None;
    loop {
        let page = blobs.list(after.as_ref(), 7).await.expect("list");
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 7);
        after = Some(last.digest);
        listed.extend(page.iter().map(|stored| (stored.digest, stored.bytes)));
    }
    assert_eq!(listed, expected);
    assert_eq!(blobs.list(None, 0).await.expect("list"), []);
}

async fn a_delete_removes_only_old_blobs<B: Blobs + ?Sized>(blobs: &B) {
    let digest = blobs.put(b"a blob").await.expect("put");
    assert!(!blobs.delete(&digest, Duration::from_secs(3600)).await.expect("delete"), "it was put just now");
    assert_eq!(blobs.get(&digest).await.expect("get"), b"a blob");
    assert!(blobs.delete(&digest, Duration::ZERO).await.expect("delete"));
    assert!(matches!(blobs.get(&digest).await, Err(Error::Missing(_))));
    assert!(!blobs.delete(&digest, Duration::ZERO).await.expect("delete"), "it is gone already");
    blobs.put(b"a blob").await.expect("put again");
    assert_eq!(blobs.get(&digest).await.expect("get"), b"a blob", "a deleted blob can be put again");
}

/// A delete with an age never removes a blob that was just put, even if both run at the same time.
async fn a_put_wins_over_a_delete<B: Blobs + ?Sized + 'static>(blobs: Arc<B>) {
    let digest = Digest::of(b"contended");
    let deleter = {
        let blobs = Arc::clone(&blobs);
        tokio::spawn(async move {
            for _ in 0..200 {
                blobs.delete(&digest, Duration::from_secs(60)).await.expect("delete");
            }
        })
    };
    for _ in 0..200 {
        blobs.put(b"contended").await.expect("put");
        assert_eq!(blobs.get(&digest).await.expect("a blob that was just put"), b"contended");
    }
    deleter.await.expect("the deleter");
}

async fn concurrent_puts_are_one_blob<B: Blobs + ?Sized + 'static>(blobs: Arc<B>) {
    let bytes = Arc::new(vec![7u8; 100_000]);
    let tasks: Vec<_> = (0..16)
        .map(|_| {
            let (blobs, bytes) = (Arc::clone(&blobs), Arc::clone(&bytes));
            tokio::spawn(async move {
                let digest = blobs.put(&bytes).await.expect("concurrent put");
                assert!(blobs.get(&digest).await.expect("get after put") == *bytes);
                digest
            })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.expect("a concurrent put"), Digest::of(&bytes));
    }
}
