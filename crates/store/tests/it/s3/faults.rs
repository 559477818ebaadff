//! Tests with an S3 storage that is slow, unreachable or failing, breaks off answers, loses bytes, or refuses the
//! credentials.
//! Invariant: a single wrong answer is retried where a retry can help. A lasting fault is an error with an address and
//! a problem. The same `S3Blobs` value works again when the fault is gone.

use std::time::{Duration, Instant};

use base::Digest;
use ports::Blobs;
use ports::blobs::Error;
use store::blobs::s3::{Credentials, Options, S3Blobs};

use super::server::{Fault, KEY_ID, SECRET, Storage};

const ALWAYS: usize = usize::MAX;

/// Returns the code and the message of an error that names an address, after checking that no secret is in it.
fn code_and_message<T: std::fmt::Debug>(answer: Result<T, Error>) -> (&'static str, String) {
    let error = answer.unwrap_err();
    let printed = format!("{error} {error:?}");
    assert!(!printed.contains(SECRET), "{printed}");
    match error {
        Error::Remote(remote) => (remote.problem.code(), remote.to_string()),
        other => panic!("{other:?} names no address"),
    }
}

fn code_of<T: std::fmt::Debug>(answer: Result<T, Error>) -> &'static str {
    code_and_message(answer).0
}

#[tokio::test]
async fn an_upload_that_is_confirmed_but_not_kept_is_an_error() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    blobs.put(b"before").await.unwrap();
    for (fault, bytes) in [(Fault::Swallow, b"swallowed"), (Fault::KeepOther, b"exchanged")] {
        let digest = Digest::of(bytes);
        storage.inject("PUT", fault.clone(), ALWAYS);
        let (code, message) = code_and_message(blobs.put(bytes).await);
        assert_eq!(code, "blobs_not_kept", "{fault:?}");
        assert!(message.starts_with(&format!("s3://heaps/a/{digest}: ")), "{message}");
        storage.inject("PUT", fault, 1);
        assert_eq!(blobs.put(bytes).await.unwrap(), digest, "the second upload is kept");
        assert_eq!(std::fs::read(storage.path(&format!("a/{digest}"))).unwrap(), bytes);
        storage.clear_faults();
        assert_eq!(blobs.get(&digest).await.unwrap(), bytes);
    }
}

#[tokio::test]
async fn bytes_with_another_digest_are_never_returned() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let digest = blobs.put(b"precious").await.unwrap();
    storage.inject("GET", Fault::Flip, 1);
    assert_eq!(blobs.get(&digest).await.unwrap(), b"precious", "the second answer is intact");
    storage.inject("GET", Fault::Flip, ALWAYS);
    assert!(matches!(blobs.get(&digest).await, Err(Error::Damaged(d)) if d == digest));
    storage.clear_faults();
    std::fs::write(storage.path(&format!("a/{digest}")), b"precioux").unwrap();
    assert!(matches!(blobs.get(&digest).await, Err(Error::Damaged(d)) if d == digest));
    blobs.put(b"precious").await.unwrap();
    assert_eq!(blobs.get(&digest).await.unwrap(), b"precious", "a put replaces the damaged object");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_retried_and_then_an_error() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let bytes = vec![7u8; 300_000];
    let digest = blobs.put(&bytes).await.unwrap();
    storage.inject("GET", Fault::Truncate, 1);
    assert!(blobs.get(&digest).await.unwrap() == bytes);
    storage.inject("GET", Fault::Truncate, ALWAYS);
    let (code, message) = code_and_message(blobs.get(&digest).await);
    assert_eq!(code, "blobs_unreachable");
    assert!(message.contains(&digest.to_string()), "{message}");
    let (code, _) = code_and_message(blobs.put(b"new").await);
    assert_eq!(code, "blobs_unreachable", "an upload that cannot be read back is an error");
    storage.clear_faults();
    blobs.put(b"new").await.unwrap();
}

#[tokio::test]
async fn failures_are_retried_a_few_times() {
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
            // The answer to a HEAD has no body, so it has no code.
            if kind != "HEAD" || !matches!(fault, Fault::Refuse(400, _)) {
                storage.inject(kind, fault.clone(), 2);
            }
        }
        blobs.put(b"another").await.unwrap();
        blobs.list(None, 10).await.unwrap();
        assert!(blobs.delete(&Digest::of(b"another"), Duration::ZERO).await.unwrap(), "{fault:?}");
        for kind in ["PUT", "GET", "LIST"] {
            storage.inject(kind, fault.clone(), ALWAYS);
        }
        storage.take_request_count("PUT");
        let expected_code = match fault {
            Fault::Reset => "blobs_unreachable",
            Fault::Refuse(400, _) => "blobs_refused",
            _ => "blobs_failing",
        };
        assert_eq!(code_of(blobs.put(b"more").await), expected_code, "{fault:?}");
        assert_eq!(storage.take_request_count("PUT"), 4, "one try and three retries");
        assert_eq!(code_of(blobs.get(&digest).await), expected_code, "{fault:?}");
        assert_eq!(code_of(blobs.list(None, 1).await), expected_code, "{fault:?}");
        storage.clear_faults();
        assert_eq!(blobs.get(&digest).await.unwrap(), b"there", "the same handle works when the fault is gone");
    }
}

