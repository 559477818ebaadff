//! Tests with host names that resolve to private addresses, and with disguised private addresses.
//! Invariant: a refused request opens no connection.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base::{Auth, Origin, Request};
use ports::upstream::{Error, TokenError};
use upstream::{NameLookup, Options, OwnServers, RefusedServers};

use crate::fixture::{Fixture, get, printed_with_causes, signed};
use crate::server::{Server, ok};

/// A name server that returns one answer after the other, and repeats the last one.
struct ScriptedNames {
    answers: Mutex<VecDeque<Vec<IpAddr>>>,
    /// The hosts that were looked up.
    lookups: Mutex<Vec<String>>,
}

#[async_trait]
impl NameLookup for ScriptedNames {
    async fn lookup(&self, host: &str) -> std::io::Result<Vec<IpAddr>> {
        self.lookups.lock().unwrap().push(host.to_owned());
        let mut answers = self.answers.lock().unwrap();
        if answers.len() > 1 { Ok(answers.pop_front().unwrap()) } else { Ok(answers[0].clone()) }
    }
}

fn scripted_names(answers: &[&[&str]]) -> Arc<ScriptedNames> {
    let parse = |list: &&[&str]| list.iter().map(|text| text.parse().unwrap()).collect();
    Arc::new(ScriptedNames { answers: Mutex::new(answers.iter().map(parse).collect()), lookups: Mutex::default() })
}

fn origin_at(host: &str, server: &Server) -> Origin {
    Origin::parse(&format!("http://{host}:{}", server.port)).unwrap()
}

