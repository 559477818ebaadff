//! Tests of the faults: each breaks the answer in its way, applies as often as `times` allows, and is before or after the effect.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::raw_http::{JSON, RawReply};
use tokio::io::AsyncReadExt;

use crate::served::Served;

const TARGET: &str = "GET /api/projects/OPS/tickets/42";
const CREATE: &str = "POST /api/projects/OPS/tickets";

async fn get_with_fault(served: &Served, fault: &str) -> RawReply {
    served.ask(TARGET, &[("X-Demo-Fault", fault)], b"").await
}

#[tokio::test]
async fn statuses_redirects_and_waits_are_answers() {
    let served = Served::start().await;
    for status in [400, 404, 500, 503, 599] {
        let reply = get_with_fault(&served, &format!("status={status}")).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (status, "fault"));
    }
    let reply = get_with_fault(&served, "redirect=http://foreign.invalid/x?y=z").await;
    assert_eq!((reply.status, reply.header("location")), (302, Some("http://foreign.invalid/x?y=z")));
    let reply = get_with_fault(&served, "redirect=/api/projects;status=307").await;
    assert_eq!((reply.status, reply.header("location")), (307, Some("/api/projects")));
    let reply = get_with_fault(&served, "retry-after=7").await;
    assert_eq!((reply.status, reply.header("retry-after")), (429, Some("7")));
}

#[tokio::test]
async fn slow_delays_the_answer_and_drip_its_bytes() {
    let served = Served::start().await;
    let start = Instant::now();
    assert_eq!(get_with_fault(&served, "slow=300").await.status, 200);
    assert!(start.elapsed() >= Duration::from_millis(300));
    let mut stream = served.send_only("GET /api/projects/OPS", &[("X-Demo-Fault", "drip=5")], b"").await;
    let (mut bytes, mut reads, mut buffer) = (Vec::new(), 0, [0; 4096]);
    loop {
        let count = stream.read(&mut buffer).await.unwrap();
        if count == 0 {
            break;
        }
        reads += 1;
        bytes.extend(&buffer[..count]);
    }
    let reply = RawReply::parse(&bytes);
    assert_eq!(reply.json()["key"], "OPS");
    // Some bytes arrive together on a busy machine, but not many.
    assert!(reads * 8 > reply.body.len(), "{reads} reads for {} bytes", reply.body.len());
}

#[tokio::test]
async fn truncate_promises_more_than_comes() {
    let served = Served::start().await;
    let correct = served.ask(TARGET, &[], b"").await;
    for (fault, missing) in [("truncate", 64), ("truncate=5", 5)] {
        let (bytes, _) = served.raw(TARGET, &[("X-Demo-Fault", fault)], b"").await;
        let reply = RawReply::parse(&bytes);
        assert_eq!(reply.body, correct.body);
        let promised: usize = reply.header("content-length").unwrap().parse().unwrap();
        assert_eq!(promised, correct.body.len() + missing);
    }
}

#[tokio::test]
async fn close_resets_in_the_middle() {
    let served = Served::start().await;
    let correct = served.ask(TARGET, &[], b"").await;
    let (bytes, ended) = served.raw(TARGET, &[("X-Demo-Fault", "close")], b"").await;
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
    let reply = RawReply::parse(&bytes);
    assert_eq!(reply.body, correct.body[..correct.body.len() / 2]);
    assert_eq!(reply.header("content-length").unwrap(), correct.body.len().to_string());
    let (bytes, ended) = served.raw(TARGET, &[("X-Demo-Fault", "close;when=before")], b"").await;
    assert_eq!((bytes.len(), ended.unwrap_err().kind()), (0, ErrorKind::ConnectionReset));
    assert_eq!(served.ask(TARGET, &[], b"").await.status, 200);
}

#[tokio::test]
async fn each_broken_body_is_broken_in_its_own_way() {
    let served = Served::start().await;
    let ticket = get_with_fault(&served, "wrong-type").await.json();
    assert_eq!((&ticket["number"], &ticket["title"].is_string()), (&"42".into(), &true));
    let page = get_with_fault(&served, "not-json").await;
    assert_eq!(page.header("content-type"), Some("application/json"));
    assert!(serde_json::from_slice::<Value>(&page.body).is_err());
    let deep = get_with_fault(&served, "deep").await;
    assert_eq!(deep.body.len(), 200_000);
    assert!(deep.body[..100_000].iter().all(|byte| *byte == b'['));
    assert!(serde_json::from_slice::<Value>(&deep.body).unwrap_err().to_string().contains("recursion"));
    for bytes in [11, 100, 65_536, 3_000_000] {
        let huge = get_with_fault(&served, &format!("huge={bytes}")).await;
        assert_eq!(huge.header("content-length").unwrap(), bytes.to_string());
        assert_eq!((huge.body.len(), huge.json()["data"].is_string()), (bytes, true));
    }
}

