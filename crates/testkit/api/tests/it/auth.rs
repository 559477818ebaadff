//! Tests of the routes under `/auth`: each kind of credential is accepted only on its own route and in the right place.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::raw_http::RawReply;

use crate::served::Served;

const FORM: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded");
const GRANT: &str = "grant_type=client_credentials";
/// The Basic credentials of the user: `demo:demo-password` in base64.
const BASIC: &str = "Basic ZGVtbzpkZW1vLXBhc3N3b3Jk";
/// The Basic credentials of the OAuth client: `demo-client:demo-secret` in base64.
const CLIENT: &str = "Basic ZGVtby1jbGllbnQ6ZGVtby1zZWNyZXQ=";

type Headers = &'static [(&'static str, &'static str)];

async fn token(served: &Served, headers: &[(&str, &str)], form: &str) -> RawReply {
    let headers: Vec<_> = headers.iter().copied().chain([FORM]).collect();
    served.ask("POST /oauth/token", &headers, form.as_bytes()).await
}

async fn bearer(served: &Served, token: &Value) -> RawReply {
    let value = format!("Bearer {}", token.as_str().unwrap());
    served.ask("GET /auth/oauth2", &[("Authorization", &value)], b"").await
}

#[tokio::test]
async fn each_credential_is_accepted_on_its_route() {
    let served = Served::start().await;
    let cases: [(&str, Headers); 6] = [
        ("/auth/bearer", &[("Authorization", "Bearer demo-token")]),
        ("/auth/bearer", &[("authorization", "bearer demo-token")]),
        ("/auth/header", &[("X-Api-Key", "demo-key")]),
        ("/auth/query?api_key=demo-key", &[]),
        ("/auth/query?per_page=100&api_key=demo-key", &[]),
        ("/auth/basic", &[("Authorization", BASIC)]),
    ];
    let projects = served.get("/api/projects").await["data"].clone();
    for (target, headers) in cases {
        let reply = served.ask(&format!("GET {target}"), headers, b"").await;
        assert_eq!((reply.status, &reply.json()["data"]), (200, &projects), "{target}");
    }
}

#[tokio::test]
async fn a_missing_or_wrong_credential_is_answered_with_a_challenge() {
    let served = Served::start().await;
    let cases: [(&str, Headers, &str); 13] = [
        ("/auth/bearer", &[], "Bearer realm=\"demo\""),
        ("/auth/bearer", &[("Authorization", "Bearer nope")], "Bearer realm=\"demo\", error=\"invalid_token\""),
        ("/auth/bearer", &[("Authorization", BASIC)], "Bearer realm=\"demo\""),
        ("/auth/bearer", &[("X-Api-Key", "demo-token")], "Bearer realm=\"demo\""),
        ("/auth/bearer?nope=1", &[], "Bearer realm=\"demo\""),
        ("/auth/header", &[], "ApiKey realm=\"demo\", in=\"header\", name=\"X-Api-Key\""),
        ("/auth/header?api_key=demo-key", &[], "ApiKey realm=\"demo\", in=\"header\", name=\"X-Api-Key\""),
        ("/auth/query", &[("X-Api-Key", "demo-key")], "ApiKey realm=\"demo\", in=\"query\", name=\"api_key\""),
        ("/auth/query?api_key=nope", &[], "ApiKey realm=\"demo\", in=\"query\", name=\"api_key\""),
        ("/auth/basic", &[], "Basic realm=\"demo\", charset=\"UTF-8\""),
        ("/auth/basic", &[("Authorization", "Basic !!!")], "Basic realm=\"demo\", charset=\"UTF-8\""),
        ("/auth/oauth2", &[], "Bearer realm=\"demo\""),
        ("/auth/oauth2", &[("Authorization", "Bearer demo-token")], "Bearer realm=\"demo\", error=\"invalid_token\""),
    ];
    for (target, headers, challenge) in cases {
        let reply = served.ask(&format!("GET {target}"), headers, b"").await;
        assert_eq!((reply.status, reply.error_code().as_str()), (401, "unauthorized"), "{target} {headers:?}");
        assert_eq!(reply.header("www-authenticate"), Some(challenge), "{target} {headers:?}");
    }
}

#[tokio::test]
async fn a_client_gets_a_token_by_body_or_by_basic() {
    let served = Served::start().await;
    let by_body = format!("{GRANT}&client_id=demo-client&client_secret=demo-secret&scope=a%20b");
    let first = token(&served, &[], &by_body).await;
    assert_eq!((first.status, first.header("cache-control")), (200, Some("no-store")));
    let first = first.json();
    assert_eq!(
        (&first["token_type"], &first["expires_in"], &first["scope"]),
        (&"Bearer".into(), &60.into(), &"a b".into())
    );
    let second = token(&served, &[("Authorization", CLIENT)], GRANT).await.json();
    assert_ne!(first["access_token"], second["access_token"]);
    for issued in [first, second] {
        assert_eq!(bearer(&served, &issued["access_token"]).await.status, 200);
    }
}

#[tokio::test]
async fn the_token_route_refuses_with_the_errors_of_the_rfc() {
    let served = Served::start().await;
    let client = "client_id=demo-client&client_secret=demo-secret";
    for (headers, form, status, error) in [
        (&[][..], GRANT.to_owned(), 401, "invalid_client"),
        (&[], format!("{GRANT}&client_id=demo-client&client_secret=nope"), 401, "invalid_client"),
        (&[("Authorization", BASIC)], GRANT.to_owned(), 401, "invalid_client"),
        (&[("Authorization", CLIENT)], format!("{GRANT}&{client}"), 400, "invalid_request"),
        (&[], client.to_owned(), 400, "invalid_request"),
        (&[], format!("grant_type=password&{client}"), 400, "unsupported_grant_type"),
        (&[], format!("{GRANT}&{client}&expires_in=soon"), 400, "invalid_request"),
    ] {
        let reply = token(&served, headers, &form).await;
        assert_eq!((reply.status, &reply.json()["error"]), (status, &error.into()), "{form}");
        assert_eq!(reply.header("www-authenticate").is_some(), status == 401);
    }
    let json = served.send("POST /oauth/token", &json!({"grant_type": "client_credentials"})).await;
    assert_eq!(json.status, 415);
}

#[tokio::test]
async fn tokens_expire_and_are_revoked() {
    let served = Served::start().await;
    let set = served.send("POST /control/tokens", &json!({"expires_in": 2})).await;
    assert_eq!(set.json(), json!({"issued": 0, "live": 0, "expires_in": 2}));
    let issued = token(&served, &[("Authorization", CLIENT)], GRANT).await.json();
    assert_eq!((&issued["expires_in"], bearer(&served, &issued["access_token"]).await.status), (&2.into(), 200));
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let expired = bearer(&served, &issued["access_token"]).await;
    assert_eq!(expired.status, 401);
    assert!(expired.text().contains("expired"), "{}", expired.text());
    let long = format!("{GRANT}&expires_in=600");
    let (one, other) = (
        token(&served, &[("Authorization", CLIENT)], &long).await.json()["access_token"].clone(),
        token(&served, &[("Authorization", CLIENT)], &long).await.json()["access_token"].clone(),
    );
    served.send("POST /control/tokens", &json!({"revoke": one})).await;
    assert_eq!((bearer(&served, &one).await.status, bearer(&served, &other).await.status), (401, 200));
    let count = served.send("POST /control/tokens", &json!({"revoke": "all"})).await.json();
    assert_eq!((bearer(&served, &other).await.status, &count["live"], &count["issued"]), (401, &0.into(), &3.into()));
}
