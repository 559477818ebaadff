//! Open calls: a stop lets them finish and answers them, and a defect in one of them is answered and does not affect others.

use std::sync::Arc;
use std::time::Duration;

use base::Limits;
use serde_json::{Value, json};
use session::{Ports, Service};
use testkit::memory::{CountingEntropy, ManualClock, MapSecrets, MemoryBlobs, MemoryStore};
use testkit::upstream::{Rule, ScriptedUpstream};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

async fn call(url: &str, tool: &str, arguments: Value) -> reqwest::Result<String> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = reqwest::Client::builder().no_proxy().build()?.post(url);
    let request =
        request.header("content-type", "application/json").header("accept", "application/json, text/event-stream");
    let request = request
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool);
    request.body(body.to_string()).send().await?.text().await
}

/// A server on these answers of its API, and how to stop it.
struct Running {
    url: String,
    stop: CancellationToken,
    serving: tokio::task::JoinHandle<Result<(), server::HttpError>>,
}

async fn start(upstream: Arc<ScriptedUpstream>) -> Running {
    // Building one installs the TLS provider that this test's own client needs too.
    let secrets = Arc::new(MapSecrets::new());
    upstream::HttpUpstream::new(upstream::Options::default(), secrets, Arc::new(ManualClock::default())).unwrap();
    let ports = Ports {
        store: Arc::new(MemoryStore::new()),
        blobs: Arc::new(MemoryBlobs::new()),
        upstream,
        clock: Arc::new(ManualClock::default()),
        entropy: Arc::new(CountingEntropy::new()),
    };
    let demo = Arc::new(catalog::read("demo.yaml", include_str!("../../../../catalogs/demo.yaml")).unwrap());
    let service = Arc::new(Service::new(ports, catalog::Registry::new([demo]).unwrap(), Limits::default()));
    let app = Arc::new(app::App::without_keys(service));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, stop) = (format!("http://{}/mcp", listener.local_addr().unwrap()), CancellationToken::new());
    let options = server::HttpOptions::new(vec!["127.0.0.1".to_owned()], Duration::from_secs(30));
    let serving = tokio::spawn(server::serve(listener, app, options, stop.clone()));
    call(&url, "plasm_context", json!({"intent": "x", "seeds": [{"api": "demo", "entity": "Project"}]})).await.unwrap();
    Running { url, stop, serving }
}

fn ops() -> Value {
    json!({"logical_session_ref": "s0", "program": "Project(\"OPS\")[name]"})
}

#[tokio::test]
async fn a_call_under_way_is_answered_after_a_stop() {
    let gate = Arc::new(Notify::new());
    let upstream = Arc::new(ScriptedUpstream::new());
    upstream
        .add(Rule::get("/api/projects/OPS").json(200, json!({"key": "OPS", "name": "Operations"})).waits_for(&gate));
    let Running { url, stop, serving } = start(upstream.clone()).await;
    let running = tokio::spawn({
        let url = url.clone();
        async move { call(&url, "plasm_run", ops()).await }
    });
    upstream.arrived(1).await;
    stop.cancel();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!serving.is_finished(), "it waits for the call");
    assert!(call(&url, "plasm", json!({})).await.is_err(), "no new work");
    gate.notify_waiters();
    let answer = running.await.unwrap().unwrap();
    assert!(answer.contains("Operations"), "{answer}");
    tokio::time::timeout(Duration::from_secs(10), serving)
        .await
        .expect("it ends once the call is answered")
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_defect_ends_one_call_and_the_caller_hears_of_it() {
    let upstream = Arc::new(ScriptedUpstream::new());
    upstream.add(Rule::get("/api/projects/OPS").answers(|_| panic!("a defect")).once());
    upstream.add(Rule::get("/api/projects/OPS").json(200, json!({"key": "OPS", "name": "Operations"})));
    let running = start(upstream).await;
    let broken = call(&running.url, "plasm_run", ops()).await.unwrap();
    assert!(broken.contains("internal: ") && broken.contains("\"isError\":true"), "{broken}");
    let next = call(&running.url, "plasm_run", ops()).await.unwrap();
    assert!(next.contains("Operations"), "the next call works: {next}");
}
