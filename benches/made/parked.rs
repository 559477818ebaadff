//! Parking and resuming: a run that waits is stored, its service goes away, and another one, with an engine and a connection to
//! the store of its own, goes on with it.
//! Invariant: what is measured on the second service begins after the wait is over, so that it is all beyond the call itself.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use base::{InstanceId, Limits, Response, TenantId, Timestamp};
use catalog::Registry;
use js::{Engine, Settings};
use ports::store::{Range, Table};
use ports::{Clock, Entropy, Presence, Store, Upstream, upstream};
use session::{Caller, Execution, JsSettings, Ports, RunJs, Service, State};
use store::blobs::FileBlobs;
use store::sqlite::{FILE_NAME, SqliteStore};
use tokio::runtime::{Builder, Runtime};

const ROUNDS: usize = 40;
/// Longer than it takes to park and to die.
const WAIT_MS: u64 = 300;
const LARGE: &str = "const rows = []; for (let i = 0; i < 20000; i++) rows.push({id: i, name: 'row number ' + i, tags: ['a', 'b'], nested: {score: i / 3}}); rows.length";

pub fn measure() {
    let folder = tempfile::tempdir().unwrap();
    // Compiled once, so that no start is measured.
    Process::on(folder.path()).run(&RunJs { code: "1".to_owned(), ..RunJs::default() });
    within(folder.path());
    for (what, make) in [("small heap", "1"), ("20,000 objects", LARGE)] {
        elsewhere(folder.path(), what, make);
    }
}

/// What one wait more costs a run that stays where it is. The call is one that is answered at once, by a refusal: the shortest
/// timer is a millisecond, as everywhere.
fn within(folder: &Path) {
    let process = Process::on(folder);
    let took = |waits: usize| {
        let code =
            format!("for (let i = 0; i < {waits}; i++) await fetch('https://nowhere.example/').catch(() => 0); 1");
        let asked = RunJs { code, ..RunJs::default() };
        let mut times: Vec<Duration> = (0..ROUNDS).map(|_| timed(|| drop(process.run(&asked)))).collect();
        times.sort();
        times[ROUNDS / 2].as_secs_f64() * 1e3
    };
    let each = (took(11) - took(1)) / 10.0;
    println!("{:<70} {each:>9.3} ms", "park durably and go on in the same process, each");
}

fn elsewhere(folder: &Path, what: &str, make: &str) {
    let first = Process::on(folder);
    let made = first.run(&RunJs { code: make.to_owned(), ..RunJs::default() }).heap.unwrap().to_string();
    let second = Process::on(folder);
    let (mut cold, mut cached) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // The second one has seen what the run stands on, or begins with nothing.
        let fresh = (round % 2 == 0).then(|| Process::on(folder));
        let taker = fresh.as_ref().unwrap_or(&second);
        let dying = Process::on(folder);
        let code = format!("globalThis.a = {round}; await new Promise(done => setTimeout(done, {WAIT_MS})); a + 1");
        let asked = RunJs { code, heap: Some(made.clone()), require_heap: true, wait_ms: Some(0), ..RunJs::default() };
        let ran = dying.run(&asked);
        dying.until_parked();
        let over = Instant::now() + Duration::from_millis(WAIT_MS);
        drop(dying);
        if fresh.is_none() {
            let look = RunJs { code: "1".to_owned(), heap: Some(made.clone()), ..RunJs::default() };
            taker.run(&look);
        }
        std::thread::sleep(over.saturating_duration_since(Instant::now()));
        let took = timed(|| {
            assert_eq!(taker.block(taker.service.resume_js(&[TenantId::local()])).unwrap(), 1);
            taker.until_ended(&ran);
        });
        if fresh.is_some() { cold.push(took) } else { cached.push(took) }
    }
    for (how, mut times, goal) in [("cached", cached, "  (goal 2)"), ("from storage", cold, "")] {
        times.sort();
        let name = format!("go on with a parked run in another process, {what}, {how}");
        println!("{name:<70} {:>9.3} ms{goal}", times[times.len() / 2].as_secs_f64() * 1e3);
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// A service with an engine, a runtime and a connection to the store of its own; dropped, it is dead.
struct Process {
    service: Arc<Service>,
    store: Arc<SqliteStore>,
    runtime: Option<Runtime>,
}

impl Process {
    fn on(data: &Path) -> Self {
        let store = Arc::new(SqliteStore::open(&data.join(FILE_NAME)).unwrap());
        let ports = Ports {
            store: store.clone(),
            blobs: Arc::new(FileBlobs::open(&data.join("blobs")).unwrap()),
            upstream: Arc::new(Nowhere),
            clock: Arc::new(System),
            entropy: Arc::new(System),
        };
        let engine = Engine::start(&Settings { code: Some(data.join("engines")), ..Settings::default() }).unwrap();
        let presence = Here { me: InstanceId::from_random(System.bytes()) };
        let service = Service::new(ports, Registry::new([]).unwrap(), Limits::default());
        let service = Arc::new(service.with_js(Arc::new(engine), Arc::new(presence), JsSettings::default()));
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { service, store, runtime: Some(runtime) }
    }

    fn block<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.as_ref().unwrap().block_on(work)
    }

    fn run(&self, asked: &RunJs) -> Execution {
        self.block(self.service.run_js(&Caller::local(), asked)).unwrap()
    }

    fn until_parked(&self) {
        loop {
            let range = Range {
                tenant: TenantId::local(),
                table: Table::Execution,
                prefix: String::new(),
                after: None,
                limit: 1,
            };
            let newest = self.block(self.store.scan(&range)).unwrap().remove(0).1;
            let row: serde_json::Value = serde_json::from_slice(&newest.value).unwrap();
            if row["parked"].is_object() {
                return;
            }
        }
    }

    fn until_ended(&self, ran: &Execution) {
        loop {
            let now = self.block(self.service.execution(&Caller::local(), &ran.id.to_string())).unwrap();
            if now.state.is_final() {
                assert_eq!(now.state, State::Completed, "{now:?}");
                return;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Whoever is not this one is dead: only the one that dies owns anything.
struct Here {
    me: InstanceId,
}

impl Presence for Here {
    fn me(&self) -> InstanceId {
        self.me
    }

    fn is_alive(&self, instance: InstanceId) -> bool {
        instance == self.me
    }
}

struct System;

impl Entropy for System {
    fn bytes(&self) -> [u8; 16] {
        *uuid::Uuid::new_v4().as_bytes()
    }
}

#[async_trait]
impl Clock for System {
    fn now(&self) -> Timestamp {
        Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

struct Nowhere;

#[async_trait]
impl Upstream for Nowhere {
    async fn send(&self, call: upstream::Call) -> Result<Response, upstream::Error> {
        Err(upstream::Error::ForeignOrigin { label: call.request.path })
    }
}
