//! What goes out and what comes back when all is well, and where the credential is.
//! Invariant: the secret is on the wire, in its header, and nowhere else.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Auth, Method, Origin, Payload, Request};
use ports::upstream::Error;
use serde_json::json;
use upstream::{BuildError, Options};

use crate::server::{Act, Server, ok, say, with_status};
use crate::world::{TOKEN, World, build, clock, everything, get, logged, nobody, once, signed};

#[tokio::test]
async fn an_answer_comes_back_whole() {
    let server = Server::always(with_status("201 Created", "X-Kind: A\r\nSet-Cookie: sid=1\r\n", "{\"a\":1}")).await;
    let world = World::new();
    let answer = world.read(get(&server.origin, "/tickets")).await.unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (201, b"{\"a\":1}".as_slice()));
    assert_eq!(answer.header("x-kind"), Some("A"));
    assert_eq!(answer.header("set-cookie"), None);

    let seen = &server.seen()[0];
    assert_eq!(seen.line, "GET /tickets HTTP/1.1");
    assert_eq!(seen.header("accept"), Some("application/json"));
    assert_eq!(seen.header("accept-encoding"), Some("gzip"));
    assert_eq!(seen.header("user-agent"), Some(concat!("tokamak/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(seen.header("host"), Some(format!("127.0.0.1:{}", server.port).as_str()));
    for absent in ["authorization", "cookie", "content-type", "referer"] {
        assert_eq!(seen.header(absent), None, "{absent}");
    }

    world.read(get(&server.origin, "/again")).await.unwrap();
    assert_eq!(server.connections(), 1, "the connection is kept");
}

#[tokio::test]
async fn any_status_is_an_answer() {
    for status in ["204 No Content", "304 Not Modified", "404 Not Found", "418 Teapot", "500 Oops"] {
        let server = Server::always(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")).await;
        let answer = World::new().read(get(&server.origin, "/")).await.unwrap();
        assert!(status.starts_with(&answer.status.to_string()));
    }
}

#[tokio::test]
async fn path_and_query_arrive_as_they_are_meant() {
    let server = Server::always(ok("")).await;
    let query = [("q", "a b&c=d#e+f"), ("é", "\r\nX-Evil: 1"), ("q", "2")];
    let query = query.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    World::new().read(Request { query, ..get(&server.origin, "/p/a%2Fb%20c%3F") }).await.unwrap();
    assert_eq!(
        server.seen()[0].line,
        "GET /p/a%2Fb%20c%3F?q=a%20b%26c%3Dd%23e%2Bf&%C3%A9=%0D%0AX-Evil%3A%201&q=2 HTTP/1.1"
    );
}

#[tokio::test]
async fn a_body_goes_as_json_with_every_method() {
    let server = Server::always(ok("{}")).await;
    let world = World::new();
    for method in [Method::Post, Method::Put, Method::Patch, Method::Delete] {
        let body = Some(json!({"title": "é \"x\"", "n": [1, null]}));
        world.read(Request { method, body: body.map(Payload::json), ..get(&server.origin, "/t") }).await.unwrap();
        let seen = server.seen().pop().unwrap();
        assert_eq!(seen.line, format!("{} /t HTTP/1.1", method.as_str()));
        assert_eq!(seen.header("content-type"), Some("application/json"));
        assert_eq!(seen.body, "{\"title\":\"é \\\"x\\\"\",\"n\":[1,null]}");
    }
}

#[tokio::test]
async fn a_catalog_may_choose_what_it_accepts() {
    let server = Server::always(ok("")).await;
    let headers =
        [("Accept", "application/vnd.x+json"), ("content-type", "application/merge-patch+json"), ("X-V", "2")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    World::new()
        .write(Request { headers, body: Some(Payload::json(json!(1))), ..get(&server.origin, "/") })
        .await
        .unwrap();
    let seen = &server.seen()[0];
    assert_eq!(seen.header("accept"), Some("application/vnd.x+json"));
    assert_eq!(seen.header("content-type"), Some("application/merge-patch+json"));
    assert_eq!(seen.header("x-v"), Some("2"));
    assert_eq!(seen.headers.iter().filter(|(name, _)| name == "accept" || name == "content-type").count(), 2);
}

#[tokio::test]
async fn credentials_arrive_in_their_header() {
    let server = Server::always(ok("")).await;
    let world = World::new();
    // A header of that name from elsewhere gives way.
    let headers = vec![("Authorization".to_owned(), "Basic x".to_owned())];
    world.read(signed(Request { headers, ..get(&server.origin, "/") })).await.unwrap();
    let auth = Some(Auth::Header { name: "X-Api-Key".to_owned(), secret: "TOKEN".to_owned(), prefix: None });
    world.read(Request { auth, ..get(&server.origin, "/") }).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen[0].header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
    assert_eq!(seen[0].headers.iter().filter(|(name, _)| name == "authorization").count(), 1);
    assert_eq!(seen[1].header("x-api-key"), Some(TOKEN));
    assert!(!format!("{:?}", world.upstream).contains(TOKEN));
}

#[tokio::test]
async fn an_answer_that_echoes_a_credential_carries_it_no_further() {
    let echo = format!("{{\"error\": \"bad Authorization: Bearer {TOKEN}\"}}");
    let server = Server::always(ok(&echo)).await;
    let answer = World::new().read(signed(get(&server.origin, "/"))).await.unwrap();
    let body = String::from_utf8(answer.body).unwrap();
    assert_eq!(body, "{\"error\": \"bad Authorization: Bearer [secret]\"}");
}

#[tokio::test]
async fn without_its_secret_nothing_leaves() {
    let server = Server::always(ok("")).await;
    let world = World::new();
    for (name, what) in [("MISSING", "is not set"), ("BROKEN", "cannot be used")] {
        let request = Request { auth: Some(Auth::Bearer(name.to_owned())), ..get(&server.origin, "/") };
        let error = world.read(request).await.unwrap_err();
        assert!(matches!(error, Error::Secret { .. }), "{error:?}");
        let text = everything(&error);
        assert!(text.contains(&format!("secret `{name}` {what}")) && !text.contains("hunter2"), "{text}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn no_error_shows_a_credential_or_a_query_value() {
    let long = Duration::from_secs(5);
    let lost = Server::start(|_, _| vec![Act::Close]).await;
    let slow = Server::start(move |_, _| vec![Act::Pause(long)]).await;
    let cut = Server::always("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n").await;
    let short = Server::start(|_, _| vec![say("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"), Act::Close]).await;
    let big = Server::always("HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n").await;
    let moved = Server::always(with_status("302 Found", "Location: /x?token=hunter2-very-secret\r\n", "")).await;
    let garbage = Server::always("what?\r\n\r\n").await;
    let nobody = nobody().await;
    let world = World::with(once());
    let servers = [&lost, &slow, &cut, &short, &big, &moved, &garbage];
    for origin in servers.iter().map(|server| &server.origin).chain([&nobody]) {
        let query = vec![("key".to_owned(), "query-value".to_owned())];
        let error = world.read(signed(Request { query, ..get(origin, "/p") })).await.unwrap_err();
        let text = everything(&error);
        assert!(!text.contains("hunter2") && !text.contains("query-value"), "{text}");
        assert!(text.contains(&format!("GET {origin}/p")), "{text}");
    }
}

#[tokio::test]
async fn events_tell_of_each_try_and_of_no_secret() {
    let server = Server::start(|nth, _| match nth {
        0 => vec![Act::Close],
        _ => vec![say(&ok("answer-body"))],
    })
    .await;
    let query = vec![("key".to_owned(), "query-value".to_owned())];
    let request = Request { query, body: Some(Payload::json(json!("request-body"))), ..get(&server.origin, "/p") };
    World::new().read(signed(request)).await.unwrap();
    let text = logged();
    let label = format!("GET {}/p", server.origin);
    let ours: Vec<_> = text.lines().filter(|line| line.contains("DEBUG upstream") && line.contains(&label)).collect();
    assert_eq!(ours.len(), 2, "{text}");
    assert!(ours[0].contains("failure=\"lost\"") && ours[1].contains("status=200"), "{ours:?}");
    assert!(ours[1].contains("bytes=11"), "{ours:?}");
    for secret in ["hunter2", "query-value", "request-body", "answer-body"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[tokio::test]
async fn a_route_changes_the_address_only() {
    let server = Server::always(ok("{}")).await;
    let named = Origin::parse("http://demo.localhost").unwrap();
    let routes = BTreeMap::from([(named.clone(), server.origin.clone())]);
    let world = World::with(Options { routes, ..Options::default() });
    let query = vec![("q".to_owned(), "1".to_owned())];
    world.read(signed(Request { query, ..get(&named, "/tickets") })).await.unwrap();
    let seen = &server.seen()[0];
    assert_eq!(seen.line, "GET /tickets?q=1 HTTP/1.1");
    assert_eq!(seen.header("host"), Some(format!("127.0.0.1:{}", server.port).as_str()));

    let error = world.read(get(&named, "//evil.example/")).await.unwrap_err();
    assert_eq!(error.to_string(), "GET http://demo.localhost//evil.example/: the request leaves its catalog's origin");
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn options_without_room_for_a_call_are_refused() {
    let defaults = Options::default();
    assert_eq!((defaults.retries, defaults.calls_per_origin), (3, 8));
    assert_eq!((defaults.request_timeout, defaults.response_bytes), (Duration::from_secs(30), 32 * 1024 * 1024));
    for options in [
        Options { calls_per_origin: 0, ..Options::default() },
        Options { request_timeout: Duration::ZERO, ..Options::default() },
    ] {
        assert!(matches!(build(options, clock()), Err(BuildError::Zero(_))));
    }
}
