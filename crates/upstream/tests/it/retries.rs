//! Tests of retries: the failures that are retried, the number of retries, and the waits before them.
//! Invariant: a write reaches its server once.

use std::time::Duration;

use ports::upstream::Error;
use upstream::Options;

use crate::fixture::{Fixture, closed_port, get, single_try};
use crate::server::{Action, Server, ok, reply, with_status};

/// Starts a server whose first `times` answers have this status.
async fn failing_server(times: usize, status: &'static str, headers: &'static str) -> Server {
    Server::start(
        move |nth, _| {
            if nth < times { vec![reply(&with_status(status, headers, "no"))] } else { vec![reply(&ok("yes"))] }
        },
    )
    .await
}

#[tokio::test]
async fn a_read_is_retried_and_a_write_is_not() {
    for status in ["429 Slow", "502 Bad", "503 Busy", "504 Late"] {
        let server = failing_server(2, status, "").await;
        let fixture = Fixture::new();
        assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().body, b"yes");
        assert_eq!(server.received().len(), 3);
        let slept = fixture.slept();
        assert_eq!(slept.len(), 2);
        assert!(slept[0] >= Duration::from_millis(125) && slept[0] <= Duration::from_millis(250), "{slept:?}");
        assert!(slept[1] >= Duration::from_millis(250) && slept[1] <= Duration::from_millis(500), "{slept:?}");

        let server = failing_server(2, status, "Retry-After: 1\r\n").await;
        let answer = fixture.write(get(&server.origin, "/")).await.unwrap();
        assert_eq!((answer.status.to_string().as_str(), server.received().len()), (&status[..3], 1));
    }
}

#[tokio::test]
async fn the_last_answer_is_returned_when_no_retry_is_left() {
    let server = failing_server(usize::MAX, "503 Busy", "").await;
    let fixture = Fixture::new();
    let answer = fixture.read(get(&server.origin, "/")).await.unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (503, b"no".as_slice()));
    assert_eq!((server.received().len(), fixture.slept().len()), (4, 3));

    let fixture = Fixture::with(Options { retries: 0, ..Options::default() });
    assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().status, 503);
    assert_eq!(server.received().len(), 5);
}

#[tokio::test]
async fn retry_after_is_slept_through_the_clock() {
    let server = failing_server(1, "429 Slow", "Retry-After: 7\r\n").await;
    let fixture = Fixture::new();
    assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().body, b"yes");
    assert_eq!(fixture.slept(), [Duration::from_secs(7)]);

    let server = failing_server(1, "503 Busy", "Retry-After: Sun, 06 Nov 1994 08:49:47 GMT\r\n").await;
    let fixture = Fixture::new();
    assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().body, b"yes");
    assert_eq!(fixture.slept(), [Duration::from_secs(10)]);
}

#[tokio::test]
async fn an_answer_with_a_retry_after_beyond_the_bound_is_returned() {
    let server = failing_server(1, "429 Slow", "Retry-After: 31\r\n").await;
    let fixture = Fixture::new();
    let answer = fixture.read(get(&server.origin, "/")).await.unwrap();
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("31")));
    assert_eq!(fixture.slept(), []);
}

#[tokio::test]
async fn waits_stay_within_twice_the_request_timeout() {
    // Two waits of 25 s fit into the time limit of 60 s. A third wait does not fit.
    let server = failing_server(usize::MAX, "429 Slow", "Retry-After: 25\r\n").await;
    let fixture = Fixture::new();
    assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().status, 429);
    assert_eq!(fixture.slept(), [Duration::from_secs(25); 2]);
    assert_eq!(server.received().len(), 3);
}

#[tokio::test]
async fn a_lost_read_is_retried_and_a_lost_write_is_not() {
    let broken = || {
        Server::start(|nth, _| match nth {
            0 => vec![Action::Close],
            1 => vec![reply("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nye"), Action::Close],
            _ => vec![reply(&ok("yes"))],
        })
    };
    let server = broken().await;
    assert_eq!(Fixture::new().read(get(&server.origin, "/")).await.unwrap().body, b"yes");
    assert_eq!(server.received().len(), 3);

    let server = broken().await;
    let error = Fixture::new().write(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error:?}");
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn a_write_on_a_reused_connection_that_breaks_is_sent_once() {
    let server = Server::start(|nth, _| match nth {
        0 => vec![reply(&ok("first"))],
        _ => vec![Action::Close],
    })
    .await;
    let fixture = Fixture::new();
    fixture.read(get(&server.origin, "/")).await.unwrap();
    let error = fixture.write(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error:?}");
    assert_eq!((server.received().len(), server.connections()), (2, 1));
}

#[tokio::test]
async fn a_read_that_timed_out_is_retried_and_a_write_is_not() {
    let silent = || {
        Server::start(|nth, _| match nth {
            0 => vec![Action::Pause(Duration::from_secs(20))],
            _ => vec![reply(&ok("yes"))],
        })
    };
    let options = || Options { retries: 3, request_timeout: Duration::from_millis(400), ..single_try() };
    let server = silent().await;
    assert_eq!(Fixture::with(options()).read(get(&server.origin, "/")).await.unwrap().body, b"yes");
    assert_eq!(server.received().len(), 2);

    let server = silent().await;
    let error = Fixture::with(options()).write(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn a_failed_connect_is_retried_even_for_a_write() {
    let origin = closed_port().await;
    for writes in [false, true] {
        let fixture = Fixture::new();
        let request = get(&origin, "/");
        let result = if writes { fixture.write(request).await } else { fixture.read(request).await };
        assert!(matches!(result.unwrap_err(), Error::Connect { .. }));
        assert_eq!(fixture.slept().len(), 3);
    }
}
