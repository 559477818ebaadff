//! Tests of every form of credential against the test API, and of fetching, sharing and renewing OAuth tokens.
//! Invariant: no token is in a log line or an error.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::{Auth, Method, Origin, Payload, Request};
use ports::Upstream;
use ports::upstream::{Error, TokenError};
use serde_json::json;
use upstream::Options;

use crate::fixture::{Fixture, demo, get, json, log_text, printed_with_causes};
use crate::server::{Action, Server, ok, reply, with_status};

fn oauth(origin: &Origin) -> Auth {
    Auth::Oauth2 {
        token_origin: origin.clone(),
        token_path: "/oauth/token".to_owned(),
        client_id: "CLIENT_ID".to_owned(),
        client_secret: "CLIENT_SECRET".to_owned(),
        scopes: vec!["read".to_owned(), "write".to_owned()],
    }
}

fn with_auth(auth: Auth, request: Request) -> Request {
    Request { auth: Some(auth), ..request }
}

async fn issued_token_count(fixture: &Fixture, demo: &Origin) -> u64 {
    json(&fixture.read(get(demo, "/control/tokens")).await.unwrap())["issued"].as_u64().unwrap()
}

#[tokio::test]
async fn the_demo_accepts_every_form_of_credential() {
    let demo = demo().await;
    let fixture = Fixture::new();
    let name = |text: &str| text.to_owned();
    let forms = [
        ("/auth/bearer", Auth::Bearer(name("DEMO_TOKEN"))),
        ("/auth/header", Auth::Header { name: name("X-Api-Key"), secret: name("DEMO_KEY"), prefix: None }),
        ("/auth/query", Auth::Query { name: name("api_key"), secret: name("DEMO_KEY") }),
        ("/auth/basic", Auth::Basic { user: name("DEMO_USER"), password: name("DEMO_PASSWORD") }),
        ("/auth/oauth2", oauth(&demo)),
    ];
    for (path, auth) in forms {
        assert_eq!(fixture.read(get(&demo, path)).await.unwrap().status, 401, "{path}");
        let mut query = vec![("per_page".to_owned(), "2".to_owned())];
        if matches!(auth, Auth::Query { .. }) {
            // A parameter with the credential's name is replaced.
            query.insert(0, ("api_key".to_owned(), "x".to_owned()));
        }
        let answer = fixture.read(with_auth(auth, Request { query, ..get(&demo, path) })).await.unwrap();
        assert_eq!(answer.status, 200, "{path}");
    }
    assert!(!log_text().contains("demo-key") && !log_text().contains("demo-password"));
}

#[tokio::test]
async fn a_call_without_its_secret_is_sent_only_if_the_catalog_allows_it() {
    let demo = demo().await;
    let fixture = Fixture::new();
    let unset = || Auth::Bearer("NOT_SET_ANYWHERE".to_owned());
    let open = || with_auth(unset(), get(&demo, "/api/projects"));
    assert!(matches!(fixture.read(open()).await, Err(Error::Secret { .. })));
    let anonymous = Request { anonymous: true, ..open() };
    assert_eq!(fixture.read(anonymous).await.unwrap().status, 200);
    let closed = Request { anonymous: true, ..with_auth(unset(), get(&demo, "/auth/bearer")) };
    assert_eq!(fixture.read(closed).await.unwrap().status, 401, "the API itself refuses the call");
    let set = Auth::Bearer("DEMO_TOKEN".to_owned());
    let signed = Request { anonymous: true, ..with_auth(set, get(&demo, "/auth/bearer")) };
    assert_eq!(fixture.read(signed).await.unwrap().status, 200, "a secret that is set is used");
}

#[tokio::test]
async fn a_credential_in_the_query_is_encoded_and_not_shown() {
    let server = Server::start(|_, _| vec![Action::Close]).await;
    let fixture = Fixture::with(Options { retries: 0, ..Options::default() });
    let auth = Auth::Query { name: "k&y".to_owned(), secret: "TOKEN".to_owned() };
    let error = fixture.read(with_auth(auth, get(&server.origin, "/q"))).await.unwrap_err();
    assert!(!printed_with_causes(&error).contains("hunter2"), "{error:?}");
    assert_eq!(server.received()[0].line, "GET /q?k%26y=hunter2-very-secret HTTP/1.1");
    assert!(!log_text().contains("hunter2"));
}

