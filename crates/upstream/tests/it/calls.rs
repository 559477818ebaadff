//! Tests of calls without faults: the bytes of requests and answers, credentials, routes and log lines.
//! Invariant: a secret appears only in its header or parameter of the request.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Auth, Method, Origin, Payload, Request};
use ports::upstream::Error;
use serde_json::json;
use upstream::{BuildError, Options};

use crate::fixture::{
    Fixture, TOKEN, build, clock, closed_port, get, log_text, printed_with_causes, signed, single_try,
};
use crate::server::{Action, Server, ok, reply, with_status};

#[tokio::test]
async fn an_answer_has_its_status_headers_and_body() {
    let server = Server::always(with_status("201 Created", "X-Kind: A\r\nSet-Cookie: sid=1\r\n", "{\"a\":1}")).await;
    let fixture = Fixture::new();
    let answer = fixture.read(get(&server.origin, "/tickets")).await.unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (201, b"{\"a\":1}".as_slice()));
    assert_eq!(answer.header("x-kind"), Some("A"));
    assert_eq!(answer.header("set-cookie"), None);

    let received = &server.received()[0];
    assert_eq!(received.line, "GET /tickets HTTP/1.1");
    assert_eq!(received.header("accept"), Some("application/json"));
    assert_eq!(received.header("accept-encoding"), Some("gzip"));
    assert_eq!(received.header("user-agent"), Some(concat!("tokamak/", env!("CARGO_PKG_VERSION"))));
    assert_eq!(received.header("host"), Some(format!("127.0.0.1:{}", server.port).as_str()));
    for absent in ["authorization", "cookie", "content-type", "referer"] {
        assert_eq!(received.header(absent), None, "{absent}");
    }

    fixture.read(get(&server.origin, "/again")).await.unwrap();
    assert_eq!(server.connections(), 1, "the connection is reused");
}

