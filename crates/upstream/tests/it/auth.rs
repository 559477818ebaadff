//! Every form of credential against the test API, and tokens: fetched once, kept, renewed, told apart.
//! Invariant: no token is in an event or an error.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::{Auth, Method, Origin, Payload, Request};
use ports::upstream::{Error, TokenError};
use serde_json::json;
use upstream::Options;

use crate::server::{Act, Server, ok, say, with_status};
use crate::world::{World, demo, everything, get, json, logged};

fn oauth(origin: &Origin) -> Auth {
    Auth::Oauth2 {
        token_origin: origin.clone(),
        token_path: "/oauth/token".to_owned(),
        client_id: "CLIENT_ID".to_owned(),
        client_secret: "CLIENT_SECRET".to_owned(),
        scopes: vec!["read".to_owned(), "write".to_owned()],
    }
}

fn with(auth: Auth, request: Request) -> Request {
    Request { auth: Some(auth), ..request }
}

async fn issued(world: &World, demo: &Origin) -> u64 {
    json(&world.read(get(demo, "/control/tokens")).await.unwrap())["issued"].as_u64().unwrap()
}

#[tokio::test]
async fn every_form_is_accepted_by_the_demo() {
    let demo = demo().await;
    let world = World::new();
    let named = |text: &str| text.to_owned();
    let forms = [
        ("/auth/bearer", Auth::Bearer(named("DEMO_TOKEN"))),
        ("/auth/header", Auth::Header { name: named("X-Api-Key"), secret: named("DEMO_KEY"), prefix: None }),
        ("/auth/query", Auth::Query { name: named("api_key"), secret: named("DEMO_KEY") }),
        ("/auth/basic", Auth::Basic { user: named("DEMO_USER"), password: named("DEMO_PASSWORD") }),
        ("/auth/oauth2", oauth(&demo)),
    ];
    for (path, auth) in forms {
        assert_eq!(world.read(get(&demo, path)).await.unwrap().status, 401, "{path}");
        let mut query = vec![("per_page".to_owned(), "2".to_owned())];
        if matches!(auth, Auth::Query { .. }) {
            // A parameter of the credential's name from elsewhere gives way.
            query.insert(0, ("api_key".to_owned(), "x".to_owned()));
        }
        let answer = world.read(with(auth, Request { query, ..get(&demo, path) })).await.unwrap();
        assert_eq!(answer.status, 200, "{path}");
    }
    assert!(!logged().contains("demo-key") && !logged().contains("demo-password"));
}

#[tokio::test]
async fn a_call_goes_without_its_credential_only_where_the_catalog_says_so_and_none_is_set() {
    let demo = demo().await;
    let world = World::new();
    let unset = || Auth::Bearer("NOT_SET_ANYWHERE".to_owned());
    let open = || with(unset(), get(&demo, "/api/projects"));
    assert!(matches!(world.read(open()).await, Err(Error::Secret { .. })));
    let anonymous = Request { anonymous: true, ..open() };
    assert_eq!(world.read(anonymous).await.unwrap().status, 200);
    let closed = Request { anonymous: true, ..with(unset(), get(&demo, "/auth/bearer")) };
    assert_eq!(world.read(closed).await.unwrap().status, 401, "the API itself says no");
    let set = Auth::Bearer("DEMO_TOKEN".to_owned());
    let signed = Request { anonymous: true, ..with(set, get(&demo, "/auth/bearer")) };
    assert_eq!(world.read(signed).await.unwrap().status, 200, "a credential that is there is used");
}

#[tokio::test]
async fn a_query_credential_is_data_and_is_shown_nowhere() {
    let server = Server::start(|_, _| vec![Act::Close]).await;
    let world = World::with(Options { retries: 0, ..Options::default() });
    let auth = Auth::Query { name: "k&y".to_owned(), secret: "TOKEN".to_owned() };
    let error = world.read(with(auth, get(&server.origin, "/q"))).await.unwrap_err();
    assert!(!everything(&error).contains("hunter2"), "{error:?}");
    assert_eq!(server.seen()[0].line, "GET /q?k%26y=hunter2-very-secret HTTP/1.1");
    assert!(!logged().contains("hunter2"));
}

