//! What a catalog binds is what a server reads, whatever stands in the values: the same line, pairs, headers and body.
//! Invariant: each request goes to the catalog's origin or nowhere; nobody listens in vain at the one it was meant to reach
//! instead.

use base::{FormPart, Payload, Request};
use catalog::{Args, BindInput, Catalog, PagePosition, PageRequest, bind};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::server::{Received, Server, ok};
use crate::world::World;

const EVERY: &str = include_str!("../../../../tests/catalog/every.yaml");
const ROUNDS: usize = 60;

/// Headers that the adapter and the client under it add to what a request says.
const OWN: [&str; 7] =
    ["host", "accept", "accept-encoding", "content-length", "content-type", "user-agent", "x-api-key"];

fn every(server: &Server) -> Catalog {
    let text = EVERY.replacen("https://api.example.com/v1", &format!("{}/v1", server.origin), 1);
    let text = text.replacen("EVERY_KEY", "TOKEN", 1);
    catalog::read("every.yaml", &text).unwrap_or_else(|rejected| panic!("{rejected}"))
}

fn hostile(evil: &str) -> impl Strategy<Value = String> + use<> {
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

/// Every capability that sends something, with this text in every place that takes one.
fn calls(catalog: &Catalog, text: &str) -> Vec<Result<Request, catalog::BindError>> {
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
async fn a_server_reads_what_was_bound() {
    let evil = Server::always(ok("{}")).await;
    let server = Server::always(ok("{}")).await;
    let catalog = every(&server);
    let world = World::new();
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::default() });
    let values = hostile(evil.origin.as_str().trim_start_matches("http://"));
    let (mut sent, mut refused) = (0, 0);
    for _ in 0..ROUNDS {
        let text = values.new_tree(&mut runner).unwrap().current();
        for request in calls(&catalog, &text) {
            let Ok(request) = request else {
                refused += 1;
                continue;
            };
            world.read(request.clone()).await.unwrap_or_else(|error| panic!("{error:?}: {request:?}"));
            let received = server.seen().pop().unwrap();
            same(&request, &received);
            sent += 1;
            assert_eq!(server.seen().len(), sent, "one request came of one call");
        }
    }
    assert_eq!(evil.connections(), 0);
    assert!(sent > ROUNDS && refused > 0, "{sent} sent, {refused} refused");
}

fn same(request: &Request, received: &Received) {
    let mut words = received.line.split(' ');
    assert_eq!(words.next(), Some(request.method.as_str()));
    let (path, query) = words.next().map(|target| target.split_once('?').unwrap_or((target, ""))).unwrap();
    assert_eq!((words.next(), words.next()), (Some("HTTP/1.1"), None));
    assert_eq!(path, request.path);
    let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    assert_eq!(pairs, request.query);
    let own: Vec<_> = received.headers.iter().filter(|(name, _)| !OWN.contains(&name.as_str())).cloned().collect();
    let said: Vec<_> = request.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
    let sorted = |mut headers: Vec<(String, String)>| {
        headers.sort();
        headers
    };
    assert_eq!(sorted(own), sorted(said));
    let host = request.origin.as_str().trim_start_matches("http://");
    assert_eq!(received.header("host"), Some(host));
    for name in OWN {
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
            assert_eq!(read_parts(&received.body, boundary), parts.iter().map(shown).collect::<Vec<_>>());
        }
    }
}

/// Heads and bodies of the parts, read as RFC 2046 says.
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

/// What the parts must read like: names quoted as browsers do.
fn shown(part: &FormPart) -> (String, String) {
    let quoted = |text: &str| text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A");
    let file = part.file_name.as_ref().map(|name| format!("; filename=\"{}\"", quoted(name))).unwrap_or_default();
    let kind = part.content_type.as_ref().map(|kind| format!("\r\nContent-Type: {kind}")).unwrap_or_default();
    let head = format!("Content-Disposition: form-data; name=\"{}\"{file}{kind}", quoted(&part.name));
    (head, String::from_utf8(part.bytes.clone()).unwrap())
}

/// A next page on another origin is refused before anything is sent, in each form that follows an address.
#[tokio::test]
async fn a_next_page_elsewhere_is_not_fetched() {
    let evil = Server::always(ok("{}")).await;
    let server = Server::always(ok("{}")).await;
    let catalog = every(&server);
    let world = World::new();
    let host = evil.origin.as_str().trim_start_matches("http://");
    let list = catalog.capability("comment_list").unwrap();
    for path in [format!("//{host}/x"), format!("/\\{host}"), format!("{}/x", evil.origin), format!("@{host}/x")] {
        let page = PageRequest { at: PagePosition::Address { path, query: vec![] }, size: 1 };
        let args = Args::from([("ticket".to_owned(), json!({"project": "p", "number": 1}))]);
        let request = bind(&catalog, list, &BindInput { page: Some(&page), ..BindInput::new(&args) }).unwrap();
        assert!(world.read(request).await.is_err());
    }
    assert_eq!((server.connections(), evil.connections()), (0, 0));
}
