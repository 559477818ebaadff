//! Golden cases of whole runs: a program against the real demo API over real HTTP, as the text a model reads.

// why: a failed expectation is the test's own failure.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Limits, Origin, Principal, TenantId, Timestamp};
use server::text;
use session::{Caller, Connection, OpenRequest, Ports, RunRequest, SeedRequest, Service};
use testkit::memory::{CountingEntropy, ManualClock, MapSecrets, MemoryBlobs, MemoryStore};

fn caller() -> Caller {
    Caller { tenant: TenantId::local(), connection: Connection::Principal(Principal::local()) }
}

async fn service(limits: Limits) -> Arc<Service> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(demo::serve(listener, std::future::pending()));
    let catalog = catalog::read("demo.yaml", include_str!("../../../catalogs/demo.yaml")).unwrap();
    let routes = BTreeMap::from([(catalog.origin.clone(), address)]);
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
    Arc::new(Service::new(ports, catalog::Registry::new([Arc::new(catalog)]).unwrap(), limits))
}

async fn run(service: &Arc<Service>, program: &str, force: bool) -> String {
    let seeds = ["Project", "Person", "Ticket", "Comment"];
    let seeds = seeds.map(|e| SeedRequest { api: "demo".to_owned(), entity: e.to_owned() }).to_vec();
    let open = OpenRequest { intent: "golden".to_owned(), seeds, replay: false };
    service.open(&caller(), &open).await.unwrap();
    let program = Some(program.to_owned());
    let request = RunRequest { session: "s0".to_owned(), program, force, ..RunRequest::default() };
    match service.run(&caller(), &request).await {
        Ok(answer) => text::ran(&answer.finished().unwrap(), service.limits().shown_chars).text,
        Err(error) => text::error(&error),
    }
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
            let service = service(limits).await;
            run(&service, &case.input, case.attribute("force").is_some()).await
        })
    });
}
