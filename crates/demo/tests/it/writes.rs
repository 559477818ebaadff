//! Tests of the routes that write: a write happens once, is counted, and is refused with the mistakes in its fields.

use serde_json::{Value, json};
use testkit::raw_http::{JSON, RawReply};

use crate::served::{Served, items, world};

const CREATE: &str = "POST /api/projects/OPS/tickets";

async fn send_with_key(served: &Served, request: &str, key: &str, body: &Value) -> RawReply {
    let headers = [JSON, ("Idempotency-Key", key)];
    served.ask(request, &headers, body.to_string().as_bytes()).await
}

fn refused_fields(reply: &RawReply) -> Vec<String> {
    assert_eq!((reply.status, reply.error_code().as_str()), (422, "invalid"), "{}", reply.text());
    let json = reply.json();
    let fields = json["error"]["fields"].as_array().unwrap();
    fields.iter().map(|one| one["field"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_ticket_can_be_created_changed_closed_and_deleted() {
    let served = Served::start().await;
    let wanted =
        json!({"title": "New", "body": "a\tb", "priority": 1, "labels": ["x"], "owner": "zoë", "due": "2026-05-01"});
    let created = served.send(CREATE, &wanted).await;
    assert_eq!((created.status, created.header("location")), (201, Some("/api/projects/OPS/tickets/119")));
    let ticket = created.json();
    assert_eq!((&ticket["number"], &ticket["owner"]["name"]), (&119.into(), &"Zoë de Vries".into()));
    assert_eq!((&ticket["state"], &ticket["created_at"]), (&"open".into(), &"2026-04-01T00:00:01Z".into()));
    let one = "/api/projects/OPS/tickets/119";
    assert_eq!(served.get(one).await, ticket);
    assert_eq!(served.get("/api/projects/OPS/tickets").await["total"], 119);

    let patched =
        served.send(&format!("PATCH {one}"), &json!({"priority": 2, "owner": null, "due": null})).await.json();
    assert_eq!((&patched["priority"], &patched["owner"], &patched["title"]), (&2.into(), &Value::Null, &"New".into()));

    let comment = served.send(&format!("POST {one}/comments"), &json!({"text": "Hm.", "author": "ada"})).await;
    assert_eq!((comment.status, &comment.json()["id"]), (201, &601.into()));
    let closed = served.send(&format!("POST {one}/close"), &json!({"note": "Fixed."})).await;
    assert_eq!((closed.status, &closed.json()["state"]), (200, &"done".into()));
    let again = served.send(&format!("POST {one}/close"), &json!({"note": "Fixed."})).await;
    assert_eq!((again.status, again.error_code().as_str()), (409, "conflict"));
    let texts: Vec<Value> =
        items(&served.get(&format!("{one}/comments")).await).iter().map(|c| c["text"].clone()).collect();
    assert_eq!(texts, ["Hm.", "Fixed."]);

    let deleted = served.ask(&format!("DELETE {one}"), &[], b"").await;
    assert_eq!((deleted.status, deleted.body.len()), (204, 0));
    assert_eq!(served.ask(&format!("GET {one}"), &[], b"").await.status, 404);
    assert_eq!(served.ask(&format!("DELETE {one}"), &[], b"").await.status, 404);
    // The number of the deleted ticket and the ids of its comments are not used again.
    assert_eq!(served.send(CREATE, &json!({"title": "Next"})).await.json()["number"], 120);
    let next = served.send("POST /api/projects/OPS/tickets/120/comments", &json!({"text": "x"})).await;
    assert_eq!(next.json()["id"], 603);

    let effects = served.effects();
    let methods: Vec<&str> = effects.iter().map(|(call, _)| call.method.as_str()).collect();
    assert_eq!(methods, ["POST", "PATCH", "POST", "POST", "DELETE", "POST", "POST"]);
    assert!(effects.iter().zip(1..).all(|((call, number), expected)| *number == expected && call.key.is_none()));
}

#[tokio::test]
async fn a_new_ticket_keeps_the_lists_sorted() {
    let served = Served::start().await;
    served.send("POST /api/projects/API/tickets", &json!({"title": "Late"})).await;
    let all = items(&served.get("/api/tickets?per_page=100").await);
    let keys: Vec<_> =
        all.iter().map(|one| (one["project"].as_str().unwrap(), one["number"].as_u64().unwrap())).collect();
    assert!(keys.is_sorted() && keys.contains(&("API", 57)));
}

#[tokio::test]
async fn a_key_makes_two_calls_one_effect() {
    let served = Served::start().await;
    let body = json!({"title": "Once"});
    let first = send_with_key(&served, CREATE, "k-1", &body).await;
    let second = send_with_key(&served, CREATE, "k-1", &body).await;
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!((first.header("idempotency-replayed"), second.header("idempotency-replayed")), (None, Some("true")));
    assert_eq!(
        (&first.body, first.header("location"), first.header("etag")),
        (&second.body, second.header("location"), second.header("etag"))
    );
    for (request, body) in [
        (CREATE, json!({"title": "Other"})),
        ("POST /api/projects/WEB/tickets", body.clone()),
        ("PATCH /api/projects/OPS/tickets/1", body.clone()),
    ] {
        let reply = send_with_key(&served, request, "k-1", &body).await;
        assert_eq!((reply.status, reply.error_code().as_str()), (422, "idempotency_mismatch"), "{request}");
    }
    let effects = served.effects();
    assert_eq!((effects.len(), effects[0].0.key.as_deref()), (1, Some("k-1")));
    assert_eq!((effects[0].0.path.as_str(), effects[0].0.body_sha256.len()), ("/api/projects/OPS/tickets", 64));
    for (request, body) in [
        ("DELETE /api/projects/OPS/tickets/1", json!(null)),
        ("POST /api/projects/OPS/tickets/2/close", json!({"note": "x"})),
        ("PATCH /api/projects/OPS/tickets/3", json!({"title": "x"})),
        ("POST /api/projects/OPS/tickets/3/comments", json!({"text": "x"})),
    ] {
        if request.ends_with("close") {
            served.send("PATCH /api/projects/OPS/tickets/2", &json!({"state": "open"})).await;
        }
        let before = served.effects().len();
        let statuses = [
            send_with_key(&served, request, request, &body).await.status,
            send_with_key(&served, request, request, &body).await.status,
        ];
        assert!(statuses[0] < 300 && statuses[0] == statuses[1], "{request}: {statuses:?}");
        assert_eq!(served.effects().len(), before + 1, "{request}");
    }
}

#[tokio::test]
async fn concurrent_calls_with_one_key_are_one_effect() {
    let served = Served::start().await;
    let body = json!({"title": "At once"});
    for round in 0..20 {
        let key = format!("race-{round}");
        let call = || send_with_key(&served, CREATE, &key, &body);
        let (a, b, c) = tokio::join!(call(), call(), call());
        assert_eq!((a.status, b.status, c.status), (201, 201, 201));
        assert!(a.body == b.body && b.body == c.body);
        let replays = [&a, &b, &c].into_iter().filter(|reply| reply.header("idempotency-replayed").is_some()).count();
        assert_eq!((replays, served.effects().len()), (2, round + 1));
    }
    assert_eq!(served.get("/api/projects/OPS/tickets").await["total"], 138);
}

/// A refused call has no effect and does not use its idempotency key, so the corrected call may have the same key.
#[tokio::test]
async fn a_refused_call_does_not_use_its_key() {
    let served = Served::start().await;
    assert_eq!(send_with_key(&served, CREATE, "k", &json!({})).await.status, 422);
    assert_eq!(send_with_key(&served, CREATE, "k", &json!({"title": "Better"})).await.status, 201);
    let long = "x".repeat(256);
    let reply = send_with_key(&served, CREATE, &long, &json!({"title": "x"})).await;
    assert_eq!((reply.status, reply.error_code().as_str()), (400, "bad_request"));
}

#[tokio::test]
async fn every_mistake_is_listed_by_field() {
    let served = Served::start().await;
    let all =
        json!({"body": 1, "priority": 9, "state": "shut", "labels": "x", "owner": "nobody", "due": "soon", "nope": 1});
    let mut refused = refused_fields(&served.send(CREATE, &all).await);
    refused.sort();
    assert_eq!(refused, ["body", "due", "labels", "nope", "owner", "priority", "state", "title"]);
    assert_eq!(refused_fields(&served.send(CREATE, &json!({"title": " "})).await), ["title"]);
    assert_eq!(refused_fields(&served.send(CREATE, &json!({"title": "x".repeat(201)})).await), ["title"]);
    let one = "/api/projects/OPS/tickets/42";
    assert_eq!(refused_fields(&served.send(&format!("PATCH {one}"), &json!({})).await), ["title"]);
    assert_eq!(
        refused_fields(&served.send(&format!("PATCH {one}"), &json!({"title": "", "number": 3})).await),
        ["title", "number"]
    );
    assert_eq!(refused_fields(&served.send(&format!("POST {one}/close"), &json!({})).await), ["note"]);
    assert_eq!(
        refused_fields(&served.send(&format!("POST {one}/comments"), &json!({"author": "x"})).await),
        ["text", "author"]
    );
    for (body, headers, status) in [(&b"{"[..], &[JSON][..], 400), (b"[]", &[JSON], 400), (b"title=x", &[], 415)] {
        assert_eq!(served.ask(CREATE, headers, body).await.status, status);
    }
    let nowhere = served.send("POST /api/projects/NOPE/tickets", &json!({"title": "x"})).await;
    assert_eq!((nowhere.status, nowhere.error_code().as_str()), (404, "not_found"));
    assert_eq!(served.send(&format!("{CREATE}?x=1"), &json!({"title": "x"})).await.status, 400);
    assert!(served.effects().is_empty());
    assert_eq!(served.get(one).await, serde_json::to_value(world().ticket("OPS", 42)).unwrap());
}

#[tokio::test]
async fn etags_save_bodies_and_guard_writes() {
    let served = Served::start().await;
    let one = "/api/projects/OPS/tickets/42";
    let first = served.ask(&format!("GET {one}"), &[], b"").await;
    let tag = first.header("etag").unwrap();
    for known in [tag.to_owned(), format!("\"x\", W/{tag}"), "*".to_owned()] {
        let unchanged = served.ask(&format!("GET {one}"), &[("If-None-Match", &known)], b"").await;
        assert_eq!((unchanged.status, unchanged.body.len(), unchanged.header("etag")), (304, 0, Some(tag)), "{known}");
    }
    assert_eq!(served.ask(&format!("GET {one}"), &[("If-None-Match", "\"x\"")], b"").await.status, 200);
    let patch = async |tag: &str, title: &str| {
        let body = json!({"title": title}).to_string();
        served.ask(&format!("PATCH {one}"), &[JSON, ("If-Match", tag)], body.as_bytes()).await
    };
    let changed = patch(tag, "Mine").await;
    assert_eq!(changed.status, 200);
    let late = patch(tag, "Theirs").await;
    assert_eq!((late.status, late.error_code().as_str()), (412, "precondition_failed"));
    assert_eq!(patch(&format!("W/{}", changed.header("etag").unwrap()), "x").await.status, 412);
    assert_eq!(served.ask(&format!("DELETE {one}"), &[("If-Match", tag)], b"").await.status, 412);
    assert_eq!(served.get(one).await["title"], "Mine");
    assert_eq!((patch("*", "Any").await.status, served.effects().len()), (200, 2));
}

#[tokio::test]
async fn a_body_has_a_limit() {
    let served = Served::start().await;
    let (bytes, _) = served.raw(CREATE, &[JSON, ("Content-Length", "99999999999")], b"").await;
    assert!(bytes.is_empty() || RawReply::parse(&bytes).status == 413);
}
