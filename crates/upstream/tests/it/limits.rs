//! Tests of the limits on the size and the time of an answer, and on concurrent calls.
//! Invariant: an answer is refused at the moment when it exceeds a limit, before it has arrived completely.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Request;
use ports::upstream::Error;
use upstream::Options;

use crate::fixture::{Fixture, closed_port, demo, get, printed_with_causes, single_try};
use crate::server::{Action, Server, ok, reply, with_status};

const LONG: Duration = Duration::from_secs(20);

fn small_bodies() -> Options {
    Options { response_bytes: 1000, ..Options::default() }
}

#[tokio::test]
async fn a_body_of_exactly_the_limit_is_accepted() {
    let fixture = Fixture::with(small_bodies());
    let server = Server::always(ok(&"a".repeat(1000))).await;
    assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().body.len(), 1000);
    let server = Server::always(ok(&"a".repeat(1001))).await;
    let error = fixture.read(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 1000, .. }), "{error:?}");
    assert_eq!(server.received().len(), 1, "not retried");
}

#[tokio::test]
async fn an_announced_huge_body_is_refused_before_it_arrives() {
    let server = Server::start(|_, _| {
        vec![reply("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"), Action::Pause(LONG)]
    })
    .await;
    let started = Instant::now();
    let error = Fixture::with(small_bodies()).read(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn an_endless_chunked_body_is_cut_off() {
    let chunk = format!("1000\r\n{}\r\n", "a".repeat(0x1000)).into_bytes();
    let server = Server::start(move |_, _| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        vec![reply(head), Action::Flood(chunk.clone(), Duration::ZERO)]
    })
    .await;
    let fixture = Fixture::with(Options { response_bytes: 100_000, ..Options::default() });
    let error = fixture.read(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 100_000, .. }), "{error:?}");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let sent = server.sent_bytes();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(sent, server.sent_bytes(), "the connection is closed, so the server stops");
    assert!(sent < 32 * 1024 * 1024, "{sent}: more than what socket buffers hold");
}

#[tokio::test]
async fn a_truncated_body_is_lost() {
    let heads = ["Content-Length: 100\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n5\r\nab"];
    for head in heads {
        let server = Server::start(move |_, _| vec![reply("HTTP/1.1 200 OK\r\n"), reply(head), Action::Close]).await;
        let fixture = Fixture::new();
        let error = fixture.write(get(&server.origin, "/")).await.unwrap_err();
        assert!(matches!(error, Error::Lost { .. }), "{error:?}");
        assert_eq!(server.received().len(), 1, "a write is not sent twice");
    }
}

#[tokio::test]
async fn an_encoding_that_was_not_requested_is_an_error() {
    let fixture = Fixture::new();
    let server = Server::always(with_status("200 OK", "Content-Encoding: br\r\n", "x")).await;
    let error = fixture.read(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error:?}");
    assert!(printed_with_causes(&error).contains("encoded as `br`"));
    assert_eq!(server.received().len(), 1, "a retry would not help");
    let server = Server::always(with_status("200 OK", "Content-Encoding: Identity\r\n", "x")).await;
    assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().body, b"x");
}

#[tokio::test]
async fn a_gzip_bomb_is_refused_and_a_compressed_answer_is_decompressed() {
    let demo = demo().await;
    let bomb = |text: &str| {
        let headers = vec![("X-Demo-Fault".to_owned(), text.to_owned())];
        Request { headers, ..get(&demo, "/api/projects") }
    };
    let fixture = Fixture::with(Options { response_bytes: 100_000, ..Options::default() });
    let error = fixture.read(bomb("gzip-bomb=1073741824")).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 100_000, .. }), "{error:?}");
    let error = fixture.read(bomb("gzip-bomb=20000000")).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 100_000, .. }), "{error:?}");
    let answer = fixture.read(bomb("gzip-bomb=90000")).await.unwrap();
    assert_eq!((answer.body.len(), answer.header("content-encoding")), (90_000, None));

    let server = Server::always(with_status("200 OK", "Content-Encoding: gzip\r\n", "no gzip")).await;
    let error = fixture.read(get(&server.origin, "/")).await.unwrap_err();
    assert!(printed_with_causes(&error).contains("compressed body of the API's answer is damaged"), "{error:?}");
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let server = Server::start(|_, _| vec![Action::Pause(LONG)]).await;
    let started = Instant::now();
    let error = Fixture::with(single_try()).read(get(&server.origin, "/slow")).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { ms: 300, .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(error.to_string(), format!("GET {}/slow: no answer within 300 ms", server.origin));
}

#[tokio::test]
async fn a_server_that_sends_slowly_is_bounded_by_the_whole_deadline() {
    let server = Server::start(|_, _| {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
        vec![reply(head), Action::Flood(b"a".to_vec(), Duration::from_millis(20))]
    })
    .await;
    let started = Instant::now();
    let options = Options { request_timeout: Duration::from_millis(300), ..Options::default() };
    let error = Fixture::with(options).read(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(server.received().len(), 1, "an answer that has started is not retried");
}

#[tokio::test]
async fn a_closed_port_is_a_failed_connect() {
    let error = Fixture::new().read(get(&closed_port().await, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
}

#[tokio::test]
async fn an_unknown_name_is_a_failed_connect() {
    let origin = base::Origin::parse("http://no-such-host.invalid").unwrap();
    let error = Fixture::with(Options { retries: 0, ..Options::default() }).read(get(&origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
}

#[tokio::test]
async fn an_origin_never_has_more_calls_than_its_limit() {
    let script = |_, _: &_| vec![Action::Pause(Duration::from_millis(30)), reply(&ok(""))];
    let one = Server::start(script).await;
    let other = Server::start(script).await;
    let fixture = Arc::new(Fixture::with(Options { calls_per_origin: 3, ..Options::default() }));
    let calls: Vec<_> = (0..40)
        .map(|n| {
            let (fixture, origin) =
                (Arc::clone(&fixture), if n % 2 == 0 { one.origin.clone() } else { other.origin.clone() });
            tokio::spawn(async move { fixture.read(get(&origin, "/")).await.unwrap() })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().status, 200);
    }
    assert_eq!((one.max_concurrent(), other.max_concurrent()), (3, 3), "each origin has its own limit");
    assert_eq!((one.received().len(), other.received().len()), (20, 20));
}

#[tokio::test]
async fn a_cancelled_call_returns_its_permit() {
    let server = Server::start(|nth, _| match nth {
        0 => vec![Action::Pause(LONG)],
        _ => vec![reply(&ok(""))],
    })
    .await;
    let fixture = Fixture::with(Options { calls_per_origin: 1, ..Options::default() });
    let stuck = tokio::time::timeout(Duration::from_millis(100), fixture.read(get(&server.origin, "/"))).await;
    assert!(stuck.is_err());
    assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().status, 200);
}
