//! Bounds on size, time and calls at once.
//! Invariant: an answer that breaks a bound is given up when it does, not when it ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use base::Request;
use ports::upstream::Error;
use upstream::Options;

use crate::server::{Act, Server, ok, say, with_status};
use crate::world::{World, demo, everything, get, nobody, once};

const LONG: Duration = Duration::from_secs(20);

fn small() -> Options {
    Options { response_bytes: 1000, ..Options::default() }
}

#[tokio::test]
async fn a_body_of_the_limit_fits_and_one_byte_more_does_not() {
    let world = World::with(small());
    let server = Server::always(ok(&"a".repeat(1000))).await;
    assert_eq!(world.read(get(&server.origin, "/")).await.unwrap().body.len(), 1000);
    let server = Server::always(ok(&"a".repeat(1001))).await;
    let error = world.read(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 1000, .. }), "{error:?}");
    assert_eq!(server.seen().len(), 1, "not tried again");
}

#[tokio::test]
async fn an_announced_huge_body_is_refused_before_it_comes() {
    let server =
        Server::start(|_, _| vec![say("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"), Act::Pause(LONG)])
            .await;
    let begun = Instant::now();
    let error = World::with(small()).read(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn an_endless_chunked_body_is_cut_off() {
    let chunk = format!("1000\r\n{}\r\n", "a".repeat(0x1000)).into_bytes();
    let server = Server::start(move |_, _| {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        vec![say(head), Act::Flood(chunk.clone(), Duration::ZERO)]
    })
    .await;
    let world = World::with(Options { response_bytes: 100_000, ..Options::default() });
    let error = world.read(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 100_000, .. }), "{error:?}");
    tokio::time::sleep(Duration::from_millis(100)).await;
    let sent = server.sent();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(sent, server.sent(), "the connection is closed, so the server stops");
    assert!(sent < 32 * 1024 * 1024, "{sent}: more than what socket buffers hold");
}

#[tokio::test]
async fn a_truncated_body_is_lost() {
    let heads = ["Content-Length: 100\r\n\r\nab", "Transfer-Encoding: chunked\r\n\r\n5\r\nab"];
    for head in heads {
        let server = Server::start(move |_, _| vec![say("HTTP/1.1 200 OK\r\n"), say(head), Act::Close]).await;
        let world = World::new();
        let error = world.write(get(&server.origin, "/")).await.unwrap_err();
        assert!(matches!(error, Error::Lost { .. }), "{error:?}");
        assert_eq!(server.seen().len(), 1, "a write is not sent twice");
    }
}

#[tokio::test]
async fn an_encoding_nobody_asked_for_is_an_error() {
    let world = World::new();
    let server = Server::always(with_status("200 OK", "Content-Encoding: br\r\n", "x")).await;
    let error = world.read(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error:?}");
    assert!(everything(&error).contains("encoded as `br`"));
    assert_eq!(server.seen().len(), 1, "asking again would not help");
    let server = Server::always(with_status("200 OK", "Content-Encoding: Identity\r\n", "x")).await;
    assert_eq!(world.read(get(&server.origin, "/")).await.unwrap().body, b"x");
}

#[tokio::test]
async fn a_gzip_bomb_is_refused_and_a_compressed_answer_is_inflated() {
    let demo = demo().await;
    let bomb = |text: &str| {
        let headers = vec![("X-Demo-Fault".to_owned(), text.to_owned())];
        Request { headers, ..get(&demo, "/api/projects") }
    };
    let world = World::with(Options { response_bytes: 100_000, ..Options::default() });
    let error = world.read(bomb("gzip-bomb=1073741824")).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 100_000, .. }), "{error:?}");
    let error = world.read(bomb("gzip-bomb=20000000")).await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { limit: 100_000, .. }), "{error:?}");
    let answer = world.read(bomb("gzip-bomb=90000")).await.unwrap();
    assert_eq!((answer.body.len(), answer.header("content-encoding")), (90_000, None));

    let server = Server::always(with_status("200 OK", "Content-Encoding: gzip\r\n", "no gzip")).await;
    let error = world.read(get(&server.origin, "/")).await.unwrap_err();
    assert!(everything(&error).contains("compression is broken"), "{error:?}");
}

#[tokio::test]
async fn a_silent_server_times_out() {
    let server = Server::start(|_, _| vec![Act::Pause(LONG)]).await;
    let begun = Instant::now();
    let error = World::with(once()).read(get(&server.origin, "/slow")).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { ms: 300, .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(error.to_string(), format!("GET {}/slow: no answer within 300 ms", server.origin));
}

#[tokio::test]
async fn a_dripping_server_is_bounded_by_the_whole_deadline() {
    let server = Server::start(|_, _| {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
        vec![say(head), Act::Flood(b"a".to_vec(), Duration::from_millis(20))]
    })
    .await;
    let begun = Instant::now();
    let options = Options { request_timeout: Duration::from_millis(300), ..Options::default() };
    let error = World::with(options).read(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(server.seen().len(), 1, "an answer had begun: not tried again");
}

#[tokio::test]
async fn nobody_listening_is_a_failed_connect() {
    let error = World::new().read(get(&nobody().await, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
}

#[tokio::test]
async fn an_unknown_name_is_a_failed_connect() {
    let origin = base::Origin::parse("http://no-such-host.invalid").unwrap();
    let error = World::with(Options { retries: 0, ..Options::default() }).read(get(&origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Connect { .. }), "{error:?}");
}

#[tokio::test]
async fn an_origin_never_has_more_calls_than_its_limit() {
    let script = |_, _: &_| vec![Act::Pause(Duration::from_millis(30)), say(&ok(""))];
    let (one, other) = (Server::start(script).await, Server::start(script).await);
    let world = Arc::new(World::with(Options { calls_per_origin: 3, ..Options::default() }));
    let calls: Vec<_> = (0..40)
        .map(|n| {
            let (world, origin) =
                (Arc::clone(&world), if n % 2 == 0 { one.origin.clone() } else { other.origin.clone() });
            tokio::spawn(async move { world.read(get(&origin, "/")).await.unwrap() })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().status, 200);
    }
    assert_eq!((one.most_busy(), other.most_busy()), (3, 3), "as many as allowed, each origin for itself");
    assert_eq!((one.seen().len(), other.seen().len()), (20, 20));
}

#[tokio::test]
async fn a_cancelled_call_gives_its_place_back() {
    let server = Server::start(|nth, _| match nth {
        0 => vec![Act::Pause(LONG)],
        _ => vec![say(&ok(""))],
    })
    .await;
    let world = World::with(Options { calls_per_origin: 1, ..Options::default() });
    let stuck = tokio::time::timeout(Duration::from_millis(100), world.read(get(&server.origin, "/"))).await;
    assert!(stuck.is_err());
    assert_eq!(world.read(get(&server.origin, "/")).await.unwrap().status, 200);
}
