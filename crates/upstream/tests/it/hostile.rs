//! Tests with hostile values in every parameter of a catalog: the server reads the same request line, query, headers
//! and body that the catalog has bound.
//! Invariant: each request goes to the catalog's origin or is refused. The server that the values name gets no connection.

use base::{FormPart, Payload, Request};
use catalog::{Args, BindInput, Catalog, PagePosition, PageRequest, bind};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::fixture::Fixture;
use crate::server::{Received, Server, ok};

const EVERY_FEATURE: &str = include_str!("../../../../tests/catalog/every.yaml");
const ROUNDS: usize = 60;

/// Headers that the adapter and the HTTP client add to a request.
const ADDED_HEADERS: [&str; 7] =
    ["host", "accept", "accept-encoding", "content-length", "content-type", "user-agent", "x-api-key"];

/// Returns the catalog that uses every feature of the format, with `server` as its origin.
fn every_feature_catalog(server: &Server) -> Catalog {
    let text = EVERY_FEATURE.replacen("https://api.example.com/v1", &format!("{}/v1", server.origin), 1);
    let text = text.replacen("EVERY_KEY", "TOKEN", 1);
    catalog::read("every.yaml", &text).unwrap_or_else(|rejected| panic!("{rejected}"))
}

/// Returns a strategy for texts that could change a request. `evil` is the host that some of them name.
fn hostile_text(evil: &str) -> impl Strategy<Value = String> + use<> {
    let mut words: Vec<String> = [
        "../",
        "..",
        ".",
        "/",
        "%2f",
        "%2e%2e",
        "%00",
        "%",
        "?x=1",
        "#f",
        "&a=b",
        "=",
        "a,b",
        "\r\nX-Evil: 1\r\n\r\n",
        "\0",
        "\"",
        "{project}",
        "}",
        "\\",
        "\u{ff0f}",
        "\u{2024}\u{2024}",
        "\u{202e}abc",
        "e\u{301}",
        "é",
        " ",
        " a ",
        "\t",
        "+",
        "GET / HTTP/1.1\r\n\r\n",
        "\r\n--",
        "--",
        "plain",
    ]
    .map(str::to_owned)
    .to_vec();
    words.extend(["//", "http://", "@", "\\\\", "/\\", "x@"].map(|before| format!("{before}{evil}/x")));
    let word = prop_oneof![3 => proptest::sample::select(words), 1 => any::<String>()];
    proptest::collection::vec(word, 1..4).prop_map(|words| words.concat())
}

/// Binds every capability with this text in every parameter that takes a text.
fn bind_all(catalog: &Catalog, text: &str) -> Vec<Result<Request, catalog::BindError>> {
    let page = PageRequest { at: PagePosition::Cursor(text.to_owned()), size: 10 };
    let content = base64_of(text);
    catalog
        .capabilities
        .values()
        .map(|capability| {
            let mut args = Args::new();
            for param in capability.params.values() {
                let value = match param.name.as_str() {
                    "tag" | "mark" => json!([text, "b", text]),
                    "price" => json!({"amount": 1, "currency": text}),
                    "ticket" => json!({"project": text, "number": 7}),
                    "content" if capability.name == "ticket_attach" => json!(content),
                    "per_page" => continue,
                    _ => json!(text),
                };
                args.insert(param.name.clone(), value);
            }
            for part in &capability.anchor {
                args.insert(part.clone(), json!(text));
            }
            let ask = BindInput { page: Some(&page), idempotency_key: Some("once-1"), ..BindInput::new(&args) };
            bind(catalog, capability, &ask)
        })
        .collect()
}

fn base64_of(text: &str) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[tokio::test]
async fn a_server_reads_the_request_that_was_bound() {
    let evil = Server::always(ok("{}")).await;
    let server = Server::always(ok("{}")).await;
    let catalog = every_feature_catalog(&server);
    let fixture = Fixture::new();
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let texts = hostile_text(evil.origin.as_str().trim_start_matches("http://"));
    let mut sent = 0;
    let mut refused = 0;
    for _ in 0..ROUNDS {
        let text = texts.new_tree(&mut runner).unwrap().current();
        for request in bind_all(&catalog, &text) {
            let Ok(request) = request else {
                refused += 1;
                continue;
            };
            fixture.read(request.clone()).await.unwrap_or_else(|error| panic!("{error:?}: {request:?}"));
            let received = server.received().pop().unwrap();
            assert_same(&request, &received);
            sent += 1;
            assert_eq!(server.received().len(), sent, "one call is one request");
        }
    }
    assert_eq!(evil.connections(), 0);
    assert!(sent > ROUNDS && refused > 0, "{sent} sent, {refused} refused");
}

