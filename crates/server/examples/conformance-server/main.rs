//! The product's HTTP server with the tools, resources and prompts that the MCP conformance suite asks for by name.
//!
//! It takes the arguments `serve --port PORT --data FOLDER` of the product and prints the same first line. It stores everything in
//! memory, so the folder stays empty.
//! Invariant: only tests build this program, and the product has none of the fixtures.

#![expect(
    deprecated,
    reason = "the suite tests features that the newest revision drops: logs, sampling, subscriptions"
)]
// why: the ready line is for the test that started this program, and a failed start is the test's own failure.
#![allow(clippy::print_stderr, clippy::unwrap_used, clippy::expect_used)]

mod asks;
mod changes;
mod data;
mod fixtures;
mod jobs;
mod rounds;
mod tools;

use std::sync::Arc;
use std::time::Duration;

use app::App;
use base::Limits;
use session::{Ports, Service};
use testkit::memory::{CountingEntropy, ManualClock, MemoryBlobs, MemoryStore};
use testkit::upstream::ScriptedUpstream;
use tokio_util::sync::CancellationToken;

use crate::fixtures::AddFixtures;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let port = arguments.iter().position(|argument| argument == "--port").map(|index| arguments[index + 1].clone());
    let address = format!("127.0.0.1:{}", port.as_deref().unwrap_or("0"));
    let listener = tokio::net::TcpListener::bind(address).await.expect("the port is free");
    let ports = Ports {
        store: Arc::new(MemoryStore::new()),
        blobs: Arc::new(MemoryBlobs::new()),
        upstream: Arc::new(ScriptedUpstream::new()),
        clock: Arc::new(ManualClock::default()),
        entropy: Arc::new(CountingEntropy::new()),
    };
    let demo =
        catalog::read("demo.yaml", include_str!("../../../../catalogs/demo.yaml")).expect("the catalog is valid");
    let registry = catalog::Registry::new([Arc::new(demo)]).expect("the catalog has a name of its own");
    let app = Arc::new(App::without_keys(Arc::new(Service::new(ports, registry, Limits::default()))));
    let hosts = ["127.0.0.1", "localhost", "::1"].map(str::to_owned).to_vec();
    let options = server::HttpOptions::new(hosts, Duration::from_secs(1));
    eprintln!("ready http://{}", listener.local_addr().expect("the listener is bound"));
    let never = CancellationToken::new();
    server::serve_wrapped(listener, app, options, never, AddFixtures::default()).await.expect("the server runs");
}
