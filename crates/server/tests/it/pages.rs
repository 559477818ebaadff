//! Page handles over HTTP: every paging form of the test API, cut anywhere, read on to the end.

use std::sync::Arc;

use access::Caller;
use base::{Limits, Origin, Timestamp};
use session::{OpenRequest, Ports, RunAnswer, RunRequest, RunResult, SeedRequest, Service};
use testkit::memory::{CountingEntropy, ManualClock, MapSecrets, MemoryBlobs, MemoryStore};

/// The same 321 tickets under each form.
const FORMS: [(&str, &str, &str); 6] = [
    ("ByPage", "GET /page\n    rows: data", "{page: page, size: {send: per_page, max: 100}, total: total}"),
    ("ByOffset", "GET /offset\n    rows: data", "{offset: offset, size: {send: limit, max: 100}, total: total}"),
    ("ByCursor", "GET /cursor\n    rows: data", "{cursor: next_cursor, send: cursor, size: {send: limit, max: 100}}"),
    ("ByLink", "GET /link", "{link: next, size: {send: per_page, max: 100}}"),
    ("ByNext", "GET /next-url\n    rows: data", "{next: next, size: {send: limit, max: 100}}"),
    (
        "ByBody",
        "POST /body\n    rows: data",
        "{cursor: next_cursor, send: cursor, in: body, size: {send: limit, max: 100}}",
    ),
];

fn catalog(address: &Origin) -> catalog::Catalog {
    // Its real address: the API names the next page by the host it was asked at.
    let mut text = format!("catalog: lists\nversion: 1\ntitle: Lists\norigin: {address}/paging\nentities:\n");
    for (entity, ..) in FORMS {
        text += &format!("  {entity}:\n    about: a ticket\n    key: [project, number]\n");
        text += "    fields: {project: string, number: integer}\n";
    }
    text += "capabilities:\n";
    for (entity, http, paging) in FORMS {
        let name = entity.to_lowercase();
        text += &format!("  {name}_list:\n    query: {entity}\n    http: {http}\n    paging: {paging}\n");
    }
    catalog::read("lists.yaml", &text).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

fn caller() -> Caller {
    Caller::local()
}

/// Services on one storage that call one API.
struct House {
    ports: Ports,
    catalog: Arc<catalog::Catalog>,
}

impl House {
    async fn new() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Origin::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        tokio::spawn(testapi::serve(listener));
        let clock = Arc::new(ManualClock::at(Timestamp(0)));
        let options = upstream::Options::default();
        let http = upstream::HttpUpstream::new(options, Arc::new(MapSecrets::new()), clock.clone()).unwrap();
        let ports = Ports {
            store: Arc::new(MemoryStore::new()),
            blobs: Arc::new(MemoryBlobs::new()),
            upstream: Arc::new(http),
            clock,
            entropy: Arc::new(CountingEntropy::new()),
        };
        Self { ports, catalog: Arc::new(catalog(&address)) }
    }

    fn service(&self, limits: &Limits) -> Arc<Service> {
        let registry = catalog::Registry::new([self.catalog.clone()]).unwrap();
        Arc::new(Service::new(self.ports.clone(), registry, limits.clone()))
    }
}

async fn run(service: &Arc<Service>, program: &str) -> Arc<RunResult> {
    let (session, program) = ("s0".to_owned(), Some(program.to_owned()));
    match service.run(&caller(), &RunRequest { session, program, ..RunRequest::default() }).await.unwrap() {
        RunAnswer::Finished(ran) => ran,
        RunAnswer::Running(operation) => panic!("{operation:?}"),
    }
}

fn rows(ran: &Arc<RunResult>) -> Vec<(String, u64)> {
    let rows = ran.outcome.returns[0].result.as_ref().unwrap_or_else(|error| panic!("{error}"));
    rows.rows.iter().map(|row| (row["project"].as_str().unwrap().to_owned(), row["number"].as_u64().unwrap())).collect()
}

/// The rows of a list, in pieces of what the limits allow, each piece asked of a service of its own.
async fn in_pieces(house: &House, form: &str, limits: &Limits) -> Vec<(String, u64)> {
    let (mut read, mut program) = (Vec::new(), format!("{form}[project, number]"));
    loop {
        let service = house.service(limits);
        let ran = run(&service, &program).await;
        let piece = rows(&ran);
        assert!(!piece.is_empty(), "{form}: a handle stands for rows that are there");
        assert_eq!(rows(&run(&service, &program).await), piece, "{form}: asked twice, the same");
        read.extend(piece);
        let Some(more) = ran.pages.first() else { return read };
        program = format!("page({})", more.handle);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_of_paging_goes_on_without_gap_or_repetition() {
    let house = House::new().await;
    let whole = Limits { rows: 1_000, ..Limits::default() };
    let service = house.service(&whole);
    let seeds = FORMS.map(|(entity, ..)| SeedRequest::all("lists", entity)).to_vec();
    let open = OpenRequest::new("lists", seeds);
    service.open(&caller(), &open).await.unwrap();
    let all = rows(&run(&service, "ByPage[project, number]").await);
    assert_eq!(all.len(), 321);
    for (form, ..) in FORMS {
        // The limits end at a whole page, across pages, within a page, and by the number of pages.
        let by_rows = [100, 70, 33].map(|rows| Limits { rows, ..Limits::default() });
        let by_pages = Limits { pages: 1, ..Limits::default() };
        for limits in by_rows.into_iter().chain([by_pages]) {
            let read = in_pieces(&house, form, &limits).await;
            assert_eq!(read, all, "{form} with {} rows and {} pages at most", limits.rows, limits.pages);
        }
    }
}
