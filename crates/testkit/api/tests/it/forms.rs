//! Tests of forms and uploads: they are applied once, and a refusal names the mistakes in the fields.

use serde_json::json;
use testkit::raw_http::{JSON, RawReply};

use crate::served::{Served, items};

const CREATE: &str = "POST /api/projects/OPS/tickets";

fn refused_fields(reply: &RawReply) -> Vec<String> {
    assert_eq!((reply.status, reply.error_code().as_str()), (422, "invalid"), "{}", reply.text());
    let json = reply.json();
    let fields = json["error"]["fields"].as_array().unwrap();
    fields.iter().map(|one| one["field"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_form_opens_a_ticket() {
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
    assert_eq!(refused_fields(&served.ask("POST /forms/tickets", &[form], b"project=NOPE&title=x").await), ["project"]);
    assert_eq!(
        refused_fields(&served.ask("POST /forms/tickets", &[form], b"project=WEB&priority=x").await),
        ["title", "priority"]
    );
    assert_eq!(served.send("POST /forms/tickets", &json!({"project": "WEB"})).await.status, 415);
    assert_eq!(served.effects().await.len(), 2);
}

#[tokio::test]
async fn an_upload_keeps_its_name_type_size_and_digest() {
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
    assert_eq!(refused_fields(&served.ask("POST /uploads", &[multipart], without).await), ["nope"]);
    assert_eq!(refused_fields(&served.ask("POST /uploads", &[multipart], b"----x--").await), ["file"]);
    assert_eq!(served.ask("POST /uploads", &[multipart], b"garbage").await.status, 400);
    assert_eq!(served.ask("GET /uploads/2", &[], b"").await.status, 404);
}

#[tokio::test]
async fn a_body_has_a_limit() {
    let served = Served::start().await;
    let (bytes, _) = served.raw(CREATE, &[JSON, ("Content-Length", "99999999999")], b"").await;
    assert!(bytes.is_empty() || RawReply::parse(&bytes).status == 413);
    let large = vec![b'x'; 4 << 20];
    let multipart = ("Content-Type", "multipart/form-data; boundary=b");
    let mut body = b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n".to_vec();
    body.extend(&large);
    body.extend(b"\r\n--b--");
    let upload = served.ask("POST /uploads", &[multipart], &body).await;
    assert_eq!((upload.status, &upload.json()["size"]), (201, &large.len().into()));
}