#[tokio::test]
async fn a_user_with_a_colon_is_unfit() {
    let server = Server::always(ok("")).await;
    for (user, password) in [("COLON", "TOKEN"), ("TOKEN", "BROKEN"), ("BROKEN", "TOKEN")] {
        let auth = Auth::Basic { user: user.to_owned(), password: password.to_owned() };
        let error = World::new().read(with(auth, get(&server.origin, "/"))).await.unwrap_err();
        let Error::Secret { source: ports::secrets::Error::Unfit { name, .. }, .. } = &error else {
            panic!("{error:?}")
        };
        assert!(name == "COLON" || name == "BROKEN");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn one_fetch_serves_all_who_wait_and_those_after_them() {
    let demo = demo().await;
    let world = Arc::new(World::new());
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let (world, request) = (Arc::clone(&world), with(oauth(&demo), get(&demo, "/auth/oauth2")));
            tokio::spawn(async move { world.read(request).await.unwrap().status })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
    assert_eq!(issued(&world, &demo).await, 1);
    // Another tenant, another set of scopes: another token.
    world.read_as("other", with(oauth(&demo), get(&demo, "/auth/oauth2"))).await.unwrap();
    assert_eq!(issued(&world, &demo).await, 2);
    let Auth::Oauth2 { token_origin, token_path, client_id, client_secret, .. } = oauth(&demo) else { panic!() };
    let scopeless = Auth::Oauth2 { token_origin, token_path, client_id, client_secret, scopes: vec![] };
    world.read(with(scopeless, get(&demo, "/auth/oauth2"))).await.unwrap();
    assert_eq!(issued(&world, &demo).await, 3);
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_when_it_is_refused() {
    let demo = demo().await;
    let world = World::new();
    let read = || async { world.read(with(oauth(&demo), get(&demo, "/auth/oauth2"))).await.unwrap().status };
    assert_eq!(read().await, 200);
    // It lasts 60 s, of which the last fifth is not used.
    world.advance(Duration::from_secs(47));
    assert_eq!((read().await, issued(&world, &demo).await), (200, 1));
    world.advance(Duration::from_secs(2));
    assert_eq!((read().await, issued(&world, &demo).await), (200, 2));

    let body = Some(json!({"revoke": "all"}));
    let revoke = Request { method: Method::Post, body: body.map(Payload::json), ..get(&demo, "/control/tokens") };
    assert_eq!(world.write(revoke).await.unwrap().status, 200);
    assert_eq!((read().await, issued(&world, &demo).await), (200, 3));
}

fn token(value: &str) -> String {
    ok(&format!("{{\"access_token\":\"{value}\",\"token_type\":\"Bearer\",\"expires_in\":3600}}"))
}

#[tokio::test]
async fn a_refused_write_goes_again_once_with_another_token() {
    let tokens = Server::start(|nth, _| vec![say(&token(&format!("hunter2-token-{nth}")))]).await;
    let api = Server::start(|_, request| match request.header("authorization") {
        Some("Bearer hunter2-token-1") => vec![say(&ok("done"))],
        _ => vec![say(&with_status("401 No", "", ""))],
    })
    .await;
    let world = World::new();
    let answer = world.write(with(oauth(&tokens.origin), get(&api.origin, "/w"))).await.unwrap();
    assert_eq!((answer.body.as_slice(), api.seen().len(), tokens.seen().len()), (b"done".as_slice(), 2, 2));
    let asked = &tokens.seen()[0];
    assert_eq!(asked.line, "POST /oauth/token HTTP/1.1");
    assert_eq!(asked.body, "grant_type=client_credentials&scope=read%20write");
    assert_eq!(asked.header("content-type"), Some("application/x-www-form-urlencoded"));
    assert_eq!(asked.header("authorization"), Some("Basic ZGVtby1jbGllbnQ6ZGVtby1zZWNyZXQ="));

    // Refused whatever the token: the answer is the caller's to see.
    let closed = Server::always(with_status("401 No", "", "never")).await;
    let answer = world.write(with(oauth(&tokens.origin), get(&closed.origin, "/w"))).await.unwrap();
    assert_eq!((answer.status, closed.seen().len(), tokens.seen().len()), (401, 2, 3));
    let text = logged();
    assert!(
        !text.contains("hunter2")
            && !text.contains("demo-secret")
            && !format!("{:?}", world.upstream).contains("hunter2")
    );
}

#[tokio::test]
async fn no_token_is_an_error_of_its_own_and_nothing_leaves() {
    let api = Server::always(ok("")).await;
    let error = |tokens: Origin| {
        let world = World::with(Options { retries: 0, request_timeout: Duration::from_secs(2), ..Options::default() });
        let request = with(oauth(&tokens), get(&api.origin, "/w"));
        async move { world.read(request).await.unwrap_err() }
    };
    let told = |error: &Error| match error {
        Error::Token { source, .. } => source.clone(),
        other => panic!("{other:?}"),
    };
    let refusing = Server::always(with_status("401 No", "", "{\"error\":\"invalid_client\"}")).await;
    let code = Some("invalid_client".to_owned());
    assert_eq!(told(&error(refusing.origin.clone()).await), TokenError::Refused { status: 401, code });
    let strange = Server::always(ok("{\"access_token\":\"hunter2\\nX: y\"}")).await;
    let error_of = error(strange.origin.clone()).await;
    assert_eq!(told(&error_of), TokenError::Unreadable);
    assert!(!everything(&error_of).contains("hunter2"));
    let moved = Server::always(with_status("302 Found", "Location: http://127.0.0.1:1/x\r\n", "")).await;
    assert_eq!(told(&error(moved.origin.clone()).await), TokenError::NoAnswer { kind: "redirect" });
    assert_eq!(told(&error(crate::world::nobody().await).await), TokenError::NoAnswer { kind: "connect" });
    assert_eq!(api.connections(), 0);
}

#[tokio::test]
async fn a_failed_fetch_is_told_to_all_who_waited_for_it() {
    let tokens =
        Server::start(|_, _| vec![Act::Pause(Duration::from_millis(200)), say(&with_status("400 No", "", "{}"))]).await;
    let world = Arc::new(World::new());
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let (world, request) = (Arc::clone(&world), with(oauth(&tokens.origin), get(&tokens.origin, "/w")));
            tokio::spawn(async move { world.read(request).await.unwrap_err() })
        })
        .collect();
    for call in calls {
        assert!(matches!(call.await.unwrap(), Error::Token { .. }));
    }
    assert_eq!(tokens.seen().len(), 1);
}

#[tokio::test]
async fn a_token_origin_is_routed_like_any_other() {
    let demo = demo().await;
    let named = Origin::parse("http://demo.localhost").unwrap();
    let routes = BTreeMap::from([(named.clone(), demo)]);
    let world = World::with(Options { routes, ..Options::default() });
    assert_eq!(world.read(with(oauth(&named), get(&named, "/auth/oauth2"))).await.unwrap().status, 200);
}
