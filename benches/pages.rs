//! Compares the time to read many pages through Tokamak with the time of a plain HTTP client that reads and parses the same pages.
//! Invariant: both sides run in turns, and send the same requests with the same concurrency to the same demo API in this process. The
//! benchmark asserts nothing about time.

// why: a benchmark has no caller that could handle an error, so it stops at the line that failed.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use base::{Limits, Origin, Secret, TenantId, Timestamp};
use catalog::Catalog;
use lang::scope::{ExposedEntity, Scope};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

const ROUNDS: usize = 21;
const PAGES: usize = 200;
const LISTS: usize = 8;

struct Clock;

#[async_trait]
impl ports::Clock for Clock {
    /// Reads the system clock like the binary, because each call reads the clock several times.
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Timestamp(i64::try_from(since.as_millis()).unwrap())
    }
    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
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

/// The parts of Tokamak that run a program from its text to its rows, without a session.
struct ProgramRunner {
    upstream: upstream::HttpUpstream,
    scope: Scope,
    catalogs: BTreeMap<base::CatalogId, Arc<Catalog>>,
    limits: Limits,
    calls: Semaphore,
    tenant: TenantId,
}

impl ProgramRunner {
    /// Reads the demo catalog and sets its page size.
    fn new(address: SocketAddr, size: usize) -> Self {
        let text = include_str!("../catalogs/demo.yaml").replace("max: 100", &format!("max: {size}"));
        // The origin in the catalog is replaced by the address of the demo API. A route to the demo API would add a cost that calls of
        // real APIs do not have.
        let text = text.replace("http://demo.localhost", &format!("http://{address}"));
        let catalog = Arc::new(catalog::read("demo.yaml", &text).unwrap());
        let limits = Limits { pages: PAGES, rows: 1_000_000, ..Limits::default() };
        let options = upstream::Options::from(&limits);
        let exposed = ExposedEntity {
            symbol: "e1".into(),
            catalog: catalog.clone(),
            entity: "Ticket".into(),
            methods: BTreeMap::new(),
            relations: BTreeMap::new(),
        };
        Self {
            upstream: upstream::HttpUpstream::new(options, Arc::new(NoSecrets), Arc::new(Clock)).unwrap(),
            scope: Scope { entities: vec![exposed], ..Scope::default() },
            catalogs: BTreeMap::from([(catalog.id.clone(), catalog)]),
            calls: Semaphore::new(limits.calls_per_session),
            tenant: TenantId::local(),
            limits,
        }
    }

    /// Runs a program and returns the number of rows of all results.
    async fn run(&self, program: &str) -> usize {
        let parsed = lang::syntax::parse(program, &self.limits);
        let (checked, _) = lang::check::check(&self.scope, &parsed.program).unwrap();
        let plan = lang::plan::plan(&checked, &self.limits);
        let ctx = exec::Ctx::new(&self.upstream, &self.tenant, &self.catalogs, &self.limits, &self.calls);
        let outcome = exec::run(&ctx, &plan).await;
        outcome.returns.iter().map(|result| result.result.as_ref().unwrap().rows.len()).sum()
    }
}

/// Reads a list with a plain HTTP client: the pages are requested, parsed and stored. Returns the number of rows.
async fn read_bare(client: &reqwest::Client, list: &str, pages: usize) -> usize {
    let mut pages_read: Vec<Value> = Vec::new();
    for page in 1..=pages {
        let url = format!("{list}&page={page}");
        let body = client.get(url).send().await.unwrap().bytes().await.unwrap();
        pages_read.push(serde_json::from_slice(&body).unwrap());
    }
    pages_read.iter().map(|page| page["data"].as_array().unwrap().len()).sum()
}

/// Starts the demo API, adds `tickets` tickets for each list, and returns the address of the API.
async fn demo(client: &reqwest::Client, tickets: usize) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(demo::serve(listener, std::future::pending()));
    let body = "Seen on two machines since the last release; a restart helps for an hour. ".repeat(4);
    for number in 0..tickets * LISTS {
        let ticket = json!({
            "title": format!("Ticket {number} that fills a page"), "body": body, "state": "open", "priority": 3,
            "labels": ["bug", label(number % LISTS)], "owner": "ada", "reporter": "rosa", "due": "2026-05-01",
        });
        let request = client
            .post(format!("http://{address}/api/projects/OPS/tickets"))
            .header("content-type", "application/json")
            .body(ticket.to_string());
        assert_eq!(request.send().await.unwrap().status(), 201);
    }
    address
}

/// The median times of both sides of one comparison.
struct Measured {
    name: String,
    ours: Duration,
    bare: Duration,
}

/// Runs the rounds of both sides in turns, so that other work on the machine affects both.
async fn measure<A: AsyncFnMut() -> usize, B: AsyncFnMut() -> usize>(
    name: String,
    mut ours: A,
    mut bare: B,
) -> Measured {
    let mut our_times = Vec::new();
    let mut bare_times = Vec::new();
    assert_eq!(ours().await, bare().await, "the sides read different rows");
    for round in 0..ROUNDS {
        // Each side is first in every second round.
        for turn in 0..2 {
            let started = Instant::now();
            if (round + turn) % 2 == 0 {
                ours().await;
                our_times.push(started.elapsed());
            } else {
                bare().await;
                bare_times.push(started.elapsed());
            }
        }
    }
    our_times.sort();
    bare_times.sort();
    Measured { name, ours: our_times[ROUNDS / 2], bare: bare_times[ROUNDS / 2] }
}

/// Makes a program of eight independent reads. The reads have different filters, because reads that differ only in their limit become one.
fn side_by_side() -> String {
    let names: Vec<String> = (0..LISTS).map(label).collect();
    let mut program = String::new();
    for name in &names {
        writeln!(program, "{name} = Ticket{{label=\"{name}\"}}").unwrap();
    }
    program + &names.join(", ")
}

fn label(list: usize) -> String {
    format!("list{list}")
}

#[tokio::main]
async fn main() {
    let mut results = Vec::new();
    for size in [20, 100] {
        // The plain client needs the TLS provider that making an upstream installs.
        let installs_provider = ProgramRunner::new(SocketAddr::from(([127, 0, 0, 1], 9)), size);
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        drop(installs_provider);
        let pages = PAGES / LISTS;
        let address = demo(&client, pages * size).await;
        let runner = ProgramRunner::new(address, size);
        let list = format!("http://{address}/api/tickets?per_page={size}");
        let one_list = measure(
            format!("one list of {PAGES} pages, {size} rows each"),
            async || runner.run("Ticket").await,
            async || read_bare(&client, &list, PAGES).await,
        );
        results.push(one_list.await);
        let program = side_by_side();
        let lists: Vec<String> = (0..LISTS).map(|number| format!("{list}&label={}", label(number))).collect();
        let many_lists = measure(
            format!("{LISTS} lists of {pages} pages at once, {size} rows each"),
            async || runner.run(&program).await,
            async || {
                let reads = lists.iter().map(|list| read_bare(&client, list, pages));
                futures::future::join_all(reads).await.into_iter().sum()
            },
        );
        results.push(many_lists.await);
    }
    println!(
        "median of {ROUNDS} rounds in turns: {PAGES} pages of the demo API's tickets, text of a program to typed rows"
    );
    println!("{:<46} {:>9} {:>9} {:>7}", "", "bare ms", "ours ms", "ratio");
    for Measured { name, ours, bare } in results {
        let (ours, bare) = (ours.as_secs_f64() * 1e3, bare.as_secs_f64() * 1e3);
        println!("{name:<46} {bare:>9.2} {ours:>9.2} {:>6.2}x", ours / bare);
    }
}
