//! Storage that is slow, fails, breaks off, lies, is not there or does not let us in.
//! Each test: one wrong answer is survived where it can be, a lasting one is an error that says where and what, and afterwards
//! the same handle goes on.

use std::time::{Duration, Instant};

use base::Digest;
use ports::Blobs;
use ports::blobs::Error;
use store::blobs::s3::{Credentials, Options, S3Blobs};

use super::server::{Fault, KEY_ID, SECRET, Storage};

const FOR_EVER: usize = usize::MAX;

/// The code and the words of an error that names its place.
fn told<T: std::fmt::Debug>(answer: Result<T, Error>) -> (&'static str, String) {
    let error = answer.unwrap_err();
    let words = format!("{error} {error:?}");
    assert!(!words.contains(SECRET), "{words}");
    match error {
        Error::Remote(remote) => (remote.problem.code(), remote.to_string()),
        other => panic!("{other:?} has no place"),
    }
}

#[tokio::test]
async fn what_was_answered_but_not_kept_is_found_out() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    blobs.put(b"before").await.unwrap();
    for (fault, bytes) in [(Fault::Swallow, b"swallowed"), (Fault::KeepOther, b"exchanged")] {
        let digest = Digest::of(bytes);
        storage.on("PUT", fault.clone(), FOR_EVER);
        let (code, said) = told(blobs.put(bytes).await);
        assert_eq!(code, "blobs_not_kept", "{fault:?}");
        assert!(said.starts_with(&format!("s3://heaps/a/{digest}: ")), "{said}");
        storage.on("PUT", fault, 1);
        assert_eq!(blobs.put(bytes).await.unwrap(), digest, "sent again, it is kept");
        assert_eq!(std::fs::read(storage.path(&format!("a/{digest}"))).unwrap(), bytes);
        storage.all_well();
        assert_eq!(blobs.get(&digest).await.unwrap(), bytes);
    }
}

#[tokio::test]
async fn bytes_that_are_not_the_ones_asked_for_never_leave() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let digest = blobs.put(b"precious").await.unwrap();
    storage.on("GET", Fault::Flip, 1);
    assert_eq!(blobs.get(&digest).await.unwrap(), b"precious", "asked again, they came whole");
    storage.on("GET", Fault::Flip, FOR_EVER);
    assert!(matches!(blobs.get(&digest).await, Err(Error::Damaged(d)) if d == digest));
    storage.all_well();
    std::fs::write(storage.path(&format!("a/{digest}")), b"precioux").unwrap();
    assert!(matches!(blobs.get(&digest).await, Err(Error::Damaged(d)) if d == digest));
    blobs.put(b"precious").await.unwrap();
    assert_eq!(blobs.get(&digest).await.unwrap(), b"precious", "a put mends it");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let bytes = vec![7u8; 300_000];
    let digest = blobs.put(&bytes).await.unwrap();
    storage.on("GET", Fault::Truncate, 1);
    assert!(blobs.get(&digest).await.unwrap() == bytes);
    storage.on("GET", Fault::Truncate, FOR_EVER);
    let (code, said) = told(blobs.get(&digest).await);
    assert_eq!(code, "blobs_unreachable");
    assert!(said.contains(&digest.to_string()), "{said}");
    let (code, _) = told(blobs.put(b"new").await);
    assert_eq!(code, "blobs_unreachable", "what cannot be read back is not taken for kept");
    storage.all_well();
    blobs.put(b"new").await.unwrap();
}

#[tokio::test]
async fn failures_are_tried_again_a_few_times() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let digest = blobs.put(b"there").await.unwrap();
    for fault in [
        Fault::Refuse(500, "InternalError"),
        Fault::Refuse(503, "SlowDown"),
        Fault::Refuse(400, "BadDigest"),
        Fault::Reset,
    ] {
        for kind in ["PUT", "GET", "HEAD", "LIST", "DELETE"] {
            // The answer to a HEAD has no body, and so no code.
            if kind != "HEAD" || !matches!(fault, Fault::Refuse(400, _)) {
                storage.on(kind, fault.clone(), 2);
            }
        }
        blobs.put(b"another").await.unwrap();
        blobs.list(None, 10).await.unwrap();
        assert!(blobs.delete(&Digest::of(b"another"), Duration::ZERO).await.unwrap(), "{fault:?}");
        for kind in ["PUT", "GET", "LIST"] {
            storage.on(kind, fault.clone(), FOR_EVER);
        }
        storage.seen("PUT");
        let wanted = match fault {
            Fault::Reset => "blobs_unreachable",
            Fault::Refuse(400, _) => "blobs_refused",
            _ => "blobs_failing",
        };
        assert_eq!(told(blobs.put(b"more").await).0, wanted, "{fault:?}");
        assert_eq!(storage.seen("PUT"), 4, "once, and three times again");
        assert_eq!(told(blobs.get(&digest).await).0, wanted, "{fault:?}");
        assert_eq!(told(blobs.list(None, 1).await).0, wanted, "{fault:?}");
        storage.all_well();
        assert_eq!(blobs.get(&digest).await.unwrap(), b"there", "when the fault is gone, the same handle goes on");
    }
}