fn assert_same(request: &Request, received: &Received) {
    let mut words = received.line.split(' ');
    assert_eq!(words.next(), Some(request.method.as_str()));
    let (path, query) = words.next().map(|target| target.split_once('?').unwrap_or((target, ""))).unwrap();
    assert_eq!((words.next(), words.next()), (Some("HTTP/1.1"), None));
    assert_eq!(path, request.path);
    let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    assert_eq!(pairs, request.query);
    let catalog_headers: Vec<_> =
        received.headers.iter().filter(|(name, _)| !ADDED_HEADERS.contains(&name.as_str())).cloned().collect();
    let bound_headers: Vec<_> =
        request.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    let sorted = |mut headers: Vec<(String, String)>| {
        headers.sort();
        headers
    };
    assert_eq!(sorted(catalog_headers), sorted(bound_headers));
    let host = request.origin.as_str().trim_start_matches("http://");
    assert_eq!(received.header("host"), Some(host));
    for name in ADDED_HEADERS {
        assert!(received.headers.iter().filter(|(other, _)| other == name).count() <= 1, "{name} twice");
    }
    let kind = received.header("content-type").unwrap_or_default();
    match &request.body {
        None => assert_eq!(received.body, ""),
        Some(Payload::Json { value, .. }) => {
            assert_eq!(serde_json::from_str::<Value>(&received.body).unwrap(), *value);
        }
        Some(Payload::Form(pairs)) => {
            let read: Vec<(String, String)> = form_urlencoded::parse(received.body.as_bytes()).into_owned().collect();
            assert_eq!(read, *pairs);
        }
        Some(Payload::Bytes { content_type, bytes }) => {
            assert_eq!((kind, received.body.as_bytes()), (content_type.as_str(), bytes.as_slice()));
        }
        Some(Payload::Multipart(parts)) => {
            let boundary = kind.strip_prefix("multipart/form-data; boundary=").unwrap();
            assert_eq!(read_parts(&received.body, boundary), parts.iter().map(expected_part).collect::<Vec<_>>());
        }
    }
}

/// Reads the heads and bodies of the parts by the rules of RFC 2046.
fn read_parts(body: &str, boundary: &str) -> Vec<(String, String)> {
    let body = format!("\r\n{body}");
    let mut pieces: Vec<&str> = body.split(&format!("\r\n--{boundary}")).collect();
    assert_eq!((pieces.remove(0), pieces.pop()), ("", Some("--\r\n")));
    let part = |piece: &&str| {
        let (head, body) = piece.strip_prefix("\r\n").unwrap().split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    };
    pieces.iter().map(part).collect()
}

/// Returns the head and body that a part must have, with names quoted as browsers do.
fn expected_part(part: &FormPart) -> (String, String) {
    let quoted = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let file = part.file_name.as_ref().map(|name| format!("; filename=\"{}\"", quoted(name))).unwrap_or_default();
    let kind = part.content_type.as_ref().map(|kind| format!("\r\nContent-Type: {kind}")).unwrap_or_default();
    let head = format!("Content-Disposition: form-data; name=\"{}\"{file}{kind}", quoted(&part.name));
    (head, String::from_utf8(part.bytes.clone()).unwrap())
}

/// Sets the next page of a list to addresses of another origin, in each form that an API could use.
#[tokio::test]
async fn a_next_page_on_another_origin_is_refused() {
    let evil = Server::always(ok("{}")).await;
    let server = Server::always(ok("{}")).await;
    let catalog = every_feature_catalog(&server);
    let fixture = Fixture::new();
    let host = evil.origin.as_str().trim_start_matches("http://");
    let list = catalog.capability("comment_list").unwrap();
    for path in [format!("//{host}/x"), format!("/\\{host}"), format!("{}/x", evil.origin), format!("@{host}/x")] {
        let page = PageRequest { at: PagePosition::Address { path, query: vec![] }, size: 1 };
        let args = Args::from([("ticket".to_owned(), json!({"project": "p", "number": 1}))]);
        let request = bind(&catalog, list, &BindInput { page: Some(&page), ..BindInput::new(&args) }).unwrap();
        assert!(fixture.read(request).await.is_err());
    }
    assert_eq!((server.connections(), evil.connections()), (0, 0));
}
