//! Tests with hostile paths, redirects and headers: no request is sent to another host than its origin.
//! Invariant: a refused request opens no connection, neither to its origin nor to the host that it names.

use base::{Auth, Origin, Request};
use ports::upstream::Error;

use crate::fixture::{Fixture, get, signed};
use crate::server::{Server, ok, with_status};

#[tokio::test]
async fn hostile_paths_are_refused() {
    let evil = Server::always(ok("evil")).await;
    let server = Server::always(ok("good")).await;
    let fixture = Fixture::new();
    let host = evil.origin.as_str().trim_start_matches("http://");
    let refused = [
        format!("//{host}/x"),
        format!("/\\{host}/x"),
        format!("\\\\{host}/x"),
        format!("@{host}/x"),
        format!(":pw@{host}/x"),
        format!("/\t/{host}/x"),
        format!("/a/../..//{host}/x"),
        format!("{}/x", evil.origin),
        "/a/../b".to_owned(),
        "/%2e%2E/b".to_owned(),
        "/a?b".to_owned(),
        "/a#b".to_owned(),
        "/a b".to_owned(),
        "/a HTTP/1.1\r\nHost: evil\r\n\r\n".to_owned(),
        "/\u{0}".to_owned(),
        String::new(),
    ];
    for path in refused {
        let error = fixture.read(signed(get(&server.origin, &path))).await.unwrap_err();
        let leaves = !path.starts_with('/') || path.starts_with("//");
        let is_expected =
            if leaves { matches!(error, Error::ForeignOrigin { .. }) } else { matches!(error, Error::Invalid { .. }) };
        assert!(is_expected, "{path:?}: {error:?}");
        assert!(!error.to_string().contains(char::is_control), "{error}");
    }
    assert_eq!((server.connections(), evil.connections()), (0, 0));

    for path in [format!("/@{host}/x"), format!("/http://{host}/x"), format!("/a%2F..%2F{host}"), "/a//b".to_owned()] {
        let answer = fixture.read(get(&server.origin, &path)).await.unwrap();
        assert_eq!(answer.body, b"good");
        assert_eq!(server.received().pop().unwrap().line, format!("GET {path} HTTP/1.1"));
    }
    assert_eq!(evil.connections(), 0);
}

#[tokio::test]
async fn redirects_are_refused_and_their_target_is_not_contacted() {
    let target = Server::always(ok("here")).await;
    let fixture = Fixture::new();
    for status in ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"] {
        let location = format!("Location: {}/there?token=abc#f\r\n", target.origin);
        let server = Server::always(with_status(status, &location, "")).await;
        let error = fixture.read(signed(get(&server.origin, "/"))).await.unwrap_err();
        let Error::Redirect { location, .. } = error else { panic!("{error:?}") };
        assert_eq!(location, format!("{}/there", target.origin));
        assert_eq!(server.received().len(), 1);
    }
    assert_eq!(target.connections(), 0);

    let server = Server::always(with_status("300 Choices", "", "a or b")).await;
    assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().status, 300);
    let not_modified = "HTTP/1.1 304 Not Modified\r\nLocation: /x\r\n\r\n";
    let server = Server::always(not_modified).await;
    assert_eq!(fixture.read(get(&server.origin, "/")).await.unwrap().status, 304);
}

#[tokio::test]
async fn headers_cannot_inject_lines_or_choose_the_host() {
    let server = Server::always(ok("")).await;
    let fixture = Fixture::new();
    let bad = [
        ("X-Note", "a\r\nX-Evil: 1"),
        ("X-Note", "a\nb"),
        ("X-Note", "a\u{0}b"),
        ("X-Note\r\nX-Evil", "1"),
        ("X Note", "1"),
        ("", "1"),
        ("Host", "evil.example"),
        ("hOsT", "evil.example"),
        ("Content-Length", "0"),
        ("Transfer-Encoding", "chunked"),
        ("Connection", "upgrade"),
        ("Accept-Encoding", "gzip"),
    ];
    for (name, value) in bad {
        let headers = vec![(name.to_owned(), value.to_owned())];
        let error = fixture.read(Request { headers, ..get(&server.origin, "/") }).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{name:?}: {error:?}");
    }
    for name in ["Host", "a\r\nb"] {
        let auth = Some(Auth::Header { name: name.to_owned(), secret: "TOKEN".to_owned(), prefix: None });
        let error = fixture.read(Request { auth, ..get(&server.origin, "/") }).await.unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{name:?}: {error:?}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn an_https_request_is_never_sent_without_tls() {
    let server = Server::always(ok("")).await;
    let origin = Origin::parse(&format!("https://127.0.0.1:{}", server.port)).unwrap();
    let fixture = Fixture::with(crate::fixture::single_try());
    let error = tokio::time::timeout(std::time::Duration::from_secs(5), fixture.read(signed(get(&origin, "/")))).await;
    let error = error.unwrap().unwrap_err();
    assert!(matches!(error, Error::Connect { .. } | Error::Timeout { .. }), "{error:?}");
    assert_eq!(server.received().len(), 0);
}
