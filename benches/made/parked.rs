//! Measures parking and resuming: a waiting run is stored, its service ends, and another service continues the run, with an engine
//! and a connection to the store of its own.
//! Invariant: the time of the call itself is not included. If the run waits for a call, the time of the call on the second service is
//! subtracted; if it waits for a timer, the second service starts after the timer. All runs leave different heaps, because a heap
//! that is already stored costs a second transaction.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use access::Caller;
use async_trait::async_trait;
use base::{InstanceId, Limits, Origin, Response, TenantId, Timestamp};
use catalog::Registry;
use js::{Engine, Settings};
use ports::store::{Batch, Expect, Key, Range, Table};
use ports::{Clock, Entropy, Presence, Store, Upstream, upstream};
use session::{Execution, ExecutionState, JsSettings, Ports, RunJsRequest, Service};
use store::blobs::FileBlobs;
use store::sqlite::{FILE_NAME, SqliteStore};
use tokio::runtime::{Builder, Runtime};

const ROUNDS: usize = 40;
/// The delay of the call. It is longer than parking and ending the service.
const WAIT_MS: u64 = 300;
/// An upstream that answers after this delay.
const SLOW: &str = "https://slow.example";
const CALL: Duration = Duration::from_millis(30);
const LARGE: &str = "const rows = []; for (let i = 0; i < 20000; i++) rows.push({id: i, name: 'row number ' + i, tags: ['a', 'b'], nested: {score: i / 3}}); rows.length";

pub fn measure() {
    let folder = tempfile::tempdir().unwrap();
    // The engine is compiled here once, so that no measurement includes it.
    let lasting = Process::on(folder.path());
    lasting.run(&RunJsRequest { code: "1".to_owned(), ..RunJsRequest::default() });
    lasting.age();
    flushes(&lasting);
    within(folder.path());
    for (what, make) in [("small heap", "1"), ("20,000 objects", LARGE)] {
        stays(folder.path(), (what, make));
        for awaits in [Awaits::Call, Awaits::Timer] {
            elsewhere(folder.path(), (what, make), awaits);
        }
    }
}

/// Measures the smallest possible commit after an equal idle time, which is the cost of durability on this machine. Each figure
/// below includes one commit, and the whole run includes two.
fn flushes(process: &Process) {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|round| {
            std::thread::sleep(CALL);
            timed(|| process.put(&format!("small/{round}"), 100))
        })
        .collect();
    println!("{:<70} {:>9.3} ms", "one durable commit of 100 bytes, after 30 ms", median(&mut times));
}

/// Measures one more wait of a run that stays in its process. The call is refused at once, because even the shortest timer takes
/// a millisecond.
fn within(folder: &Path) {
    let process = Process::on(folder);
    let took = |waits: usize| {
        let timed = |round| {
            let each = "await fetch('https://nowhere.example/').catch(() => 0)";
            let code = format!("let round = {round}; for (let i = 0; i < {waits}; i++) {each}; 1");
            timed(|| drop(process.run(&RunJsRequest { code, ..RunJsRequest::default() })))
        };
        median(&mut (0..ROUNDS).map(timed).collect::<Vec<_>>())
    };
    let each = (took(11) - took(1)) / 10.0;
    println!("{:<70} {each:>9.3} ms", "park durably and go on in the same process, each");
}

/// Measures the same run as below in one process, without the time of its call: two steps with a transaction each. The figures
/// below include the second.
fn stays(folder: &Path, (what, make): (&str, &str)) {
    let process = Process::on(folder);
    let made =
        process.run(&RunJsRequest { code: make.to_owned(), ..RunJsRequest::default() }).heap.unwrap().to_string();
    process.slow.answer_from_now_on();
    let mut times = Vec::new();
    for round in 0..ROUNDS / 2 {
        let code = format!("globalThis.a = -{round}; await fetch('{SLOW}/'); a + 1");
        let asked = RunJsRequest { code, heap: Some(made.clone()), require_heap: true, ..RunJsRequest::default() };
        std::thread::sleep(Duration::from_millis(WAIT_MS));
        let took = timed(|| assert_eq!(process.run(&asked).state, ExecutionState::Completed));
        times.push(took.saturating_sub(process.slow.took()));
    }
    let name = format!("the whole run beyond its call, in one process, {what}");
    println!("{name:<70} {:>9.3} ms", median(&mut times));
}

/// The event for which the run waits while its process ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// A call, which the second service repeats and waits for.
    Call,
    /// A timer that has ended when the second service starts.
    Timer,
}