#[tokio::test]
async fn a_user_with_a_colon_or_a_line_break_is_unusable() {
    let server = Server::always(ok("")).await;
    for (user, password) in [("COLON", "TOKEN"), ("TOKEN", "BROKEN"), ("BROKEN", "TOKEN")] {
        let auth = Auth::Basic { user: user.to_owned(), password: password.to_owned() };
        let error = Fixture::new().read(with_auth(auth, get(&server.origin, "/"))).await.unwrap_err();
        let Error::Secret { source: ports::secrets::Error::Unusable { name, .. }, .. } = &error else {
            panic!("{error:?}")
        };
        assert!(name == "COLON" || name == "BROKEN");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn one_fetched_token_serves_concurrent_and_later_calls() {
    let demo = demo().await;
    let fixture = Arc::new(Fixture::new());
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let fixture = Arc::clone(&fixture);
            let request = with_auth(oauth(&demo), get(&demo, "/auth/oauth2"));
            tokio::spawn(async move { fixture.read(request).await.unwrap().status })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
    assert_eq!(issued_token_count(&fixture, &demo).await, 1);
    // Another tenant and another set of scopes get another token.
    fixture.read_as("other", with_auth(oauth(&demo), get(&demo, "/auth/oauth2"))).await.unwrap();
    assert_eq!(issued_token_count(&fixture, &demo).await, 2);
    let Auth::Oauth2 { token_origin, token_path, client_id, client_secret, .. } = oauth(&demo) else { panic!() };
    let scopeless = Auth::Oauth2 { token_origin, token_path, client_id, client_secret, scopes: vec![] };
    fixture.read(with_auth(scopeless, get(&demo, "/auth/oauth2"))).await.unwrap();
    assert_eq!(issued_token_count(&fixture, &demo).await, 3);
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_when_it_is_refused() {
    let demo = demo().await;
    let fixture = Fixture::new();
    let read = || async { fixture.read(with_auth(oauth(&demo), get(&demo, "/auth/oauth2"))).await.unwrap().status };
    assert_eq!(read().await, 200);
    // The token is valid for 60 s, and the last fifth is not used.
    fixture.advance(Duration::from_secs(47));
    assert_eq!((read().await, issued_token_count(&fixture, &demo).await), (200, 1));
    fixture.advance(Duration::from_secs(2));
    assert_eq!((read().await, issued_token_count(&fixture, &demo).await), (200, 2));

    let body = Some(json!({"revoke": "all"}));
    let revoke = Request { method: Method::Post, body: body.map(Payload::json), ..get(&demo, "/control/tokens") };
    assert_eq!(fixture.write(revoke).await.unwrap().status, 200);
    assert_eq!((read().await, issued_token_count(&fixture, &demo).await), (200, 3));
}

fn token(value: &str) -> String {
    ok(&format!("{{\"access_token\":\"{value}\",\"token_type\":\"Bearer\",\"expires_in\":3600}}"))
}

#[tokio::test]
async fn a_write_with_a_refused_token_is_sent_once_more_with_another_token() {
    let tokens = Server::start(|nth, _| vec![reply(&token(&format!("hunter2-token-{nth}")))]).await;
    let api = Server::start(|_, request| match request.header("authorization") {
        Some("Bearer hunter2-token-1") => vec![reply(&ok("done"))],
        _ => vec![reply(&with_status("401 No", "", ""))],
    })
    .await;
    let fixture = Fixture::new();
    let answer = fixture.write(with_auth(oauth(&tokens.origin), get(&api.origin, "/w"))).await.unwrap();
    assert_eq!((answer.body.as_slice(), api.received().len(), tokens.received().len()), (b"done".as_slice(), 2, 2));
    let token_request = &tokens.received()[0];
    assert_eq!(token_request.line, "POST /oauth/token HTTP/1.1");
    assert_eq!(token_request.body, "grant_type=client_credentials&scope=read%20write");
    assert_eq!(token_request.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(token_request.header("authorization"), Some("Basic ZGVtby1jbGllbnQ6ZGVtby1zZWNyZXQ="));

    // If the API refuses every token, the caller gets the API's answer.
    let closed = Server::always(with_status("401 No", "", "never")).await;
    let answer = fixture.write(with_auth(oauth(&tokens.origin), get(&closed.origin, "/w"))).await.unwrap();
    assert_eq!((answer.status, closed.received().len(), tokens.received().len()), (401, 2, 3));
    let text = log_text();
    assert!(
        !text.contains("hunter2")
            && !text.contains("demo-secret")
            && !format!("{:?}", fixture.upstream).contains("hunter2")
    );
}

#[tokio::test]
async fn without_a_token_nothing_leaves_and_the_error_says_why() {
    let api = Server::always(ok("")).await;
    let error = |tokens: Origin| {
        let fixture =
            Fixture::with(Options { retries: 0, request_timeout: Duration::from_secs(2), ..Options::default() });
        let request = with_auth(oauth(&tokens), get(&api.origin, "/w"));
        async move { fixture.read(request).await.unwrap_err() }
    };
    let token_error = |error: &Error| match error {
        Error::Token { source, .. } => source.clone(),
        other => panic!("{other:?}"),
    };
    let refusing = Server::always(with_status("401 No", "", "{\"error\":\"invalid_client\"}")).await;
    let code = Some("invalid_client".to_owned());
    assert_eq!(token_error(&error(refusing.origin.clone()).await), TokenError::Refused { status: 401, code });
    let strange = Server::always(ok("{\"access_token\":\"hunter2\\nX: y\"}")).await;
    let error_of = error(strange.origin.clone()).await;
    assert_eq!(token_error(&error_of), TokenError::Unreadable);
    assert!(!printed_with_causes(&error_of).contains("hunter2"));
    let moved = Server::always(with_status("302 Found", "Location: http://127.0.0.1:1/x\r\n", "")).await;
    assert_eq!(token_error(&error(moved.origin.clone()).await), TokenError::NoAnswer { kind: "redirect" });
    assert_eq!(
        token_error(&error(crate::fixture::closed_port().await).await),
        TokenError::NoAnswer { kind: "connect" }
    );
    assert_eq!(api.connections(), 0);
}

#[tokio::test]
async fn a_failed_fetch_is_the_answer_to_all_calls_that_waited_for_it() {
    let tokens =
        Server::start(|_, _| vec![Action::Pause(Duration::from_millis(200)), reply(&with_status("400 No", "", "{}"))])
            .await;
    let fixture = Arc::new(Fixture::new());
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let fixture = Arc::clone(&fixture);
            let request = with_auth(oauth(&tokens.origin), get(&tokens.origin, "/w"));
            tokio::spawn(async move { fixture.read(request).await.unwrap_err() })
        })
        .collect();
    for call in calls {
        assert!(matches!(call.await.unwrap(), Error::Token { .. }));
    }
    assert_eq!(tokens.received().len(), 1);
}

#[tokio::test]
async fn a_token_origin_is_routed_like_any_other() {
    let demo = demo().await;
    let named = Origin::parse("http://demo.localhost").unwrap();
    let routes = BTreeMap::from([(named.clone(), demo)]);
    let fixture = Fixture::with(Options { routes, ..Options::default() });
    assert_eq!(fixture.read(with_auth(oauth(&named), get(&named, "/auth/oauth2"))).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_secret_is_sent_only_to_an_origin_to_which_it_is_bound() {
    let server = Server::always(ok("")).await;
    let fixture = Fixture::new();
    let name = || "BOUND_ELSEWHERE".to_owned();
    let user = || "DEMO_USER".to_owned();
    for auth in [
        Auth::Bearer(name()),
        Auth::Header { name: "X-Key".to_owned(), secret: name(), prefix: None },
        Auth::Query { name: "key".to_owned(), secret: name() },
        Auth::Basic { user: name(), password: "TOKEN".to_owned() },
        Auth::Basic { user: user(), password: name() },
    ] {
        for anonymous in [false, true] {
            let request = Request { anonymous, ..with_auth(auth.clone(), get(&server.origin, "/")) };
            let error = fixture.read(request).await.unwrap_err();
            let Error::Secret { source: ports::secrets::Error::NotBound { name, origin }, .. } = &error else {
                panic!("{error:?}")
            };
            assert_eq!((name.as_str(), origin), ("BOUND_ELSEWHERE", &server.origin));
            let command = format!("tokamak secret bind BOUND_ELSEWHERE {}", server.origin);
            assert!(error.to_string().contains(&command) && error.to_string().contains("E0601"), "{error}");
        }
    }
    let missing =
        fixture.upstream.missing_secrets(&base::TenantId::local(), &server.origin, &Auth::Bearer(name())).await;
    assert_eq!(missing, ["BOUND_ELSEWHERE"]);
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_client_secret_and_its_tokens_go_only_to_bound_origins() {
    let (token_server, api) = (Server::always(ok("{}")).await, Server::always(ok("")).await);
    let elsewhere = Origin::parse(crate::fixture::ELSEWHERE).unwrap();
    // The token endpoint or the API is a server to which the client's secret is not bound. The first route makes the
    // other one reachable here; a route is the origin to which a request really goes.
    let routes = BTreeMap::new();
    let fixture = Fixture::with(Options { routes, ..Options::default() });
    let client = |token_origin: &Origin| Auth::Oauth2 {
        token_origin: token_origin.clone(),
        token_path: "/t".to_owned(),
        client_id: "CLIENT_ID".to_owned(),
        client_secret: "BOUND_ELSEWHERE".to_owned(),
        scopes: vec![],
    };
    for (token_origin, origin, refused) in [
        (&token_server.origin, &elsewhere, &token_server.origin),
        (&elsewhere, &api.origin, &api.origin),
        (&token_server.origin, &api.origin, &api.origin),
    ] {
        let error = fixture.read(with_auth(client(token_origin), get(origin, "/"))).await.unwrap_err();
        let Error::Secret { source: ports::secrets::Error::NotBound { origin, .. }, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(origin, refused);
    }
    assert_eq!((token_server.connections(), api.connections()), (0, 0));
}

#[tokio::test]
async fn a_secret_that_is_too_short_to_be_recognised_signs_nothing() {
    let server = Server::always(ok("")).await;
    let short = || "SHORT".to_owned();
    for auth in [
        Auth::Bearer(short()),
        Auth::Query { name: "key".to_owned(), secret: short() },
        Auth::Basic { user: "DEMO_USER".to_owned(), password: short() },
    ] {
        let error = Fixture::new().read(with_auth(auth, get(&server.origin, "/"))).await.unwrap_err();
        let too_short = matches!(&error, Error::Secret { source: ports::secrets::Error::TooShort { .. }, .. });
        assert!(too_short && error.to_string().contains("E0602") && !error.to_string().contains("five5"), "{error}");
    }
    assert_eq!(server.connections(), 0);
    // A user name is not secret and may be short.
    let auth = Auth::Basic { user: short(), password: "TOKEN".to_owned() };
    assert_eq!(Fixture::new().read(with_auth(auth, get(&server.origin, "/"))).await.unwrap().status, 200);
}

#[tokio::test]
async fn an_echo_is_removed_from_every_later_answer_of_the_origin_and_from_failures() {
    let echo = r#"{"seen": "\u0068unter2-very-secret", "b64": "eCBodW50ZXIyLXZlcnktc2VjcmV0IHk=", "x": 1}"#;
    let server = Server::start(move |_, request| {
        let line = request.line.as_str();
        if line.contains("/redirect") {
            let location = "Location: https://x.example/hunter2%2Dvery-secret/y\r\n";
            vec![reply(&with_status("302 Found", location, ""))]
        } else if line.contains("/encoding") {
            vec![reply(&with_status("200 OK", "Content-Encoding: hunter2-very-secret\r\n", "x"))]
        } else {
            vec![reply(&with_status("200 OK", "X-Echo: 68756e746572322d766572792d736563726574\r\n", echo))]
        }
    })
    .await;
    let fixture = Fixture::with(Options { retries: 0, ..Options::default() });
    let clean = |answer: &base::Response| {
        let body = String::from_utf8(answer.body.clone()).unwrap();
        assert_eq!(json(answer)["seen"], "[secret]", "{body}");
        assert!(!body.contains("W50ZXIy") && body.contains("\"x\": 1"), "{body}");
        assert_eq!(answer.header("x-echo"), Some("[secret]"));
    };
    clean(&fixture.read(crate::fixture::signed(get(&server.origin, "/"))).await.unwrap());
    // The API may have stored the secret and answers with it later, to a call that is not signed.
    clean(&fixture.read(get(&server.origin, "/")).await.unwrap());
    for path in ["/redirect", "/encoding"] {
        let error = fixture.read(crate::fixture::signed(get(&server.origin, path))).await.unwrap_err();
        let shown = printed_with_causes(&error);
        assert!(shown.contains("[secret]") && !shown.contains("very-secret"), "{shown}");
    }
}