#[tokio::test]
async fn a_slow_storage_is_waited_for_and_then_given_up() {
    let storage = Storage::start().await;
    let patient = storage.blobs("s3://heaps/a");
    let digest = patient.put(b"there").await.unwrap();
    storage.on("GET", Fault::Slow(Duration::from_millis(300)), 1);
    assert_eq!(patient.get(&digest).await.unwrap(), b"there");
    let hasty =
        S3Blobs::new(&Options { timeout: Duration::from_millis(200), ..storage.options("s3://heaps/a") }).unwrap();
    for kind in ["PUT", "GET", "LIST"] {
        storage.on(kind, Fault::Slow(Duration::from_secs(60)), FOR_EVER);
    }
    let begun = Instant::now();
    let (code, said) = told(hasty.put(b"x").await);
    assert!(code == "blobs_slow" && said.contains("200 ms") && said.contains("timeout_ms"), "{code} {said}");
    assert_eq!(told(hasty.get(&digest).await).0, "blobs_slow");
    assert_eq!(told(hasty.list(None, 1).await).0, "blobs_slow");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    storage.all_well();
    hasty.put(b"x").await.unwrap();
}

#[tokio::test]
async fn a_storage_that_went_and_came_back_is_used_again() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let digest = blobs.put(b"there").await.unwrap();
    storage.stop().await;
    let (code, said) = told(blobs.put(b"x").await);
    assert!(code == "blobs_unreachable" && said.contains("s3://heaps/a/"), "{code} {said}");
    assert_eq!(told(blobs.get(&digest).await).0, "blobs_unreachable");
    assert_eq!(told(blobs.delete(&digest, Duration::ZERO).await).0, "blobs_unreachable");
    storage.start_again().await;
    assert_eq!(blobs.get(&digest).await.unwrap(), b"there");
    blobs.put(b"x").await.unwrap();
}

#[tokio::test]
async fn a_bucket_that_is_not_there_is_not_taken_for_an_empty_one() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://nowhere/a");
    let (code, said) = told(blobs.list(None, 1).await);
    assert!(code == "blobs_no_bucket" && said.starts_with("s3://nowhere/a/"), "{code} {said}");
    // The server itself makes a bucket for whoever puts into it.
    storage.on("PUT", Fault::Refuse(404, "NoSuchBucket"), 1);
    assert_eq!(told(blobs.put(b"x").await).0, "blobs_no_bucket");
    storage.on("GET", Fault::Refuse(404, "NoSuchBucket"), 1);
    assert_eq!(told(storage.blobs("s3://heaps").get(&Digest::of(b"x")).await).0, "blobs_no_bucket");
}

#[tokio::test]
async fn who_is_not_let_in_is_told_so() {
    let storage = Storage::start().await;
    for (id, secret) in [(KEY_ID, "wrong"), ("nobody", SECRET)] {
        let credentials = Credentials::Keys { id: id.to_owned(), secret: base::Secret::new(secret), token: None };
        let blobs = S3Blobs::new(&Options { credentials, ..storage.options("s3://heaps/a") }).unwrap();
        storage.seen("GET");
        let (code, said) = told(blobs.put(b"x").await);
        assert!(code == "blobs_denied" && said.contains("access key"), "{code} {said}");
        assert_eq!((storage.seen("GET"), storage.seen("PUT")), (1, 0), "it is not asked again");
    }
    let blobs = storage.blobs("s3://heaps/a");
    assert!(!format!("{blobs:?}").contains(SECRET));
    for (status, code) in
        [(403, "AccessDenied"), (403, ""), (401, ""), (403, "RequestTimeTooSkewed"), (400, "ExpiredToken")]
    {
        storage.on("GET", Fault::Refuse(status, code), 1);
        assert_eq!(told(blobs.get(&Digest::of(b"x")).await).0, "blobs_denied", "{status} {code}");
    }
}

#[tokio::test]
async fn a_prefix_is_one_databases() {
    let storage = Storage::start().await;
    let first = storage.blobs("s3://heaps/a");
    let digest = first.put(b"first").await.unwrap();
    let other = Options { owner: "another database".to_owned(), ..storage.options("s3://heaps/a") };
    let second = S3Blobs::new(&other).unwrap();
    for answer in [second.put(b"second").await.map(|_| ()), second.delete(&digest, Duration::ZERO).await.map(|_| ())] {
        let (code, said) = told(answer);
        assert!(code == "blobs_taken" && said.starts_with("s3://heaps/a/owner: "), "{code} {said}");
    }
    assert_eq!(storage.blobs("s3://heaps/a").get(&digest).await.unwrap(), b"first", "the same database, again");
    let elsewhere =
        S3Blobs::new(&Options { owner: "another database".to_owned(), ..storage.options("s3://heaps/b") }).unwrap();
    elsewhere.put(b"second").await.unwrap();
    assert_eq!(first.list(None, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_is_no_s3_is_not_taken_for_one() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    blobs.put(b"before").await.unwrap();
    storage.on("LIST", Fault::Foreign, 1);
    assert_eq!(told(blobs.list(None, 1).await).0, "blobs_foreign");
    for (status, code) in [(301, "PermanentRedirect"), (307, ""), (400, "InvalidRequest"), (405, "MethodNotAllowed")] {
        storage.on("PUT", Fault::Refuse(status, code), 1);
        let (code, said) = told(blobs.put(b"x").await);
        assert!(code == "blobs_refused" && said.contains("region"), "{status} {code} {said}");
    }
    storage.on("PUT", Fault::Foreign, FOR_EVER);
    assert!(blobs.put(b"x").await.is_err(), "a proxy's page is no receipt");
}
