//! What is tried again, how often and after how long.
//! Invariant: a write reaches its server once.

use std::time::Duration;

use ports::upstream::Error;
use upstream::Options;

use crate::server::{Act, Server, ok, say, with_status};
use crate::world::{World, get, nobody, once};

async fn failing(times: usize, status: &'static str, headers: &'static str) -> Server {
    Server::start(
        move |nth, _| {
            if nth < times { vec![say(&with_status(status, headers, "no"))] } else { vec![say(&ok("yes"))] }
        },
    )
    .await
}

#[tokio::test]
async fn a_read_is_tried_again_and_a_write_is_not() {
    for status in ["429 Slow", "502 Bad", "503 Busy", "504 Late"] {
        let server = failing(2, status, "").await;
        let world = World::new();
        assert_eq!(world.read(get(&server.origin, "/")).await.unwrap().body, b"yes");
        assert_eq!(server.seen().len(), 3);
        let slept = world.slept();
        assert_eq!(slept.len(), 2);
        assert!(slept[0] >= Duration::from_millis(125) && slept[0] <= Duration::from_millis(250), "{slept:?}");
        assert!(slept[1] >= Duration::from_millis(250) && slept[1] <= Duration::from_millis(500), "{slept:?}");

        let server = failing(2, status, "Retry-After: 1\r\n").await;
        let answer = world.write(get(&server.origin, "/")).await.unwrap();
        assert_eq!((answer.status.to_string().as_str(), server.seen().len()), (&status[..3], 1));
    }
}

#[tokio::test]
async fn the_last_answer_stands_when_the_tries_are_spent() {
    let server = failing(usize::MAX, "503 Busy", "").await;
    let world = World::new();
    let answer = world.read(get(&server.origin, "/")).await.unwrap();
    assert_eq!((answer.status, answer.body.as_slice()), (503, b"no".as_slice()));
    assert_eq!((server.seen().len(), world.slept().len()), (4, 3));

    let world = World::with(Options { retries: 0, ..Options::default() });
    assert_eq!(world.read(get(&server.origin, "/")).await.unwrap().status, 503);
    assert_eq!(server.seen().len(), 5);
}

#[tokio::test]
async fn retry_after_is_slept_through_the_clock() {
    let server = failing(1, "429 Slow", "Retry-After: 7\r\n").await;
    let world = World::new();
    assert_eq!(world.read(get(&server.origin, "/")).await.unwrap().body, b"yes");
    assert_eq!(world.slept(), [Duration::from_secs(7)]);

    let server = failing(1, "503 Busy", "Retry-After: Sun, 06 Nov 1994 08:49:47 GMT\r\n").await;
    let world = World::new();
    assert_eq!(world.read(get(&server.origin, "/")).await.unwrap().body, b"yes");
    assert_eq!(world.slept(), [Duration::from_secs(10)]);
}

#[tokio::test]
async fn too_long_a_retry_after_is_the_callers_to_see() {
    let server = failing(1, "429 Slow", "Retry-After: 31\r\n").await;
    let world = World::new();
    let answer = world.read(get(&server.origin, "/")).await.unwrap();
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("31")));
    assert_eq!(world.slept(), []);
}

#[tokio::test]
async fn waits_stay_within_twice_the_deadline() {
    // 25 s fit twice into 60 s; a third time would not.
    let server = failing(usize::MAX, "429 Slow", "Retry-After: 25\r\n").await;
    let world = World::new();
    assert_eq!(world.read(get(&server.origin, "/")).await.unwrap().status, 429);
    assert_eq!(world.slept(), [Duration::from_secs(25); 2]);
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn a_lost_read_is_tried_again_and_a_lost_write_is_not() {
    let broken = || {
        Server::start(|nth, _| match nth {
            0 => vec![Act::Close],
            1 => vec![say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nye"), Act::Close],
            _ => vec![say(&ok("yes"))],
        })
    };
    let server = broken().await;
    assert_eq!(World::new().read(get(&server.origin, "/")).await.unwrap().body, b"yes");
    assert_eq!(server.seen().len(), 3);

    let server = broken().await;
    let error = World::new().write(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error:?}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_write_on_a_kept_connection_that_breaks_is_sent_once() {
    let server = Server::start(|nth, _| match nth {
        0 => vec![say(&ok("first"))],
        _ => vec![Act::Close],
    })
    .await;
    let world = World::new();
    world.read(get(&server.origin, "/")).await.unwrap();
    let error = world.write(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error:?}");
    assert_eq!((server.seen().len(), server.connections()), (2, 1));
}

#[tokio::test]
async fn a_silent_read_is_tried_again_and_a_silent_write_is_not() {
    let silent = || {
        Server::start(|nth, _| match nth {
            0 => vec![Act::Pause(Duration::from_secs(20))],
            _ => vec![say(&ok("yes"))],
        })
    };
    let options = || Options { retries: 3, request_timeout: Duration::from_millis(400), ..once() };
    let server = silent().await;
    assert_eq!(World::with(options()).read(get(&server.origin, "/")).await.unwrap().body, b"yes");
    assert_eq!(server.seen().len(), 2);

    let server = silent().await;
    let error = World::with(options()).write(get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { .. }), "{error:?}");
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_failed_connect_is_tried_again_even_for_a_write() {
    let origin = nobody().await;
    for writes in [false, true] {
        let world = World::new();
        let request = get(&origin, "/");
        let result = if writes { world.write(request).await } else { world.read(request).await };
        assert!(matches!(result.unwrap_err(), Error::Connect { .. }));
        assert_eq!(world.slept().len(), 3);
    }
}