#[tokio::test]
async fn a_slow_storage_is_waited_for_up_to_the_timeout() {
    let storage = Storage::start().await;
    let patient = storage.blobs("s3://heaps/a");
    let digest = patient.put(b"there").await.unwrap();
    storage.inject("GET", Fault::Slow(Duration::from_millis(300)), 1);
    assert_eq!(patient.get(&digest).await.unwrap(), b"there");
    let hasty =
        S3Blobs::new(&Options { timeout: Duration::from_millis(200), ..storage.options("s3://heaps/a") }).unwrap();
    for kind in ["PUT", "GET", "LIST"] {
        storage.inject(kind, Fault::Slow(Duration::from_secs(60)), ALWAYS);
    }
    let started = Instant::now();
    let (code, message) = code_and_message(hasty.put(b"x").await);
    assert!(code == "blobs_slow" && message.contains("200 ms") && message.contains("timeout_ms"), "{code} {message}");
    assert_eq!(code_of(hasty.get(&digest).await), "blobs_slow");
    assert_eq!(code_of(hasty.list(None, 1).await), "blobs_slow");
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    storage.clear_faults();
    hasty.put(b"x").await.unwrap();
}

#[tokio::test]
async fn a_storage_that_was_stopped_and_started_again_is_used_again() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let digest = blobs.put(b"there").await.unwrap();
    storage.stop().await;
    let (code, message) = code_and_message(blobs.put(b"x").await);
    assert!(code == "blobs_unreachable" && message.contains("s3://heaps/a/"), "{code} {message}");
    assert_eq!(code_of(blobs.get(&digest).await), "blobs_unreachable");
    assert_eq!(code_of(blobs.delete(&digest, Duration::ZERO).await), "blobs_unreachable");
    storage.restart().await;
    assert_eq!(blobs.get(&digest).await.unwrap(), b"there");
    blobs.put(b"x").await.unwrap();
}

#[tokio::test]
async fn a_missing_bucket_is_an_error_and_not_an_empty_list() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://nowhere/a");
    let (code, message) = code_and_message(blobs.list(None, 1).await);
    assert!(code == "blobs_no_bucket" && message.starts_with("s3://nowhere/a/"), "{code} {message}");
    // The test server creates a missing bucket at the first upload, so the fault is injected.
    storage.inject("PUT", Fault::Refuse(404, "NoSuchBucket"), 1);
    assert_eq!(code_of(blobs.put(b"x").await), "blobs_no_bucket");
    storage.inject("GET", Fault::Refuse(404, "NoSuchBucket"), 1);
    assert_eq!(code_of(storage.blobs("s3://heaps").get(&Digest::of(b"x")).await), "blobs_no_bucket");
}

#[tokio::test]
async fn refused_credentials_are_reported_and_not_retried() {
    let storage = Storage::start().await;
    for (id, secret) in [(KEY_ID, "wrong"), ("nobody", SECRET)] {
        let credentials = Credentials::Keys { id: id.to_owned(), secret: base::Secret::new(secret), token: None };
        let blobs = S3Blobs::new(&Options { credentials, ..storage.options("s3://heaps/a") }).unwrap();
        storage.take_request_count("GET");
        let (code, message) = code_and_message(blobs.put(b"x").await);
        assert!(code == "blobs_denied" && message.contains("access key"), "{code} {message}");
        assert_eq!(
            (storage.take_request_count("GET"), storage.take_request_count("PUT")),
            (1, 0),
            "the refusal is not retried"
        );
    }
    let blobs = storage.blobs("s3://heaps/a");
    assert!(!format!("{blobs:?}").contains(SECRET));
    for (status, code) in
        [(403, "AccessDenied"), (403, ""), (401, ""), (403, "RequestTimeTooSkewed"), (400, "ExpiredToken")]
    {
        storage.inject("GET", Fault::Refuse(status, code), 1);
        assert_eq!(code_of(blobs.get(&Digest::of(b"x")).await), "blobs_denied", "{status} {code}");
    }
}

#[tokio::test]
async fn a_prefix_belongs_to_one_database() {
    let storage = Storage::start().await;
    let first = storage.blobs("s3://heaps/a");
    let digest = first.put(b"first").await.unwrap();
    let other = Options { owner: "another database".to_owned(), ..storage.options("s3://heaps/a") };
    let second = S3Blobs::new(&other).unwrap();
    for answer in [second.put(b"second").await.map(|_| ()), second.delete(&digest, Duration::ZERO).await.map(|_| ())] {
        let (code, message) = code_and_message(answer);
        assert!(code == "blobs_taken" && message.starts_with("s3://heaps/a/owner: "), "{code} {message}");
    }
    assert_eq!(storage.blobs("s3://heaps/a").get(&digest).await.unwrap(), b"first", "the same database, again");
    let elsewhere =
        S3Blobs::new(&Options { owner: "another database".to_owned(), ..storage.options("s3://heaps/b") }).unwrap();
    elsewhere.put(b"second").await.unwrap();
    assert_eq!(first.list(None, 10).await.unwrap().len(), 1);
}

