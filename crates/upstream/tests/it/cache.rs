//! Tests of conditional requests and of the cache of answers.
//! Invariant: a cached answer is returned only after its server has confirmed it, and only for the same tenant and
//! credential.

use base::{Auth, Method, Payload, Request};
use serde_json::json;
use upstream::Options;

use crate::fixture::{Fixture, demo, get, json, signed};
use crate::server::{Server, reply, with_status};

const CACHE_MARK: &str = "x-tokamak-cache";

#[tokio::test]
async fn only_a_changed_answer_is_sent_again() {
    let demo = demo().await;
    let fixture = Fixture::new();
    let listed = json(&fixture.read(get(&demo, "/api/projects")).await.unwrap());
    let project = listed["data"][0]["key"].as_str().or(listed[0]["key"].as_str()).unwrap().to_owned();
    let path = format!("/api/projects/{project}/tickets/1");
    let first = fixture.read(get(&demo, &path)).await.unwrap();
    assert_eq!((first.status, first.header(CACHE_MARK)), (200, None));
    assert!(first.header("etag").is_some());
    let second = fixture.read(get(&demo, &path)).await.unwrap();
    assert_eq!((second.status, second.header(CACHE_MARK)), (200, Some("revalidated")));
    assert_eq!(second.body, first.body);
    assert_eq!(second.header("content-type"), first.header("content-type"));

    let body = Some(json!({"title": "Another title"}));
    let patch = Request { method: Method::Patch, body: body.map(Payload::json), ..get(&demo, &path) };
    assert_eq!(fixture.read(patch).await.unwrap().status, 200);
    let third = fixture.read(get(&demo, &path)).await.unwrap();
    assert_eq!((third.header(CACHE_MARK), json(&third)["title"].as_str()), (None, Some("Another title")));
    assert_eq!(fixture.read(get(&demo, &path)).await.unwrap().header(CACHE_MARK), Some("revalidated"));
}

/// Starts a server that answers 304 to every request with a validator.
async fn validating_server(headers: &'static str) -> Server {
    Server::start(move |number, request| {
        let known = request.header("if-none-match").is_some() || request.header("if-modified-since").is_some();
        vec![reply(&if known {
            format!("HTTP/1.1 304 Not Modified\r\nX-Left: {number}\r\n\r\n")
        } else {
            with_status("200 OK", headers, &format!("answer {number}"))
        })]
    })
    .await
}

#[tokio::test]
async fn tenants_and_credentials_do_not_share_answers() {
    let server = validating_server("ETag: \"1\"\r\nX-Left: 9\r\n").await;
    let fixture = Fixture::new();
    let last_validator = || server.received().pop().unwrap().header("if-none-match").map(str::to_owned);
    fixture.read_as("one", signed(get(&server.origin, "/"))).await.unwrap();
    let again = fixture.read_as("one", signed(get(&server.origin, "/"))).await.unwrap();
    assert_eq!(
        (again.status, again.body.as_slice(), last_validator().as_deref()),
        (200, b"answer 0".as_slice(), Some("\"1\""))
    );
    assert_eq!(again.headers.iter().filter(|(name, _)| name == "x-left").count(), 1);
    assert_eq!(again.header("x-left"), Some("1"), "the header of the confirmation replaces the kept one");

    let other = fixture.read_as("two", signed(get(&server.origin, "/"))).await.unwrap();
    assert_eq!((other.body.as_slice(), last_validator()), (b"answer 2".as_slice(), None));
    let other = fixture.read_as("one", get(&server.origin, "/")).await.unwrap();
    assert_eq!((other.body.as_slice(), last_validator()), (b"answer 3".as_slice(), None));
    let auth = Some(Auth::Bearer("DEMO_TOKEN".to_owned()));
    let other = fixture.read_as("one", Request { auth, ..get(&server.origin, "/") }).await.unwrap();
    assert_eq!((other.body.as_slice(), last_validator()), (b"answer 4".as_slice(), None));
    let query = vec![("page".to_owned(), "2".to_owned())];
    fixture.read_as("one", Request { query, ..signed(get(&server.origin, "/")) }).await.unwrap();
    assert_eq!(last_validator(), None);
    let headers = vec![("Accept".to_owned(), "text/plain".to_owned())];
    fixture.read_as("one", Request { headers, ..signed(get(&server.origin, "/")) }).await.unwrap();
    assert_eq!(last_validator(), None);
}

#[tokio::test]
async fn an_answer_that_may_not_be_kept_is_requested_again() {
    let forbidden = [
        "ETag: \"1\"\r\nCache-Control: private, No-Store\r\n",
        "ETag: \"1\"\r\nSet-Cookie: sid=1\r\n",
        "ETag: \"1\"\r\nVary: *\r\n",
        "X-None: 1\r\n",
        "x-tokamak-cache: revalidated\r\n",
    ];
    for headers in forbidden {
        let server = validating_server(headers).await;
        let fixture = Fixture::new();
        for number in 0..2 {
            let answer = fixture.read(get(&server.origin, "/")).await.unwrap();
            assert_eq!(answer.body, format!("answer {number}").into_bytes(), "{headers}");
            assert_eq!(answer.header(CACHE_MARK), None, "only this adapter sets the mark");
        }
    }
    let server = validating_server("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n").await;
    let fixture = Fixture::new();
    fixture.read(get(&server.origin, "/")).await.unwrap();
    assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().header(CACHE_MARK), Some("revalidated"));
    // A kept answer is used neither for a write nor for a request with a condition of its own.
    fixture.write(get(&server.origin, "/")).await.unwrap();
    assert_eq!(server.received().pop().unwrap().header("if-modified-since"), None);
    let headers = vec![("If-None-Match".to_owned(), "\"mine\"".to_owned())];
    assert_eq!(fixture.read(Request { headers, ..get(&server.origin, "/") }).await.unwrap().status, 304);

    let fixture = Fixture::with(Options { cache_entries: 0, ..Options::default() });
    for _ in 0..2 {
        assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().header(CACHE_MARK), None);
    }
    let large = "a".repeat(1024 * 1024 + 1);
    let server = Server::start(move |_, _| vec![reply(&with_status("200 OK", "ETag: \"1\"\r\n", &large))]).await;
    let fixture = Fixture::new();
    for _ in 0..2 {
        fixture.read(get(&server.origin, "/")).await.unwrap();
    }
    assert_eq!(server.received().pop().unwrap().header("if-none-match"), None);
}
