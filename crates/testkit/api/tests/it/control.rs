//! Tests of the routes under `/control`: requests are recorded without credentials, and a reset restores the state of the start.

use serde_json::json;
use testkit::raw_http::JSON;

use crate::served::{Served, world};

#[tokio::test]
async fn requests_are_recorded_without_their_credentials() {
    let served = Served::start().await;
    let headers = [JSON, ("Authorization", "Bearer s3cret"), ("X-Api-Key", "s3cret"), ("X-Trace", "abc")];
    served.ask("POST /api/projects/OPS/tickets?a=1&api_key=s3cret&b=2", &headers, b"abc").await;
    served.get("/api/projects").await;
    let recorded = served.get("/control/requests").await;
    assert_eq!(recorded.as_array().unwrap().len(), 2);
    let first = &recorded[0];
    assert_eq!((&first["at"], &first["method"]), (&1.into(), &"POST".into()));
    assert_eq!((&first["path"], &first["query"]), (&"/api/projects/OPS/tickets".into(), &"a=1&b=2".into()));
    assert_eq!(first["credentials"], json!(["authorization", "x-api-key", "api_key"]));
    assert_eq!((&first["headers"]["x-trace"], &first["headers"]["authorization"]), (&"abc".into(), &json!(null)));
    assert_eq!(first["body_sha256"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert!(!recorded.to_string().contains("s3cret"));
    let last = served.get("/control/requests?last=1").await;
    assert_eq!((last.as_array().unwrap().len(), &last[0]["path"]), (1, &"/api/projects".into()));
}

#[tokio::test]
async fn only_the_last_requests_are_kept() {
    let served = Served::start().await;
    for _ in 0..520 {
        served.get("/api/projects/OPS").await;
    }
    let recorded = served.get("/control/requests").await;
    assert_eq!((recorded.as_array().unwrap().len(), &recorded[0]["at"]), (500, &21.into()));
}

#[tokio::test]
async fn reset_restores_the_seeded_world() {
    let served = Served::start().await;
    served.ask("DELETE /api/projects/OPS/tickets/42", &[("Idempotency-Key", "k")], b"").await;
    served.send("POST /api/projects/OPS/tickets", &json!({"title": "x"})).await;
    served.send("POST /control/faults", &json!({"rules": [{"fault": "status=500"}]})).await;
    served.send("POST /control/tokens", &json!({"expires_in": 5})).await;
    let reset = served.ask("POST /control/reset", &[], b"").await;
    assert_eq!((reset.status, reset.json()), (200, json!({"reset": true})));
    for empty in ["/control/effects", "/control/requests"] {
        assert_eq!(served.get(empty).await, json!([]), "{empty}");
    }
    assert_eq!(served.get("/control/faults").await, json!({"rules": []}));
    assert_eq!(served.get("/control/tokens").await, json!({"issued": 0, "live": 0, "expires_in": 60}));
    let ticket = served.get("/api/projects/OPS/tickets/42").await;
    assert_eq!(ticket, serde_json::to_value(world().ticket("OPS", 42)).unwrap());
    assert_eq!(served.get("/api/tickets").await["total"], 321);
    // After the reset, the idempotency key is unused again.
    let again = served.ask("DELETE /api/projects/OPS/tickets/42", &[("Idempotency-Key", "k")], b"").await;
    assert_eq!((again.status, again.header("idempotency-replayed")), (204, None));
}

#[tokio::test]
async fn two_servers_do_not_share_their_state() {
    let (one, other) = (Served::start().await, Served::start().await);
    one.ask("DELETE /api/projects/OPS/tickets/42", &[], b"").await;
    assert_eq!((one.effects().await.len(), other.effects().await.len()), (1, 0));
    assert_eq!(other.get("/api/tickets").await["total"], 321);
}
