//! A public name never leads to a private address.
//! Invariant: what is refused opens no connection.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base::{Auth, Origin, Request};
use ports::upstream::{Error, TokenError};
use upstream::{Lookup, Options};

use crate::server::{Server, ok};
use crate::world::{World, everything, get, signed};

/// Answers in turn; the last one again and again.
struct Names {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl Lookup for Names {
    async fn lookup(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        self.asked.lock().unwrap().push(host.to_owned());
        let mut answers = self.answers.lock().unwrap();
        if answers.len() > 1 { Ok(answers.pop_front().unwrap()) } else { Ok(answers[0].clone()) }
    }
}

fn names(answers: &[&[&str]]) -> Arc<Names> {
    let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
    Arc::new(Names { answers: Mutex::new(answers.iter().map(parse).collect()), asked: Mutex::default() })
}

fn at(host: &str, server: &Server) -> Origin {
    Origin::parse(&format!("http://{host}:{}", server.port)).unwrap()
}

#[tokio::test]
async fn a_public_name_that_leads_inside_is_refused() {
    let server = Server::always(ok("inside")).await;
    for addresses in [
        &["127.0.0.1"][..],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["10.0.0.1"],
        &["169.254.169.254"],
        &["0.0.0.0"],
        // One good address does not make the other good.
        &["203.0.113.1", "127.0.0.1"],
        &["127.0.0.1", "203.0.113.1"],
    ] {
        for host in ["api.example.com", "localhost.example.com", "127.0.0.1.nip.example"] {
            let names = names(&[addresses]);
            let world = World::looking(Options::default(), Arc::clone(&names) as Arc<_>);
            let error = world.read(signed(get(&at(host, &server), "/x"))).await.unwrap_err();
            assert!(matches!(error, Error::PrivateAddress { .. }), "{addresses:?}: {error:?}");
            assert!(!everything(&error).contains("hunter2"));
            assert_eq!(names.asked.lock().unwrap().len(), 1, "not tried again");
        }
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_refused_when_it_does() {
    let server = Server::always(ok("inside")).await;
    // The first address passes the check, and nobody answers there; the second lookup leads inside.
    let names = names(&[&["203.0.113.1"], &["127.0.0.1"]]);
    let options = Options { connect_timeout: Duration::from_millis(200), ..Options::default() };
    let world = World::looking(options, Arc::clone(&names) as Arc<_>);
    let error = world.read(get(&at("rebind.example.com", &server), "/x")).await.unwrap_err();
    assert!(matches!(error, Error::PrivateAddress { .. }), "{error:?}");
    assert_eq!(names.asked.lock().unwrap().len(), 2, "one lookup for each connect, and none between check and connect");
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_token_endpoint_is_held_to_the_same() {
    let server = Server::always(ok("{}")).await;
    let world = World::looking(Options::default(), names(&[&["127.0.0.1"]]));
    let auth = Some(Auth::Oauth2 {
        token_origin: at("id.example.com", &server),
        token_path: "/t".to_owned(),
        client_id: "CLIENT_ID".to_owned(),
        client_secret: "CLIENT_SECRET".to_owned(),
        scopes: vec![],
    });
    let error = world.read(Request { auth, ..get(&server.origin, "/") }).await.unwrap_err();
    let Error::Token { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source, TokenError::NoAnswer { kind: "private_address" });
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn loopback_is_reached_where_the_origin_names_it() {
    let server = Server::always(ok("here")).await;
    let world = World::looking(Options::default(), names(&[&["127.0.0.1"]]));
    for host in ["localhost", "api.localhost", "127.0.0.1"] {
        assert_eq!(world.read(get(&at(host, &server), "/")).await.unwrap().body, b"here", "{host}");
    }
    let connections = server.connections();
    for host in ["0x7f000001", "2130706433", "127.1", "[::ffff:127.0.0.1]", "0.0.0.0", "[::ffff:7f00:1]"] {
        let error = world.read(get(&at(host, &server), "/")).await.unwrap_err();
        assert!(matches!(error, Error::PrivateAddress { .. }), "{host}: {error:?}");
    }
    assert_eq!(server.connections(), connections);
}

#[tokio::test]
async fn a_route_is_the_operators_word_for_its_origin_only() {
    let server = Server::always(ok("routed")).await;
    let public = Origin::parse("https://api.example.com").unwrap();
    let routes = BTreeMap::from([(public.clone(), at("internal.example.com", &server))]);
    let world = World::looking(Options { routes, ..Options::default() }, names(&[&["127.0.0.1"]]));
    assert_eq!(world.read(get(&public, "/")).await.unwrap().body, b"routed");
    let error = world.read(get(&at("internal.example.com", &server), "/")).await.unwrap_err();
    assert!(matches!(error, Error::PrivateAddress { .. }), "{error:?}");
    assert_eq!(server.seen().len(), 1);
}