#[tokio::test]
async fn any_status_is_an_answer() {
    for status in ["204 No Content", "304 Not Modified", "404 Not Found", "418 Teapot", "500 Oops"] {
        let server = Server::always(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")).await;
        let answer = Fixture::new().read(get(&server.origin, "/")).await.unwrap();
        assert!(status.starts_with(&answer.status.to_string()));
    }
}

#[tokio::test]
async fn path_and_query_arrive_encoded() {
    let server = Server::always(ok("")).await;
    let query = [("q", "a b&c=d#e+f"), ("é", "\r\nX-Evil: 1"), ("q", "2")];
    let query = query.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Fixture::new().read(Request { query, ..get(&server.origin, "/p/a%2Fb%20c%3F") }).await.unwrap();
    assert_eq!(
        server.received()[0].line,
        "GET /p/a%2Fb%20c%3F?q=a%20b%26c%3Dd%23e%2Bf&%C3%A9=%0D%0AX-Evil%3A%201&q=2 HTTP/1.1"
    );
}

#[tokio::test]
async fn a_json_body_is_sent_with_every_method() {
    let server = Server::always(ok("{}")).await;
    let fixture = Fixture::new();
    for method in [Method::Post, Method::Put, Method::Patch, Method::Delete] {
        let body = Some(json!({"title": "é \"x\"", "n": [1, null]}));
        fixture.read(Request { method, body: body.map(Payload::json), ..get(&server.origin, "/t") }).await.unwrap();
        let received = server.received().pop().unwrap();
        assert_eq!(received.line, format!("{} /t HTTP/1.1", method.as_str()));
        assert_eq!(received.header("content-type"), Some("application/json"));
        assert_eq!(received.body, "{\"title\":\"é \\\"x\\\"\",\"n\":[1,null]}");
    }
}

#[tokio::test]
async fn a_catalog_may_set_accept_and_content_type() {
    let server = Server::always(ok("")).await;
    let headers =
        [("Accept", "application/vnd.x+json"), ("content-type", "application/merge-patch+json"), ("X-V", "2")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    Fixture::new()
        .write(Request { headers, body: Some(Payload::json(json!(1))), ..get(&server.origin, "/") })
        .await
        .unwrap();
    let received = &server.received()[0];
    assert_eq!(received.header("accept"), Some("application/vnd.x+json"));
    assert_eq!(received.header("content-type"), Some("application/merge-patch+json"));
    assert_eq!(received.header("x-v"), Some("2"));
    assert_eq!(received.headers.iter().filter(|(name, _)| name == "accept" || name == "content-type").count(), 2);
}

#[tokio::test]
async fn credentials_arrive_in_their_header() {
    let server = Server::always(ok("")).await;
    let fixture = Fixture::new();
    // A header with the credential's name is replaced.
    let headers = vec![("Authorization".to_owned(), "Basic x".to_owned())];
    fixture.read(signed(Request { headers, ..get(&server.origin, "/") })).await.unwrap();
    let auth = Some(Auth::Header { name: "X-Api-Key".to_owned(), secret: "TOKEN".to_owned(), prefix: None });
    fixture.read(Request { auth, ..get(&server.origin, "/") }).await.unwrap();
    let received = server.received();
    assert_eq!(received[0].header("authorization"), Some(format!("Bearer {TOKEN}").as_str()));
    assert_eq!(received[0].headers.iter().filter(|(name, _)| name == "authorization").count(), 1);
    assert_eq!(received[1].header("x-api-key"), Some(TOKEN));
    assert!(!format!("{:?}", fixture.upstream).contains(TOKEN));
}

#[tokio::test]
async fn an_echoed_credential_is_removed_from_the_answer() {
    let echo = format!("{{\"error\": \"bad Authorization: Bearer {TOKEN}\"}}");
    let server = Server::always(ok(&echo)).await;
    let answer = Fixture::new().read(signed(get(&server.origin, "/"))).await.unwrap();
    let body = String::from_utf8(answer.body).unwrap();
    assert_eq!(body, "{\"error\": \"bad Authorization: Bearer [secret]\"}");
}

#[tokio::test]
async fn a_call_without_its_secret_does_not_leave() {
    let server = Server::always(ok("")).await;
    let fixture = Fixture::new();
    for (name, problem) in [("MISSING", "is not set"), ("BROKEN", "cannot be used")] {
        let request = Request { auth: Some(Auth::Bearer(name.to_owned())), ..get(&server.origin, "/") };
        let error = fixture.read(request).await.unwrap_err();
        assert!(matches!(error, Error::Secret { .. }), "{error:?}");
        let text = printed_with_causes(&error);
        assert!(text.contains(&format!("secret `{name}` {problem}")) && !text.contains("hunter2"), "{text}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn no_error_shows_a_credential_or_a_query_value() {
    let long = Duration::from_secs(5);
    let lost = Server::start(|_, _| vec![Action::Close]).await;
    let slow = Server::start(move |_, _| vec![Action::Pause(long)]).await;
    let cut = Server::always("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\n").await;
    let short =
        Server::start(|_, _| vec![reply("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"), Action::Close]).await;
    let big = Server::always("HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n").await;
    let moved = Server::always(with_status("302 Found", "Location: /x?token=hunter2-very-secret\r\n", "")).await;
    let garbage = Server::always("what?\r\n\r\n").await;
    let closed_port = closed_port().await;
    let fixture = Fixture::with(single_try());
    let servers = [&lost, &slow, &cut, &short, &big, &moved, &garbage];
    for origin in servers.iter().map(|server| &server.origin).chain([&closed_port]) {
        let query = vec![("key".to_owned(), "query-value".to_owned())];
        let error = fixture.read(signed(Request { query, ..get(origin, "/p") })).await.unwrap_err();
        let text = printed_with_causes(&error);
        assert!(!text.contains("hunter2") && !text.contains("query-value"), "{text}");
        assert!(text.contains(&format!("GET {origin}/p")), "{text}");
    }
}

#[tokio::test]
async fn each_try_has_a_log_line_without_secrets() {
    let server = Server::start(|nth, _| match nth {
        0 => vec![Action::Close],
        _ => vec![reply(&ok("answer-body"))],
    })
    .await;
    let query = vec![("key".to_owned(), "query-value".to_owned())];
    let request = Request { query, body: Some(Payload::json(json!("request-body"))), ..get(&server.origin, "/p") };
    Fixture::new().read(signed(request)).await.unwrap();
    let text = log_text();
    let label = format!("GET {}/p", server.origin);
    let lines: Vec<_> = text.lines().filter(|line| line.contains("DEBUG upstream") && line.contains(&label)).collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].contains("failure=\"lost\"") && lines[1].contains("status=200"), "{lines:?}");
    assert!(lines[1].contains("bytes=11"), "{lines:?}");
    for secret in ["hunter2", "query-value", "request-body", "answer-body"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
}

#[tokio::test]
async fn a_route_changes_only_the_address() {
    let server = Server::always(ok("{}")).await;
    let named = Origin::parse("http://demo.localhost").unwrap();
    let routes = BTreeMap::from([(named.clone(), server.origin.clone())]);
    let fixture = Fixture::with(Options { routes, ..Options::default() });
    let query = vec![("q".to_owned(), "1".to_owned())];
    fixture.read(signed(Request { query, ..get(&named, "/tickets") })).await.unwrap();
    let received = &server.received()[0];
    assert_eq!(received.line, "GET /tickets?q=1 HTTP/1.1");
    assert_eq!(received.header("host"), Some(format!("127.0.0.1:{}", server.port).as_str()));

    let error = fixture.read(get(&named, "//evil.example/")).await.unwrap_err();
    assert_eq!(error.to_string(), "GET http://demo.localhost//evil.example/: the request leaves its catalog's origin");
    assert_eq!(server.received().len(), 1);
}

#[test]
fn options_with_a_bound_of_zero_are_refused() {
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
