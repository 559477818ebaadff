//! Writes happen once, are counted, and are refused with their reasons.

use serde_json::{Value, json};

use crate::served::{JSON, Reply, Served, items, world};

const CREATE: &str = "POST /api/projects/OPS/tickets";

async fn keyed(served: &Served, request: &str, key: &str, body: &Value) -> Reply {
    let headers = [JSON, ("Idempotency-Key", key)];
    served.ask(request, &headers, body.to_string().as_bytes()).await
}

fn fields(reply: &Reply) -> Vec<String> {
    assert_eq!((reply.status, reply.code().as_str()), (422, "invalid"), "{}", reply.text());
    let json = reply.json();
    let fields = json["error"]["fields"].as_array().unwrap();
    fields.iter().map(|one| one["field"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_ticket_lives_from_create_to_delete() {
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
    assert_eq!((again.status, again.code().as_str()), (409, "conflict"));
    let texts: Vec<Value> =
        items(&served.get(&format!("{one}/comments")).await).iter().map(|c| c["text"].clone()).collect();
    assert_eq!(texts, ["Hm.", "Fixed."]);

    let deleted = served.ask(&format!("DELETE {one}"), &[], b"").await;
    assert_eq!((deleted.status, deleted.body.len()), (204, 0));
    assert_eq!(served.ask(&format!("GET {one}"), &[], b"").await.status, 404);
    assert_eq!(served.ask(&format!("DELETE {one}"), &[], b"").await.status, 404);
    // Numbers and ids that were given are not given again.
    assert_eq!(served.send(CREATE, &json!({"title": "Next"})).await.json()["number"], 120);
    let next = served.send("POST /api/projects/OPS/tickets/120/comments", &json!({"text": "x"})).await;
    assert_eq!(next.json()["id"], 603);

    let effects = served.effects().await;
    let methods: Vec<&str> = effects.iter().map(|effect| effect["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["POST", "PATCH", "POST", "POST", "DELETE", "POST", "POST"]);
    assert!(effects.iter().zip(1..).all(|(effect, at)| effect["at"] == at && effect["key"].is_null()));
}

#[tokio::test]
async fn the_lists_stay_sorted() {
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
    let first = keyed(&served, CREATE, "k-1", &body).await;
    let second = keyed(&served, CREATE, "k-1", &body).await;
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
        let reply = keyed(&served, request, "k-1", &body).await;
        assert_eq!((reply.status, reply.code().as_str()), (422, "idempotency_mismatch"), "{request}");
    }
    let effects = served.effects().await;
    assert_eq!((effects.len(), &effects[0]["key"]), (1, &"k-1".into()));
    assert_eq!(
        (&effects[0]["path"], effects[0]["body_sha256"].as_str().unwrap().len()),
        (&"/api/projects/OPS/tickets".into(), 64)
    );
    for (request, body) in [
        ("DELETE /api/projects/OPS/tickets/1", json!(null)),
        ("POST /api/projects/OPS/tickets/2/close", json!({"note": "x"})),
        ("PATCH /api/projects/OPS/tickets/3", json!({"title": "x"})),
        ("POST /api/projects/OPS/tickets/3/comments", json!({"text": "x"})),
    ] {
        if request.ends_with("close") {
            served.send("PATCH /api/projects/OPS/tickets/2", &json!({"state": "open"})).await;
        }
        let before = served.effects().await.len();
        let statuses = [
            keyed(&served, request, request, &body).await.status,
            keyed(&served, request, request, &body).await.status,
        ];
        assert!(statuses[0] < 300 && statuses[0] == statuses[1], "{request}: {statuses:?}");
        assert_eq!(served.effects().await.len(), before + 1, "{request}");
    }
}

#[tokio::test]
async fn concurrent_calls_with_one_key_are_one_effect() {
    let served = Served::start().await;
    let body = json!({"title": "At once"});
    for round in 0..20 {
        let key = format!("race-{round}");
        let call = || keyed(&served, CREATE, &key, &body);
        let (a, b, c) = tokio::join!(call(), call(), call());
        assert_eq!((a.status, b.status, c.status), (201, 201, 201));
        assert!(a.body == b.body && b.body == c.body);
        let replays = [&a, &b, &c].into_iter().filter(|reply| reply.header("idempotency-replayed").is_some()).count();
        assert_eq!((replays, served.effects().await.len()), (2, round + 1));
    }
    assert_eq!(served.get("/api/projects/OPS/tickets").await["total"], 138);
}

/// A refused call has no effect, so its key is still free for the corrected one.
#[tokio::test]
async fn a_refused_call_does_not_use_its_key() {
    let served = Served::start().await;
    assert_eq!(keyed(&served, CREATE, "k", &json!({})).await.status, 422);
    assert_eq!(keyed(&served, CREATE, "k", &json!({"title": "Better"})).await.status, 201);
    let long = "x".repeat(256);
    let reply = keyed(&served, CREATE, &long, &json!({"title": "x"})).await;
    assert_eq!((reply.status, reply.code().as_str()), (400, "bad_request"));
}

#[tokio::test]
async fn what_is_wrong_is_listed_by_field() {
    let served = Served::start().await;
    let all =
        json!({"body": 1, "priority": 9, "state": "shut", "labels": "x", "owner": "nobody", "due": "soon", "nope": 1});
    let mut found = fields(&served.send(CREATE, &all).await);
    found.sort();
    assert_eq!(found, ["body", "due", "labels", "nope", "owner", "priority", "state", "title"]);
    assert_eq!(fields(&served.send(CREATE, &json!({"title": " "})).await), ["title"]);
    assert_eq!(fields(&served.send(CREATE, &json!({"title": "x".repeat(201)})).await), ["title"]);
    let one = "/api/projects/OPS/tickets/42";
    assert_eq!(fields(&served.send(&format!("PATCH {one}"), &json!({})).await), ["title"]);
    assert_eq!(
        fields(&served.send(&format!("PATCH {one}"), &json!({"title": "", "number": 3})).await),
        ["title", "number"]
    );
    assert_eq!(fields(&served.send(&format!("POST {one}/close"), &json!({})).await), ["note"]);
    assert_eq!(
        fields(&served.send(&format!("POST {one}/comments"), &json!({"author": "x"})).await),
        ["text", "author"]
    );
    for (body, headers, status) in [(&b"{"[..], &[JSON][..], 400), (b"[]", &[JSON], 400), (b"title=x", &[], 415)] {
        assert_eq!(served.ask(CREATE, headers, body).await.status, status);
    }
    let nowhere = served.send("POST /api/projects/NOPE/tickets", &json!({"title": "x"})).await;
    assert_eq!((nowhere.status, nowhere.code().as_str()), (404, "not_found"));
    assert_eq!(served.send(&format!("{CREATE}?x=1"), &json!({"title": "x"})).await.status, 400);
    assert!(served.effects().await.is_empty());
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
    assert_eq!((late.status, late.code().as_str()), (412, "precondition_failed"));
    assert_eq!(patch(&format!("W/{}", changed.header("etag").unwrap()), "x").await.status, 412);
    assert_eq!(served.ask(&format!("DELETE {one}"), &[("If-Match", tag)], b"").await.status, 412);
    assert_eq!(served.get(one).await["title"], "Mine");
    assert_eq!((patch("*", "Any").await.status, served.effects().await.len()), (200, 2));
}

#[tokio::test]
async fn forms_open_tickets_too() {
    let served = Served::start().await;
    let form = ("Content-Type", "application/x-www-form-urlencoded");
    let body = b"project=WEB&title=From+a+form+%26+more&priority=2&labels=a&labels=b%2Bc";
    let ticket = served.ask("POST /forms/tickets", &[form, ("Idempotency-Key", "f")], body).await;
    assert_eq!(ticket.status, 201, "{}", ticket.text());
    assert_eq!(
        (&ticket.json()["title"], &ticket.json()["labels"]),
        (&"From a form & more".into(), &json!(["a", "b+c"]))
    );
    assert_eq!(served.ask("POST /forms/tickets", &[form, ("Idempotency-Key", "f")], body).await.body, ticket.body);
    let multipart = ("Content-Type", "multipart/form-data; boundary=b");
    let body = "--b\r\nContent-Disposition: form-data; name=\"project\"\r\n\r\nWEB\r\n\
                --b\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nZwölf\r\n--b--\r\n";
    let ticket = served.ask("POST /forms/tickets", &[multipart], body.as_bytes()).await;
    assert_eq!((ticket.status, &ticket.json()["title"]), (201, &"Zwölf".into()));
    assert_eq!(fields(&served.ask("POST /forms/tickets", &[form], b"project=NOPE&title=x").await), ["project"]);
    assert_eq!(
        fields(&served.ask("POST /forms/tickets", &[form], b"project=WEB&priority=x").await),
        ["title", "priority"]
    );
    assert_eq!(served.send("POST /forms/tickets", &json!({"project": "WEB"})).await.status, 415);
    assert_eq!(served.effects().await.len(), 2);
}

#[tokio::test]
async fn uploads_keep_name_type_size_and_digest() {
    let served = Served::start().await;
    let multipart = ("Content-Type", "multipart/form-data; boundary=\"--x\"");
    let body = b"----x\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nhi\r\n\
        ----x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a b.bin\"\r\nContent-Type: image/png\r\n\r\nabc\r\n----x--\r\n";
    let upload = served.ask("POST /uploads", &[multipart], body).await;
    assert_eq!((upload.status, upload.header("location")), (201, Some("/uploads/1")), "{}", upload.text());
    let expected = json!({"id": 1, "name": "a b.bin", "type": "image/png", "size": 3,
        "sha256": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", "note": "hi"});
    assert_eq!(upload.json(), expected);
    assert_eq!(
        (served.get("/uploads/1").await, items(&served.get("/uploads").await)),
        (expected.clone(), vec![expected])
    );
    let without = b"----x\r\nContent-Disposition: form-data; name=\"nope\"\r\n\r\nhi\r\n----x--\r\n";
    assert_eq!(fields(&served.ask("POST /uploads", &[multipart], without).await), ["nope"]);
    assert_eq!(fields(&served.ask("POST /uploads", &[multipart], b"----x--").await), ["file"]);
    assert_eq!(served.ask("POST /uploads", &[multipart], b"garbage").await.status, 400);
    assert_eq!(served.ask("GET /uploads/2", &[], b"").await.status, 404);
}

#[tokio::test]
async fn a_body_has_a_limit() {
    let served = Served::start().await;
    let (bytes, _) = served.raw(CREATE, &[JSON, ("Content-Length", "99999999999")], b"").await;
    assert!(bytes.is_empty() || Reply::read(&bytes).status == 413);
    let large = vec![b'x'; 4 << 20];
    let multipart = ("Content-Type", "multipart/form-data; boundary=b");
    let mut body = b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n".to_vec();
    body.extend(&large);
    body.extend(b"\r\n--b--");
    let upload = served.ask("POST /uploads", &[multipart], &body).await;
    assert_eq!((upload.status, &upload.json()["size"]), (201, &large.len().into()));
}
