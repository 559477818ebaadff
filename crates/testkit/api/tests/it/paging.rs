//! Tests of the paging forms: each returns all tickets once, and misleads the client only if the query asks for it.

use serde_json::{Value, json};
use testkit::raw_http::RawReply;

use crate::served::{Served, items, world};

fn all_tickets() -> Vec<Value> {
    serde_json::to_value(&world().tickets).unwrap().as_array().unwrap().clone()
}

/// Returns the target of the link `rel="next"`. If the link is to the tested server, its origin is removed.
fn next_link(served: &Served, reply: &RawReply) -> Option<String> {
    let links = reply.header("link").unwrap();
    let next = links.split(", ").find(|link| link.ends_with("rel=\"next\""))?;
    let url = next.split(['<', '>']).nth(1).unwrap();
    Some(url.replace(&format!("http://{}", served.address), ""))
}

#[tokio::test]
async fn page_and_offset_count() {
    let served = Served::start().await;
    let (mut by_page, mut by_offset) = (Vec::new(), Vec::new());
    for page in 1..=17 {
        let answer = served.get(&format!("/paging/page?page={page}")).await;
        assert_eq!((&answer["page"], &answer["total"]), (&page.into(), &321.into()));
        by_page.extend(items(&answer));
        let answer = served.get(&format!("/paging/offset?offset={}", (page - 1) * 20)).await;
        assert_eq!(
            (&answer["offset"], &answer["limit"], &answer["total"]),
            (&((page - 1) * 20).into(), &20.into(), &321.into())
        );
        by_offset.extend(items(&answer));
    }
    assert!(by_page == all_tickets() && by_offset == all_tickets());
    assert!(items(&served.get("/paging/offset?offset=18446744073709551615").await).is_empty());
    assert_eq!(items(&served.get("/paging/offset?limit=1000").await).len(), 100);
    assert_eq!(items(&served.get("/paging/page?per_page=1000").await).len(), 100);
}

#[tokio::test]
async fn cursors_lead_to_the_end() {
    let served = Served::start().await;
    for (limit, size) in [("", 20), ("&limit=7", 7), ("&limit=1000", 100)] {
        let (mut tickets, mut cursor) = (Vec::new(), String::new());
        loop {
            let answer = served.get(&format!("/paging/cursor?{cursor}{limit}").replace("?&", "?")).await;
            assert!(items(&answer).len() <= size);
            tickets.extend(items(&answer));
            let Some(next) = answer["next_cursor"].as_str() else { break };
            cursor = format!("cursor={next}");
        }
        assert!(tickets == all_tickets(), "{limit}: {}", tickets.len());
    }
    let refused = served.ask("GET /paging/cursor?cursor=zzz", &[], b"").await;
    assert_eq!((refused.status, refused.error_code().as_str()), (400, "bad_request"));
}

/// If a ticket is created or deleted between two pages, no other ticket is repeated or skipped.
#[tokio::test]
async fn a_cursor_survives_writes() {
    let served = Served::start().await;
    let first = served.get("/paging/cursor?limit=10").await;
    served.ask("DELETE /api/projects/API/tickets/10", &[], b"").await;
    served.ask("DELETE /api/projects/API/tickets/3", &[], b"").await;
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = served.get(&format!("/paging/cursor?limit=1&cursor={cursor}")).await;
    assert_eq!(items(&second)[0], all_tickets()[10]);
}

#[tokio::test]
async fn a_body_carries_the_cursor() {
    let served = Served::start().await;
    let (mut tickets, mut position) = (Vec::new(), json!({}));
    loop {
        let answer = served.send("POST /paging/body", &position).await.json();
        tickets.extend(items(&answer));
        if answer["has_more"] == false {
            assert!(answer["next_cursor"].is_null());
            break;
        }
        position = json!({"cursor": answer["next_cursor"], "limit": 50});
    }
    assert!(tickets == all_tickets());
    assert!(served.effects().await.is_empty());
    assert_eq!(served.send("POST /paging/body", &json!({"limit": 0})).await.status, 400);
    assert_eq!(served.send("POST /paging/body", &json!({"nope": 0})).await.status, 400);
    assert_eq!(served.ask("POST /paging/body", &[], b"{}").await.status, 415);
    let (repeating, first) = ("POST /paging/body?repeat=1", json!({}));
    let cursor = served.send(repeating, &first).await.json()["next_cursor"].clone();
    assert_eq!(served.send(repeating, &json!({"cursor": cursor})).await.json()["next_cursor"], cursor);
}

#[tokio::test]
async fn links_lead_to_the_end() {
    let served = Served::start().await;
    let (mut tickets, mut target) = (Vec::new(), "/paging/link?per_page=25".to_owned());
    loop {
        let reply = served.ask(&format!("GET {target}"), &[], b"").await;
        tickets.extend(reply.json().as_array().unwrap().clone());
        let Some(next) = next_link(&served, &reply) else { break };
        assert!(next.starts_with("/paging/link?"), "{next}");
        target = next;
    }
    assert!(tickets == all_tickets());
}

#[tokio::test]
async fn next_urls_lead_to_the_end() {
    let served = Served::start().await;
    let origin = format!("http://{}", served.address);
    let (mut tickets, mut target) = (Vec::new(), "/paging/next-url".to_owned());
    loop {
        let answer = served.get(&target).await;
        tickets.extend(items(&answer));
        let Some(next) = answer["next"].as_str() else { break };
        target = next.strip_prefix(&origin).unwrap().to_owned();
    }
    assert!(tickets == all_tickets());
}

#[tokio::test]
async fn next_may_point_to_another_origin() {
    let served = Served::start().await;
    for (next, origin) in [("foreign", "http://foreign.invalid/"), ("http://127.0.0.1:9", "http://127.0.0.1:9/")] {
        let reply = served.ask(&format!("GET /paging/link?next={next}"), &[], b"").await;
        assert!(next_link(&served, &reply).unwrap().starts_with(origin));
        let url = served.get(&format!("/paging/next-url?next={next}")).await["next"].clone();
        assert!(url.as_str().unwrap().starts_with(origin), "{url}");
    }
    assert_eq!(served.ask("GET /paging/next-url?next=x", &[], b"").await.status, 400);
}

#[tokio::test]
async fn a_repeated_cursor_never_ends() {
    let served = Served::start().await;
    let first = served.get("/paging/cursor?repeat=1&limit=100").await["next_cursor"].clone();
    let cursor = first.as_str().unwrap();
    let mut target = format!("/paging/next-url?repeat=1&after={cursor}");
    let mut link = "/paging/link?repeat=1&per_page=100".to_owned();
    for _ in 0..6 {
        let repeated = served.get(&format!("/paging/cursor?repeat=1&limit=100&cursor={cursor}")).await;
        assert_eq!(repeated["next_cursor"], first);
        let answer = served.get(&target).await;
        assert_eq!(items(&answer)[0], all_tickets()[100]);
        target = answer["next"].as_str().unwrap().replace(&format!("http://{}", served.address), "");
        let reply = served.ask(&format!("GET {link}"), &[], b"").await;
        link = next_link(&served, &reply).unwrap();
        assert!(link.contains("page=2&"), "{link}");
    }
}