#[tokio::test]
async fn a_gzip_bomb_is_small_on_the_wire() {
    let served = Served::start().await;
    let bomb = get_with_fault(&served, "gzip-bomb").await;
    assert_eq!((bomb.status, bomb.header("content-encoding")), (200, Some("gzip")));
    assert!(bomb.body.starts_with(&[0x1f, 0x8b, 8]) && bomb.body.len() < 100_000, "{}", bomb.body.len());
    assert_eq!(bomb.body[bomb.body.len() - 4..], (64_u32 << 20).to_le_bytes());
}

#[tokio::test]
async fn a_rate_is_kept_and_announced() {
    let served = Served::start().await;
    // The window of the rate limit may end between two requests. The next attempt then starts with a new window.
    for attempt in 0..3 {
        let mut answers = Vec::new();
        for _ in 0..4 {
            let reply = get_with_fault(&served, &format!("rate=3;key=r{attempt}")).await;
            assert_eq!(reply.header("ratelimit-limit"), Some("3"));
            assert_eq!((reply.header("ratelimit-reset"), reply.header("x-ratelimit-limit")), (Some("1"), Some("3")));
            assert_eq!(reply.header("x-ratelimit-remaining"), reply.header("ratelimit-remaining"));
            assert!(reply.header("x-ratelimit-reset").unwrap().parse::<u64>().unwrap() > 1_700_000_000);
            assert_eq!(reply.header("retry-after").is_some(), reply.status == 429);
            answers.push((reply.status, reply.header("ratelimit-remaining").unwrap().to_owned()));
        }
        let expected = [(200, "2"), (200, "1"), (200, "0"), (429, "0")];
        if answers.iter().map(|(status, left)| (*status, left.as_str())).eq(expected) {
            tokio::time::sleep(Duration::from_millis(1050)).await;
            assert_eq!(get_with_fault(&served, &format!("rate=3;key=r{attempt}")).await.status, 200);
            return;
        }
    }
    panic!("no window held four requests");
}

#[tokio::test]
async fn a_fault_ends_after_its_times() {
    let served = Served::start().await;
    let statuses = async |fault: &str, count: usize| {
        let mut statuses = Vec::new();
        for _ in 0..count {
            statuses.push(get_with_fault(&served, fault).await.status);
        }
        statuses
    };
    assert_eq!(statuses("status=503;times=2", 4).await, [503, 503, 200, 200]);
    assert_eq!(statuses("status=503;times=1;key=a", 2).await, [503, 200]);
    assert_eq!(statuses("status=503;times=1;key=b", 2).await, [503, 200]);
    served.send("POST /control/reset", &json!({})).await;
    assert_eq!(statuses("status=503;times=1;key=a", 2).await, [503, 200]);
}

#[tokio::test]
async fn rules_break_what_they_match() {
    let served = Served::start().await;
    let rules = json!({"rules": [
        {"fault": "status=500;times=1", "method": "GET", "path": "/api/projects"},
        {"fault": "retry-after=1", "path": "/paging/*"},
    ]});
    assert_eq!(served.send("POST /control/faults", &rules).await.status, 200);
    let status = async |target: &str| served.ask(&format!("GET {target}"), &[], b"").await.status;
    assert_eq!((status("/api/projects").await, status("/api/projects").await), (500, 200));
    assert_eq!(
        (status("/paging/page").await, status("/paging/link").await, status("/api/people").await),
        (429, 429, 200)
    );
    let shown = served.get("/control/faults").await;
    assert_eq!((&shown["rules"][0]["hits"], &shown["rules"][1]["hits"]), (&1.into(), &2.into()));
    let refused = served.send("POST /control/faults", &json!({"rules": [{"fault": "nope"}]})).await;
    assert_eq!((refused.status, refused.error_code().as_str()), (400, "bad_fault"));
    assert_eq!(status("/paging/page").await, 429);
    served.send("POST /control/faults", &json!({"rules": [{"fault": "status=500"}]})).await;
    assert_eq!((status("/nowhere").await, status("/control/faults").await), (500, 200));
    served.send("POST /control/faults", &json!({"rules": []})).await;
    assert_eq!(status("/paging/page").await, 200);
}

#[tokio::test]
async fn a_fault_that_cannot_be_parsed_is_refused() {
    let served = Served::start().await;
    for fault in ["nope", "status=abc", "slow", "close;times=x", ""] {
        let reply = get_with_fault(&served, fault).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (400, "bad_fault"), "{fault}");
    }
}

/// After a lost answer, the write has happened or not. A test of a client needs both cases.
#[tokio::test]
async fn a_fault_is_before_or_after_the_effect() {
    let served = Served::start().await;
    let ticket = json!({"title": "Lost?"}).to_string();
    for (fault, effects) in [
        ("status=503", 0),
        ("close;when=before", 0),
        ("rate=0", 0),
        ("status=503;when=after", 1),
        ("close", 2),
        ("truncate", 3),
        ("not-json", 4),
    ] {
        drop(served.raw(CREATE, &[JSON, ("X-Demo-Fault", fault)], ticket.as_bytes()).await);
        assert_eq!(served.effects().await.len(), effects, "{fault}");
    }
}
