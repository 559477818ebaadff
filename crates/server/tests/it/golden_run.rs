//! Golden cases of whole runs: a program on the test API over HTTP, as the text that a model reads.

use std::collections::BTreeMap;
use std::sync::Arc;

use access::Caller;
use base::{Limits, Origin, Timestamp};
use serde_json::json;
use server::text;
use session::{OpenRequest, Ports, RunAnswer, RunRequest, SeedRequest, Service};
use testkit::golden::Case;
use testkit::memory::{CountingEntropy, ManualClock, MapSecrets, MemoryBlobs, MemoryStore};

fn caller() -> Caller {
    Caller::local()
}

async fn service(limits: Limits) -> (Arc<Service>, Origin) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(testapi::serve(listener));
    let catalog = catalog::read("demo.yaml", include_str!("../../../../catalogs/demo.yaml")).unwrap();
    let routes = BTreeMap::from([(catalog.origin.clone(), address.clone())]);
    let clock = Arc::new(ManualClock::at(Timestamp(0)));
    let options = upstream::Options { routes, ..upstream::Options::default() };
    let http = upstream::HttpUpstream::new(options, Arc::new(MapSecrets::new()), clock.clone()).unwrap();
    let ports = Ports {
        store: Arc::new(MemoryStore::new()),
        blobs: Arc::new(MemoryBlobs::new()),
        upstream: Arc::new(http),
        clock,
        entropy: Arc::new(CountingEntropy::new()),
    };
    let registry = catalog::Registry::new([Arc::new(catalog)]).unwrap();
    (Arc::new(Service::new(ports, registry, limits)), address)
}

async fn open(service: &Arc<Service>) {
    let seeds = ["Project", "Person", "Ticket", "Comment"];
    let seeds = seeds.map(|e| SeedRequest::all("demo", e)).to_vec();
    let open = OpenRequest::new("golden", seeds);
    service.open(&caller(), &open).await.unwrap();
}

async fn run(service: &Arc<Service>, request: &RunRequest) -> String {
    match service.run(&caller(), request).await {
        Ok(RunAnswer::Finished(ran)) => text::run(&ran, service.limits().shown_chars).text,
        Ok(RunAnswer::Running(operation)) => text::running(&operation),
        Err(error) => text::session_error(&error),
    }
}

/// The calls of a case: its program, and one for each line `then: …`, which is a program or `commit pc0`.
fn calls(case: &Case) -> Vec<RunRequest> {
    let request = |program: &str| RunRequest {
        session: "s0".to_owned(),
        program: Some(program.to_owned()),
        force: case.attribute("force").is_some(),
        wait: case.attribute("wait").map(|wait| wait == "true"),
        ..RunRequest::default()
    };
    let later = |line: &str| match line.strip_prefix("commit ") {
        Some(commit) => RunRequest { program: None, plan_commit_ref: Some(commit.to_owned()), ..request("") },
        None => request(line),
    };
    let mut parts = case.input.split("\nthen: ");
    let first = parts.next().map(request);
    first.into_iter().chain(parts.map(|line| later(line.trim_end()))).collect()
}

/// Sets a fault for every POST to the test API.
async fn break_writes(address: &Origin, fault: &str) {
    let rules = json!({"rules": [{"fault": fault, "method": "POST", "path": "/api/*"}]});
    let client = reqwest::Client::new();
    let told = client.post(format!("{address}/control/faults")).body(rules.to_string());
    let told = told.header("content-type", "application/json").send().await.unwrap();
    assert!(told.status().is_success(), "{}", told.status());
}

#[test]
fn golden_run() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    testkit::golden::run("../../tests/run", |case| {
        runtime.block_on(async {
            let mut limits = Limits { shown_chars: 1_000, ..Limits::default() };
            if let Some(rows) = case.attribute("rows") {
                limits.rows = rows.parse().unwrap();
            }
            if let Some(pages) = case.attribute("pages") {
                limits.pages = pages.parse().unwrap();
            }
            let (service, address) = service(limits).await;
            if let Some(fault) = case.attribute("faults") {
                break_writes(&address, fault).await;
            }
            open(&service).await;
            let mut answers = Vec::new();
            for request in calls(case) {
                answers.push(run(&service, &request).await);
            }
            answers.join("\n\n~~~\n")
        })
    });
}
