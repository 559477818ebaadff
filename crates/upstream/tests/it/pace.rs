//! Tests of the rates that a catalog sets, and of the pauses that answers ask for.
//! Invariant: all waits go through the test clock, so these tests take no time.

use std::sync::Arc;
use std::time::Duration;

use base::Request;
use ports::upstream::{Error, Pace};

use crate::fixture::{Fixture, demo, get};
use crate::server::{Action, Server, ok, reply, with_status};

const CALM: Pace = Pace { per_second: 4.0, burst: 2, concurrent: None };

#[tokio::test]
async fn calls_leave_at_the_pace_of_their_catalog() {
    let server = Server::always(ok("")).await;
    let fixture = Fixture::new();
    for _ in 0..5 {
        fixture.read_at(CALM, get(&server.origin, "/")).await.unwrap();
    }
    assert_eq!(fixture.slept(), [Duration::from_millis(250); 3]);
    // Another origin has a token bucket of its own, and a call without a pace does not wait.
    let other = Server::always(ok("")).await;
    fixture.read_at(CALM, get(&other.origin, "/")).await.unwrap();
    fixture.read(get(&server.origin, "/")).await.unwrap();
    assert_eq!(fixture.slept().len(), 3);
}

#[tokio::test]
async fn a_retry_waits_for_its_turn_too() {
    let server = Server::start(|nth, _| match nth {
        0 => vec![reply(&with_status("503 Busy", "", ""))],
        _ => vec![reply(&ok("yes"))],
    })
    .await;
    let fixture = Fixture::new();
    let slow = Pace { per_second: 0.1, burst: 1, concurrent: None };
    assert_eq!(fixture.read_at(slow, get(&server.origin, "/")).await.unwrap().body, b"yes");
    assert_eq!(fixture.slept(), [Duration::from_secs(10)]);
}

#[tokio::test]
async fn an_origin_has_no_more_calls_at_once_than_the_catalog_allows() {
    let server = Server::start(|_, _| vec![Action::Pause(Duration::from_millis(30)), reply(&ok(""))]).await;
    let fixture = Arc::new(Fixture::new());
    let pace = Pace { per_second: 1000.0, burst: 1000, concurrent: Some(2) };
    let calls: Vec<_> = (0..12)
        .map(|_| {
            let fixture = Arc::clone(&fixture);
            let request = get(&server.origin, "/");
            tokio::spawn(async move { fixture.read_at(pace, request).await.unwrap() })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(server.max_concurrent(), 2);
}

#[tokio::test]
async fn an_impossible_rate_is_refused() {
    let server = Server::always(ok("")).await;
    let pace = Pace { per_second: 0.0, burst: 1, concurrent: None };
    let error = Fixture::new().read_at(pace, get(&server.origin, "/")).await.unwrap_err();
    assert!(matches!(error, Error::Invalid { .. }), "{error:?}");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_spent_limit_delays_later_calls() {
    let forms = [
        ("RateLimit-Remaining: 0\r\nRateLimit-Reset: 5\r\n", 5),
        ("RateLimit: \"a\";r=0;t=30\r\n", 30),
        // A reset of 9 is a number of seconds: it is far too small for a moment since 1970.
        ("X-RateLimit-Remaining: 0\r\nX-RateLimit-Reset: 9\r\n", 9),
    ];
    for (headers, seconds) in forms {
        let server = Server::always(with_status("200 OK", headers, "")).await;
        let fixture = Fixture::new();
        fixture.read(get(&server.origin, "/")).await.unwrap();
        assert_eq!(fixture.slept(), []);
        fixture.read(get(&server.origin, "/")).await.unwrap();
        assert_eq!(fixture.slept(), [Duration::from_secs(seconds)], "{headers}");
        // Another tenant has another credential and another limit.
        fixture.read_as("other", get(&server.origin, "/")).await.unwrap();
        assert_eq!(fixture.slept().len(), 1);
    }
}

#[tokio::test]
async fn an_origin_whose_limit_is_always_spent_delays_no_call_forever() {
    let spent = "RateLimit-Remaining: 0\r\nRateLimit-Reset: 20\r\n";
    let server = Server::start(move |_, _| {
        vec![Action::Pause(Duration::from_millis(5)), reply(&with_status("200 OK", spent, ""))]
    })
    .await;
    let fixture = Arc::new(Fixture::with(upstream::Options { calls_per_origin: 1, ..upstream::Options::default() }));
    let calls: Vec<_> = (0..12)
        .map(|_| {
            let fixture = Arc::clone(&fixture);
            let request = get(&server.origin, "/");
            tokio::spawn(async move { fixture.read(request).await.unwrap().status })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
    assert!(fixture.slept().len() <= 12 * 3, "{:?}", fixture.slept());
}

#[tokio::test]
async fn a_refused_write_delays_later_calls() {
    let server = Server::start(|nth, _| match nth {
        0 => vec![reply(&with_status("429 Slow", "Retry-After: 4\r\n", ""))],
        _ => vec![reply(&ok("yes"))],
    })
    .await;
    let fixture = Fixture::new();
    assert_eq!(fixture.write(get(&server.origin, "/")).await.unwrap().status, 429);
    assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().status, 200);
    assert_eq!(fixture.slept(), [Duration::from_secs(4)]);
}

#[tokio::test]
async fn a_pause_beyond_the_bound_is_not_waited_for() {
    let server = Server::always(with_status("200 OK", "RateLimit-Remaining: 0\r\nRateLimit-Reset: 31\r\n", "")).await;
    let fixture = Fixture::new();
    for _ in 0..3 {
        fixture.read(get(&server.origin, "/")).await.unwrap();
    }
    assert_eq!(fixture.slept(), []);
}

#[tokio::test]
async fn a_spent_limit_of_the_demo_delays_the_next_call() {
    let demo = demo().await;
    let fixture = Fixture::new();
    let limited = || {
        let headers = vec![("X-Demo-Fault".to_owned(), "rate=3".to_owned())];
        Request { headers, ..get(&demo, "/api/projects") }
    };
    for _ in 0..3 {
        assert_eq!(fixture.read(limited()).await.unwrap().status, 200);
    }
    assert_eq!(fixture.slept(), []);
    let _ = fixture.read(limited()).await.unwrap();
    assert!(!fixture.slept().is_empty(), "the third answer said that nothing is left");
}

#[tokio::test]
async fn a_tenant_with_many_slow_calls_does_not_delay_the_call_of_another_tenant() {
    // The server answers after a moment, so that all but two calls of the greedy tenant wait.
    let server = Server::start(|_, _| vec![Action::Pause(Duration::from_millis(5)), reply(&ok(""))]).await;
    let options = upstream::Options { calls_per_origin: 2, ..upstream::Options::default() };
    let fixture = Arc::new(Fixture::with(options));
    let call = |tenant: &'static str, path: &'static str| {
        let (fixture, request) = (Arc::clone(&fixture), get(&server.origin, path));
        tokio::spawn(async move { fixture.read_as(tenant, request).await.unwrap() })
    };
    let mut calls: Vec<_> = (0..60).map(|_| call("greedy", "/greedy")).collect();
    while server.received().is_empty() {
        tokio::task::yield_now().await;
    }
    calls.push(call("modest", "/modest"));
    for call in calls {
        call.await.unwrap();
    }
    let lines: Vec<String> = server.received().iter().map(|request| request.line.clone()).collect();
    let turn = lines.iter().position(|line| line.contains("/modest")).unwrap();
    assert!(turn < 12, "the other tenant's call was number {turn} of {}", lines.len());
}
