//! Rates that a catalog names, and those that a server signals.
//! Invariant: waits go through the clock, so these tests take no time.

use std::sync::Arc;
use std::time::Duration;

use base::Request;
use ports::upstream::{Error, Pace};

use crate::server::{Act, Server, ok, say, with_status};
use crate::world::{World, demo, get};

const CALM: Pace = Pace { per_second: 4.0, burst: 2, concurrent: None };

#[tokio::test]
async fn calls_leave_at_the_pace_of_their_catalog() {
    let server = Server::always(ok("")).await;
    let world = World::new();
    for _ in 0..5 {
        world.read_at(CALM, get(&server.origin, "/")).await.unwrap();
    }
    assert_eq!(world.slept(), [Duration::from_millis(250); 3]);
    // Another origin has a bucket of its own, and a call without a pace waits for none.
    let other = Server::always(ok("")).await;
    world.read_at(CALM, get(&other.origin, "/")).await.unwrap();
    world.read(get(&server.origin, "/")).await.unwrap();
    assert_eq!(world.slept().len(), 3);
}

#[tokio::test]
async fn tries_take_turns_too() {
    let server = Server::start(|nth, _| match nth {
        0 => vec![say(&with_status("503 Busy", "", ""))],
        _ => vec![say(&ok("yes"))],
    })
    .await;
    let world = World::new();
    let slow = Pace { per_second: 0.1, burst: 1, concurrent: None };
    assert_eq!(world.read_at(slow, get(&server.origin, "/")).await.unwrap().body, b"yes");
    assert_eq!(world.slept(), [Duration::from_secs(10)]);
}

#[tokio::test]
async fn no_more_calls_at_once_than_the_catalog_says() {
    let server = Server::start(|_, _| vec![Act::Pause(Duration::from_millis(30)), say(&ok(""))]).await;
    let world = Arc::new(World::new());
    let pace = Pace { per_second: 1000.0, burst: 1000, concurrent: Some(2) };
    let calls: Vec<_> = (0..12)
        .map(|_| {
            let (world, request) = (Arc::clone(&world), get(&server.origin, "/"));
            tokio::spawn(async move { world.read_at(pace, request).await.unwrap() })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(server.most_busy(), 2);
}

#[tokio::test]
async fn a_pace_that_is_none_is_refused() {
    let server = Server::always(ok("")).await;
    let pace = Pace { per_second: 0.0, burst: 1, concurrent: None };
    let error = World::new().read_at(pace, get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_spent_limit_holds_up_the_calls_after_it() {
    let forms = [
        ("RateLimit-Remaining: 0\r\nRateLimit-Reset: 5\r\n", 5),
        ("RateLimit: \"a\";r=0;t=30\r\n", 30),
        // The clock of these tests stands in 1994, before what counts as a moment: seconds, then.
        ("X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 9\r\n", 9),
    ];
    for (headers, seconds) in forms {
        let server = Server::always(with_status("200 OK", headers, "")).await;
        let world = World::new();
        world.read(get(&server.origin, "/")).await.unwrap();
        assert_eq!(world.slept(), []);
        world.read(get(&server.origin, "/")).await.unwrap();
        assert_eq!(world.slept(), [Duration::from_secs(seconds)], "{headers}");
        // Someone else's credential, someone else's limit.
        world.read_as("other", get(&server.origin, "/")).await.unwrap();
        assert_eq!(world.slept().len(), 1);
    }
}

#[tokio::test]
async fn an_origin_that_is_always_spent_puts_no_call_off_for_ever() {
    let spent = "RateLimit-Remaining: 0\r\nRateLimit-Reset: 20\r\n";
    let server =
        Server::start(move |_, _| vec![Act::Pause(Duration::from_millis(5)), say(&with_status("200 OK", spent, ""))])
            .await;
    let world = Arc::new(World::with(upstream::Options { calls_per_origin: 1, ..upstream::Options::default() }));
    let calls: Vec<_> = (0..12)
        .map(|_| {
            let (world, request) = (Arc::clone(&world), get(&server.origin, "/"));
            tokio::spawn(async move { world.read(request).await.unwrap().status })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
    assert!(world.slept().len() <= 12 * 3, "{:?}", world.slept());
}

#[tokio::test]
async fn a_refused_write_holds_up_the_calls_after_it() {
    let server = Server::start(|nth, _| match nth {
        0 => vec![say(&with_status("429 Slow", "Retry-After: 4\r\n", ""))],
        _ => vec![say(&ok("yes"))],
    })
    .await;
    let world = World::new();
    assert_eq!(world.write(get(&server.origin, "/")).await.unwrap().status, 429);
    assert_eq!(world.read(get(&server.origin, "/")).await.unwrap().status, 200);
    assert_eq!(world.slept(), [Duration::from_secs(4)]);
}

#[tokio::test]
async fn too_long_a_pause_is_not_waited_for() {
    let server = Server::always(with_status("200 OK", "RateLimit-Remaining: 0\r\nRateLimit-Reset: 31\r\n", "")).await;
    let world = World::new();
    for _ in 0..3 {
        world.read(get(&server.origin, "/")).await.unwrap();
    }
    assert_eq!(world.slept(), []);
}

#[tokio::test]
async fn the_demos_own_limit_is_heeded() {
    let demo = demo().await;
    let world = World::new();
    let limited = || {
        let headers = vec![("X-Demo-Fault".to_owned(), "rate=3".to_owned())];
        Request { headers, ..get(&demo, "/api/projects") }
    };
    for _ in 0..3 {
        assert_eq!(world.read(limited()).await.unwrap().status, 200);
    }
    assert_eq!(world.slept(), []);
    let _ = world.read(limited()).await.unwrap();
    assert!(!world.slept().is_empty(), "the third answer said that nothing is left");
}