#[tokio::test]
async fn a_public_name_with_a_private_address_is_refused() {
    let server = Server::always(ok("inside")).await;
    for addresses in [
        &["127.0.0.1"][..],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["10.0.0.1"],
        &["169.254.169.254"],
        &["0.0.0.0"],
        // A name with one public and one private address is refused.
        &["203.0.113.1", "127.0.0.1"],
        &["127.0.0.1", "203.0.113.1"],
    ] {
        for host in ["api.example.com", "localhost.example.com", "127.0.0.1.nip.example"] {
            let names = scripted_names(&[addresses]);
            let fixture = Fixture::with_lookup(Options::default(), Arc::clone(&names) as Arc<_>);
            let error = fixture.read(signed(get(&origin_at(host, &server), "/x"))).await.unwrap_err();
            assert!(matches!(error, Error::PrivateAddress { .. }), "{addresses:?}: {error:?}");
            assert!(!printed_with_causes(&error).contains("hunter2"));
            assert_eq!(names.lookups.lock().unwrap().len(), 1, "not retried");
        }
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_that_changes_to_a_private_address_is_refused() {
    let server = Server::always(ok("inside")).await;
    // The first address passes the check and does not answer. The second lookup returns a private address.
    let names = scripted_names(&[&["203.0.113.1"], &["127.0.0.1"]]);
    let options = Options { connect_timeout: Duration::from_millis(200), ..Options::default() };
    let fixture = Fixture::with_lookup(options, Arc::clone(&names) as Arc<_>);
    let error = fixture.read(get(&origin_at("rebind.example.com", &server), "/x")).await.unwrap_err();
    assert!(matches!(error, Error::PrivateAddress { .. }), "{error:?}");
    assert_eq!(
        names.lookups.lock().unwrap().len(),
        2,
        "one lookup for each connect, and none between check and connect"
    );
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_token_endpoint_with_a_private_address_is_refused() {
    let server = Server::always(ok("{}")).await;
    let fixture = Fixture::with_lookup(Options::default(), scripted_names(&[&["127.0.0.1"]]));
    let auth = Some(Auth::Oauth2 {
        token_origin: origin_at("id.example.com", &server),
        token_path: "/t".to_owned(),
        client_id: "CLIENT_ID".to_owned(),
        client_secret: "CLIENT_SECRET".to_owned(),
        scopes: vec![],
    });
    let error = fixture.read(Request { auth, ..get(&server.origin, "/") }).await.unwrap_err();
    let Error::Token { source, .. } = error else { panic!("{error:?}") };
    assert_eq!(source, TokenError::NoAnswer { kind: "private_address" });
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn loopback_is_reached_only_if_the_origin_names_it_plainly() {
    let server = Server::always(ok("here")).await;
    let fixture = Fixture::with_lookup(Options::default(), scripted_names(&[&["127.0.0.1"]]));
    for host in ["localhost", "api.localhost", "127.0.0.1"] {
        assert_eq!(fixture.read(get(&origin_at(host, &server), "/")).await.unwrap().body, b"here", "{host}");
    }
    let connections = server.connections();
    for host in ["0x7f000001", "2130706433", "127.1", "[::ffff:127.0.0.1]", "0.0.0.0", "[::ffff:7f00:1]"] {
        let error = fixture.read(get(&origin_at(host, &server), "/")).await.unwrap_err();
        assert!(matches!(error, Error::PrivateAddress { .. }), "{host}: {error:?}");
    }
    assert_eq!(server.connections(), connections);
}

#[tokio::test]
async fn a_route_may_lead_to_a_private_address_for_its_origin_only() {
    let server = Server::always(ok("routed")).await;
    let public = Origin::parse("https://api.example.com").unwrap();
    let routes = BTreeMap::from([(public.clone(), origin_at("internal.example.com", &server))]);
    let fixture = Fixture::with_lookup(Options { routes, ..Options::default() }, scripted_names(&[&["127.0.0.1"]]));
    assert_eq!(fixture.read(get(&public, "/")).await.unwrap().body, b"routed");
    let error = fixture.read(get(&origin_at("internal.example.com", &server), "/")).await.unwrap_err();
    assert!(matches!(error, Error::PrivateAddress { .. }), "{error:?}");
    assert_eq!(server.received().len(), 1);
}

/// A server that listens on one address and has one name.
struct OwnServer(SocketAddr);

impl OwnServers for OwnServer {
    fn listeners(&self) -> Vec<SocketAddr> {
        vec![self.0]
    }

    fn names(&self) -> Vec<(String, u16)> {
        vec![("tokamak.example.com".to_owned(), 443)]
    }
}

#[tokio::test]
async fn no_form_of_the_address_of_this_server_is_reached() {
    let own = Server::always(ok("approved")).await;
    let other = Server::always(ok("other")).await;
    for listen in ["127.0.0.1", "0.0.0.0", "::", "::1"] {
        let listener = SocketAddr::new(listen.parse().unwrap(), own.port);
        let refused_servers = RefusedServers::new(Arc::new(OwnServer(listener)));
        let routed = Origin::parse("https://routed.example.com").unwrap();
        let routes = BTreeMap::from([(routed.clone(), origin_at("127.0.0.1", &own))]);
        let options = Options { refused_servers, routes, ..Options::default() };
        let fixture = Fixture::with_lookup(options, scripted_names(&[&["127.0.0.1"]]));
        for host in [
            "127.0.0.1",
            "127.0.0.2",
            "localhost",
            "LOCALHOST.",
            "api.localhost",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "0.0.0.0",
            "[::]",
            "2130706433",
            "0x7f.1",
            "public.example.com",
        ] {
            let error = fixture.read(get(&origin_at(host, &own), "/")).await.unwrap_err();
            assert!(matches!(error, Error::OwnServer { .. }), "{listen} {host}: {error:?}");
            assert!(error.to_string().contains("E0603"), "{error}");
        }
        let by_name = Origin::parse("https://Tokamak.Example.Com").unwrap();
        for origin in [by_name, routed] {
            let error = fixture.read(get(&origin, "/")).await.unwrap_err();
            assert!(matches!(error, Error::OwnServer { .. }), "{listen} {origin}: {error:?}");
        }
        // Another server on this machine, such as the demo API, stays reachable.
        assert_eq!(fixture.read(get(&origin_at("localhost", &other), "/")).await.unwrap().body, b"other");
    }
    assert_eq!(own.connections(), 0);
}
