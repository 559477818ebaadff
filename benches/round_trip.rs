//! Compares the time of a call through Tokamak with the time of the same call made directly, as a ratio of medians within one run.
//! Invariant: every variant reads the same ticket from the same demo API in this process. The benchmark asserts nothing about time.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use access::Caller;
use async_trait::async_trait;
use base::{Limits, Origin, Secret, TenantId, Timestamp};
use serde_json::json;
use session::{OpenRequest, PlanRequest, Ports, RunRequest, SeedRequest, Service};
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 400;
const PROGRAM: &str = "Ticket(project=\"OPS\", number=42)[title, state]";

struct Clock;

#[async_trait]
impl ports::Clock for Clock {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

struct Entropy;

impl ports::Entropy for Entropy {
    fn bytes(&self) -> [u8; 16] {
        *uuid::Uuid::new_v4().as_bytes()
    }
}

struct NoSecrets;

#[async_trait]
impl ports::Secrets for NoSecrets {
    async fn get(&self, _: &TenantId, name: &str, _: &Origin) -> Result<Secret, ports::secrets::Error> {
        Err(ports::secrets::Error::NotSet { name: name.to_owned(), hint: String::new() })
    }

    async fn check_binding(&self, _: &TenantId, _: &str, _: &Origin) -> Result<(), ports::secrets::Error> {
        Ok(())
    }
}

fn caller() -> Caller {
    Caller::local()
}

/// Runs `work` repeatedly after a warm-up, and returns the median time of a round.
async fn median<F: AsyncFnMut()>(mut work: F) -> Duration {
    for _ in 0..20 {
        work().await;
    }
    let mut times = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let started = Instant::now();
        work().await;
        times.push(started.elapsed());
    }
    times.sort();
    times[ROUNDS / 2]
}

async fn service(data: &std::path::Path, demo: &Origin) -> Arc<Service> {
    let catalog = Arc::new(catalog::read("demo.yaml", include_str!("../catalogs/demo.yaml")).unwrap());
    let routes = BTreeMap::from([(catalog.origin.clone(), demo.clone())]);
    let options = upstream::Options { routes, ..upstream::Options::default() };
    let ports = Ports {
        store: Arc::new(store::sqlite::SqliteStore::open(&data.join(store::sqlite::FILE_NAME)).unwrap()),
        blobs: Arc::new(store::blobs::FileBlobs::open(&data.join("blobs")).unwrap()),
        upstream: Arc::new(upstream::HttpUpstream::new(options, Arc::new(NoSecrets), Arc::new(Clock)).unwrap()),
        clock: Arc::new(Clock),
        entropy: Arc::new(Entropy),
    };
    Arc::new(Service::new(ports, catalog::Registry::new([catalog]).unwrap(), Limits::default()))
}

fn modern(url: &str, client: &reqwest::Client, tool: &str, arguments: serde_json::Value) -> reqwest::RequestBuilder {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    client
        .post(url)
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", tool)
        .body(body.to_string())
}

#[tokio::main]
async fn main() {
    let demo_listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let demo_address = demo_listener.local_addr().unwrap();
    tokio::spawn(demo::serve(demo_listener, std::future::pending()));
    let folder = tempfile::tempdir().unwrap();
    let service = service(folder.path(), &Origin::parse(&format!("http://{demo_address}")).unwrap()).await;
    let seeds = vec![SeedRequest::all("demo", "Ticket")];
    let open = OpenRequest::new("bench", seeds);
    service.open(&caller(), &open).await.unwrap();

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let options = server::HttpOptions::new(vec!["127.0.0.1".to_owned()], Duration::from_secs(1));
    let app = Arc::new(app::App::without_keys(service.clone()));
    tokio::spawn(server::serve(listener, app, options, CancellationToken::new()));
    let client = reqwest::Client::builder().no_proxy().build().unwrap();

    let direct_url = format!("http://{demo_address}/api/projects/OPS/tickets/42");
    let direct = median(async || {
        client.get(&direct_url).send().await.unwrap().bytes().await.unwrap();
    })
    .await;
    let plan = PlanRequest { session: "s0".to_owned(), program: PROGRAM.to_owned() };
    let planned = median(async || {
        service.plan(&caller(), &plan).await.unwrap();
    })
    .await;
    let run = RunRequest { session: "s0".to_owned(), program: Some(PROGRAM.to_owned()), ..RunRequest::default() };
    let in_process = median(async || {
        assert!(!service.run(&caller(), &run).await.unwrap().finished().unwrap().outcome.failed());
    })
    .await;
    let over_mcp = median(async || {
        let arguments = json!({"logical_session_ref": "s0", "program": PROGRAM});
        let answer = modern(&url, &client, "plasm_run", arguments).send().await.unwrap();
        assert!(answer.status().is_success());
        assert!(answer.text().await.unwrap().contains("## result (1 row)"));
    })
    .await;

    println!("median of {ROUNDS} rounds, one after another: read one ticket of the demo API");
    println!("{:<58} {:>9} {:>7}", "", "ms", "ratio");
    for (name, time) in [
        ("the API itself, called directly over HTTP", direct),
        ("plasm: parse, check, plan (reads the session from SQLite)", planned),
        ("plasm_run in process: plan, call, store durably (fsync)", in_process),
        ("plasm_run over MCP 2026-07-28 and HTTP: all of it", over_mcp),
    ] {
        println!("{name:<58} {:>9.3} {:>6.1}x", time.as_secs_f64() * 1e3, time.as_secs_f64() / direct.as_secs_f64());
    }
}