fn elsewhere(folder: &Path, (what, make): (&str, &str), awaits: Awaits) {
    let first = Process::on(folder);
    let made = first.run(&RunJsRequest { code: make.to_owned(), ..RunJsRequest::default() }).heap.unwrap().to_string();
    let second = Process::on(folder);
    let (mut cold, mut cached) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        // The second service has the heap in memory already, or starts with an empty memory.
        let fresh = (round % 2 == 0).then(|| Process::on(folder));
        let taker = fresh.as_ref().unwrap_or(&second);
        let dying = Process::on(folder);
        let waits = match awaits {
            Awaits::Call => format!("fetch('{SLOW}/')"),
            Awaits::Timer => format!("new Promise(done => setTimeout(done, {WAIT_MS}))"),
        };
        let code = format!("globalThis.a = {round}; await {waits}; a + 1");
        let asked = RunJsRequest {
            code,
            heap: Some(made.clone()),
            require_heap: true,
            wait_ms: Some(0),
            ..RunJsRequest::default()
        };
        let ran = dying.run(&asked);
        dying.until_parked();
        let over = Instant::now() + Duration::from_millis(WAIT_MS);
        drop(dying);
        taker.slow.answer_from_now_on();
        if fresh.is_none() {
            let look = RunJsRequest { code: "1".to_owned(), heap: Some(made.clone()), ..RunJsRequest::default() };
            taker.run(&look);
        }
        std::thread::sleep(over.saturating_duration_since(Instant::now()));
        let took = taker.take_over(&ran);
        let beyond = took.saturating_sub(taker.slow.took());
        if fresh.is_some() { cold.push(beyond) } else { cached.push(beyond) }
    }
    for (how, mut times, goal) in [("cached", cached, "  (goal 2)"), ("from storage", cold, "")] {
        let after = if awaits == Awaits::Call { "during its call" } else { "after its timer" };
        let name = format!("go on in another process {after}, {what}, {how}");
        println!("{name:<70} {:>9.3} ms{goal}", median(&mut times));
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// Converts to milliseconds.
fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// A service with its own engine, runtime and connection to the store. Dropping it ends the service like a crash.
struct Process {
    service: Arc<Service>,
    store: Arc<SqliteStore>,
    slow: Arc<Slow>,
    runtime: Option<Runtime>,
}

impl Process {
    fn on(data: &Path) -> Self {
        let store = Arc::new(SqliteStore::open(&data.join(FILE_NAME)).unwrap());
        let slow = Arc::new(Slow::default());
        let ports = Ports {
            store: store.clone(),
            blobs: Arc::new(FileBlobs::open(&data.join("blobs")).unwrap()),
            upstream: slow.clone(),
            clock: Arc::new(System),
            entropy: Arc::new(System),
        };
        let engine = Engine::start(&Settings { code_cache: Some(data.join("engines")), ..Settings::default() }).unwrap();
        let presence = Here { me: InstanceId::from_random(System.bytes()) };
        let service = Service::new(ports, Registry::new([]).unwrap(), Limits::default());
        let settings =
            JsSettings { fetch: vec![session::FetchRule::to(Origin::parse(SLOW).unwrap())], ..JsSettings::default() };
        let service = Arc::new(service.with_js(Arc::new(engine), Arc::new(presence), settings));
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { service, store, slow, runtime: Some(runtime) }
    }

    fn block<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.as_ref().unwrap().block_on(work)
    }

    fn run(&self, asked: &RunJsRequest) -> Execution {
        self.block(self.service.run_js(&Caller::local(), asked)).unwrap()
    }

    /// Writes the store's log back once, so that later commits overwrite it instead of growing it, as after the first minutes of a
    /// server.
    fn age(&self) {
        for at in 0..3 {
            self.put(&format!("large/{at}"), 2 << 20);
        }
    }

    fn put(&self, id: &str, bytes: usize) {
        let key = Key::new(&TenantId::local(), Table::Trace, id);
        self.block(self.store.commit(Batch::default().put(key, vec![7; bytes], Expect::Any))).unwrap();
    }

    /// Starts the recovery of runs in a task of its own, like a server, and waits for the end of this run.
    fn take_over(&self, ran: &Execution) -> Duration {
        let (service, id) = (self.service.clone(), ran.id.to_string());
        let look = self.runtime.as_ref().unwrap().spawn(async move {
            let began = Instant::now();
            assert_eq!(service.resume_js(&[TenantId::local()]).await.unwrap(), 1);
            // The waiting call does not delay the run.
            tokio::task::yield_now().await;
            let ended = service.wait_for_execution(&Caller::local(), &id, 10_000).await.unwrap();
            assert_eq!(ended.state, ExecutionState::Completed, "{ended:?}");
            began.elapsed()
        });
        self.block(look).unwrap()
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
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Reports every other instance as dead, because only the first service owns runs.
struct Here {
    me: InstanceId,
}

impl Presence for Here {
    fn this_process(&self) -> InstanceId {
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

/// Answers after a delay, or never.
#[derive(Default)]
struct Slow {
    answers: AtomicBool,
    took: Mutex<Duration>,
}

impl Slow {
    fn answer_from_now_on(&self) {
        self.answers.store(true, Ordering::SeqCst);
    }

    /// The time of the last call. Reading it clears it.
    fn took(&self) -> Duration {
        std::mem::take(&mut *self.took.lock().unwrap())
    }
}

#[async_trait]
impl Upstream for Slow {
    async fn send(&self, _: upstream::Call) -> Result<Response, upstream::Error> {
        let asked = Instant::now();
        if !self.answers.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(CALL).await;
        *self.took.lock().unwrap() = asked.elapsed();
        Ok(Response { status: 200, headers: Vec::new(), body: b"1".to_vec() })
    }
}