/// The claim of a database arrives late, after another database has claimed the prefix and has read its claim back.
#[tokio::test]
async fn two_databases_that_claim_a_prefix_at_once_do_not_both_get_it() {
    let storage = Storage::start().await;
    storage.inject("PUT", Fault::Slow(Duration::from_millis(500)), 1);
    let late = storage.blobs("s3://heaps/a");
    let late = tokio::spawn(async move { late.put(b"late").await.map(|_| ()) });
    while storage.take_request_count("PUT") == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let other = Options { owner: "another database".to_owned(), ..storage.options("s3://heaps/a") };
    let first = S3Blobs::new(&other).unwrap();
    first.put(b"first").await.unwrap();
    assert_eq!(code_of(late.await.unwrap()), "blobs_taken");
    first.put(b"again").await.unwrap();
}

#[tokio::test]
async fn answers_that_are_not_from_s3_are_errors() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    blobs.put(b"before").await.unwrap();
    storage.inject("LIST", Fault::Foreign, 1);
    assert_eq!(code_of(blobs.list(None, 1).await), "blobs_foreign");
    for (status, code) in [(301, "PermanentRedirect"), (307, ""), (400, "InvalidRequest"), (405, "MethodNotAllowed")] {
        storage.inject("PUT", Fault::Refuse(status, code), 1);
        let (code, message) = code_and_message(blobs.put(b"x").await);
        assert!(code == "blobs_refused" && message.contains("region"), "{status} {code} {message}");
    }
    storage.inject("PUT", Fault::Foreign, ALWAYS);
    assert!(blobs.put(b"x").await.is_err(), "the page of a proxy confirms no upload");
}

/// A function from the number of a request to the text of its answer.
type Script = fn(usize) -> String;

/// Returns a page of a list with these keys, which continues with the token.
fn list_page(keys: &[String], token: &str) -> String {
    let object = |key: &String| {
        format!(
            "<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>\"0\"</ETag><Size>1</Size></Contents>"
        )
    };
    let objects: String = keys.iter().map(object).collect();
    format!(
        "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>true</IsTruncated>{objects}<NextContinuationToken>{token}</NextContinuationToken></ListBucketResult>"
    )
}

#[tokio::test]
async fn a_list_that_never_ends_is_an_error_after_a_bounded_number_of_requests() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    let scripts: [(Script, usize); 3] = [
        // Empty pages with ever new tokens, pages with one token, and pages of objects that are no blobs.
        (|number| list_page(&[], &format!("t{number}")), 100),
        (|_| list_page(&["a/note".to_owned()], "same"), 2),
        (|number| list_page(&[format!("a/note-{number}")], &format!("t{number}")), 10_000),
    ];
    for (script, requests) in scripts {
        storage.inject("LIST", Fault::Scripted(script), ALWAYS);
        storage.take_request_count("LIST");
        let (code, message) = code_and_message(blobs.list(None, 10).await);
        assert!(code == "blobs_endless" && message.starts_with("s3://heaps/a/"), "{code} {message}");
        assert_eq!(storage.take_request_count("LIST"), requests);
    }
    // One page that is far longer than a page of S3.
    storage.inject("LIST", Fault::Scripted(|_| format!("<ListBucketResult>{}", " ".repeat(40 << 20))), ALWAYS);
    assert_eq!(code_of(blobs.list(None, 10).await), "blobs_endless");
    storage.clear_faults();
    assert_eq!(blobs.list(None, 10).await.unwrap(), []);
}

#[tokio::test]
async fn a_put_during_endless_removals_is_an_error_after_a_bounded_number_of_uploads() {
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    blobs.put(b"before").await.unwrap();
    // The storage shows a removal of each blob, and says that the blob is gone: the removal has ended, so the blob must be
    // uploaded again.
    storage.inject("LIST", Fault::Scripted(|_| list_page(&["a/removing/x/1".to_owned()], "t")), ALWAYS);
    storage.inject("HEAD", Fault::Refuse(404, ""), ALWAYS);
    storage.take_request_count("PUT");
    let (code, message) = code_and_message(blobs.put(b"again and again").await);
    assert!(code == "blobs_endless" && message.contains("removals"), "{code} {message}");
    assert_eq!(storage.take_request_count("PUT"), 10);
    storage.clear_faults();
    blobs.put(b"again and again").await.unwrap();
}

#[tokio::test]
async fn an_answer_that_is_longer_than_the_stored_blob_is_not_read() {
    const EXTRA: usize = 300 << 20;
    let storage = Storage::start().await;
    let blobs = storage.blobs("s3://heaps/a");
    blobs.put(b"before").await.unwrap();
    storage.inject("GET", Fault::Oversize(EXTRA), ALWAYS);
    assert_eq!(code_of(blobs.put(b"small").await), "blobs_not_kept");
    assert!(storage.oversize_bytes() < EXTRA / 10, "{} bytes were sent", storage.oversize_bytes());
    storage.clear_faults();
    blobs.put(b"small").await.unwrap();
}
