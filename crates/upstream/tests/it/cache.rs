//! Conditional requests.
//! Invariant: every answer was confirmed by its server, for this tenant and this credential.

use base::{Auth, Method, Payload, Request};
use serde_json::json;
use upstream::Options;

use crate::server::{Server, say, with_status};
use crate::world::{World, demo, get, json, signed};

const MARK: &str = "x-tokamak-cache";

#[tokio::test]
async fn what_has_not_changed_is_not_sent_again_and_what_has_is() {
    let demo = demo().await;
    let world = World::new();
    let listed = json(&world.read(get(&demo, "/api/projects")).await.unwrap());
    let project = listed["data"][0]["key"].as_str().or(listed[0]["key"].as_str()).unwrap().to_owned();
    let path = format!("/api/projects/{project}/tickets/1");
    let first = world.read(get(&demo, &path)).await.unwrap();
    assert_eq!((first.status, first.header(MARK)), (200, None));
    assert!(first.header("etag").is_some());
    let second = world.read(get(&demo, &path)).await.unwrap();
    assert_eq!((second.status, second.header(MARK)), (200, Some("revalidated")));
    assert_eq!(second.body, first.body);
    assert_eq!(second.header("content-type"), first.header("content-type"));

    let body = Some(json!({"title": "Another title"}));
    let patch = Request { method: Method::Patch, body: body.map(Payload::json), ..get(&demo, &path) };
    assert_eq!(world.read(patch).await.unwrap().status, 200);
    let third = world.read(get(&demo, &path)).await.unwrap();
    assert_eq!((third.header(MARK), json(&third)["title"].as_str()), (None, Some("Another title")));
    assert_eq!(world.read(get(&demo, &path)).await.unwrap().header(MARK), Some("revalidated"));
}

/// Says 304 to whoever sends a validator.
async fn validating(headers: &'static str) -> Server {
    Server::start(move |nth, request| {
        let known = request.header("if-none-match").is_some() || request.header("if-modified-since").is_some();
        vec![say(&if known {
            format!("HTTP/1.1 304 Not Modified\r\nX-Left: {nth}\r\n\r\n")
        } else {
            with_status("200 OK", headers, &format!("answer {nth}"))
        })]
    })
    .await
}

#[tokio::test]
async fn tenants_and_credentials_do_not_share_answers() {
    let server = validating("ETag: \"1\"\r\nX-Left: 9\r\n").await;
    let world = World::new();
    let asked = || server.seen().pop().unwrap().header("if-none-match").map(str::to_owned);
    world.read_as("one", signed(get(&server.origin, "/"))).await.unwrap();
    let again = world.read_as("one", signed(get(&server.origin, "/"))).await.unwrap();
    assert_eq!((again.status, again.body.as_slice(), asked().as_deref()), (200, b"answer 0".as_slice(), Some("\"1\"")));
    assert_eq!(again.headers.iter().filter(|(name, _)| name == "x-left").count(), 1);
    assert_eq!(again.header("x-left"), Some("1"), "what the confirmation says anew");

    let other = world.read_as("two", signed(get(&server.origin, "/"))).await.unwrap();
    assert_eq!((other.body.as_slice(), asked()), (b"answer 2".as_slice(), None));
    let other = world.read_as("one", get(&server.origin, "/")).await.unwrap();
    assert_eq!((other.body.as_slice(), asked()), (b"answer 3".as_slice(), None));
    let auth = Some(Auth::Bearer("DEMO_TOKEN".to_owned()));
    let other = world.read_as("one", Request { auth, ..get(&server.origin, "/") }).await.unwrap();
    assert_eq!((other.body.as_slice(), asked()), (b"answer 4".as_slice(), None));
    let query = vec![("page".to_owned(), "2".to_owned())];
    world.read_as("one", Request { query, ..signed(get(&server.origin, "/")) }).await.unwrap();
    assert_eq!(asked(), None);
    let headers = vec![("Accept".to_owned(), "text/plain".to_owned())];
    world.read_as("one", Request { headers, ..signed(get(&server.origin, "/")) }).await.unwrap();
    assert_eq!(asked(), None);
}

#[tokio::test]
async fn what_may_not_be_kept_is_asked_for_afresh() {
    let forbidden = [
        "ETag: \"1\"\r\nCache-Control: private, No-Store\r\n",
        "ETag: \"1\"\r\nSet-Cookie: sid=1\r\n",
        "ETag: \"1\"\r\nVary: *\r\n",
        "X-None: 1\r\n",
        "x-tokamak-cache: revalidated\r\n",
    ];
    for headers in forbidden {
        let server = validating(headers).await;
        let world = World::new();
        for nth in 0..2 {
            let answer = world.read(get(&server.origin, "/")).await.unwrap();
            assert_eq!(answer.body, format!("answer {nth}").into_bytes(), "{headers}");
            assert_eq!(answer.header(MARK), None, "only this adapter says so");
        }
    }
    let server = validating("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n").await;
    let world = World::new();
    world.read(get(&server.origin, "/")).await.unwrap();
    assert_eq!(world.read(get(&server.origin, "/")).await.unwrap().header(MARK), Some("revalidated"));
    // Neither a write nor a caller with a condition of its own is answered from what is kept.
    world.write(get(&server.origin, "/")).await.unwrap();
    assert_eq!(server.seen().pop().unwrap().header("if-modified-since"), None);
    let headers = vec![("If-None-Match".to_owned(), "\"mine\"".to_owned())];
    assert_eq!(world.read(Request { headers, ..get(&server.origin, "/") }).await.unwrap().status, 304);

    let world = World::with(Options { cache_entries: 0, ..Options::default() });
    for _ in 0..2 {
        assert_eq!(world.read(get(&server.origin, "/")).await.unwrap().header(MARK), None);
    }
    let large = "a".repeat(1024 * 1024 + 1);
    let server = Server::start(move |_, _| vec![say(&with_status("200 OK", "ETag: \"1\"\r\n", &large))]).await;
    let world = World::new();
    for _ in 0..2 {
        world.read(get(&server.origin, "/")).await.unwrap();
    }
    assert_eq!(server.seen().pop().unwrap().header("if-none-match"), None);
}
