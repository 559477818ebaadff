//! Measures parking and resuming: a run waits and is stored, its service ends, and another service with its own engine and its own
//! connection to the store continues the run.
//! Invariant: the time that the run waits is not included. If the run waits for a call, the time of this call on the second service is
//! subtracted. If it waits for a timer, the second service starts after the timer. All runs make different heaps, because a heap that is
//! stored already costs a second transaction.

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
/// The time that a run waits. It is longer than the time to park the run and to end its service.
const WAIT_MS: u64 = 300;
/// The origin of the API that answers after `CALL_TIME`.
const SLOW_ORIGIN: &str = "https://slow.example";
const CALL_TIME: Duration = Duration::from_millis(30);
const LARGE: &str = "const rows = []; for (let i = 0; i < 20000; i++) rows.push({id: i, name: 'row number ' + i, tags: ['a', 'b'], nested: {score: i / 3}}); rows.length";

pub fn measure() {
    let folder = tempfile::tempdir().unwrap();
    // The first start compiles the engine, so that no measurement includes this time.
    let first = Process::start(folder.path());
    first.run(&RunJsRequest { code: "1".to_owned(), ..RunJsRequest::default() });
    first.fill_log();
    one_commit(&first);
    waits_in_one_process(folder.path());
    for (what, make) in [("small heap", "1"), ("20,000 objects", LARGE)] {
        whole_run_in_one_process(folder.path(), what, make);
        for awaits in [Awaits::Call, Awaits::Timer] {
            continue_in_another_process(folder.path(), what, make, awaits);
        }
    }
}

/// Measures one small durable commit after an idle time, which is the cost of durability on this machine. Each of the later results
/// includes one such commit, and the result for a whole run includes two.
fn one_commit(process: &Process) {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|round| {
            std::thread::sleep(CALL_TIME);
            timed(|| process.put(&format!("small/{round}"), 100))
        })
        .collect();
    println!("{:<70} {:>9.3} ms", "one durable commit of 100 bytes, after 30 ms", median(&mut times));
}

/// Measures the cost of one wait of a run that stays in its process. The script waits for a call that is refused at once, because even
/// the shortest timer takes a millisecond.
fn waits_in_one_process(folder: &Path) {
    let process = Process::start(folder);
    let time_of_run = |waits: usize| {
        let time_of_round = |round| {
            let each = "await fetch('https://nowhere.example/').catch(() => 0)";
            let code = format!("let round = {round}; for (let i = 0; i < {waits}; i++) {each}; 1");
            timed(|| drop(process.run(&RunJsRequest { code, ..RunJsRequest::default() })))
        };
        median(&mut (0..ROUNDS).map(time_of_round).collect::<Vec<_>>())
    };
    let each = (time_of_run(11) - time_of_run(1)) / 10.0;
    println!("{:<70} {each:>9.3} ms", "park durably and continue in the same process, each");
}

/// Measures a whole run in one process, without the time of its call: two steps with one transaction each. It is the same run as in
/// `continue_in_another_process`, whose results include only the second step.
fn whole_run_in_one_process(folder: &Path, what: &str, make: &str) {
    let process = Process::start(folder);
    let made =
        process.run(&RunJsRequest { code: make.to_owned(), ..RunJsRequest::default() }).heap.unwrap().to_string();
    process.slow.answer_from_now_on();
    let mut times = Vec::new();
    for round in 0..ROUNDS / 2 {
        let code = format!("globalThis.a = -{round}; await fetch('{SLOW_ORIGIN}/'); a + 1");
        let request = RunJsRequest { code, heap: Some(made.clone()), require_heap: true, ..RunJsRequest::default() };
        std::thread::sleep(Duration::from_millis(WAIT_MS));
        let elapsed = timed(|| assert_eq!(process.run(&request).state, ExecutionState::Completed));
        times.push(elapsed.saturating_sub(process.slow.take_call_time()));
    }
    let name = format!("the whole run beyond its call, in one process, {what}");
    println!("{name:<70} {:>9.3} ms", median(&mut times));
}

/// The event for which the run waits while its process ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaits {
    /// The run waits for a call, which the second service repeats.
    Call,
    /// The run waits for a timer, which has ended when the second service starts.
    Timer,
}

/// Measures the time in which another service continues a run after the service of this run has ended.
fn continue_in_another_process(folder: &Path, what: &str, make: &str, awaits: Awaits) {
    let first = Process::start(folder);
    let made = first.run(&RunJsRequest { code: make.to_owned(), ..RunJsRequest::default() }).heap.unwrap().to_string();
    let second = Process::start(folder);
    let mut cold = Vec::new();
    let mut cached = Vec::new();
    for round in 0..ROUNDS {
        // In every second round the second service is new and has no heap in memory. In the other rounds it has the heap in memory.
        let fresh = (round % 2 == 0).then(|| Process::start(folder));
        let taker = fresh.as_ref().unwrap_or(&second);
        let dying = Process::start(folder);
        let waits = match awaits {
            Awaits::Call => format!("fetch('{SLOW_ORIGIN}/')"),
            Awaits::Timer => format!("new Promise(done => setTimeout(done, {WAIT_MS}))"),
        };
        let code = format!("globalThis.a = {round}; await {waits}; a + 1");
        let request = RunJsRequest {
            code,
            heap: Some(made.clone()),
            require_heap: true,
            wait_ms: Some(0),
            ..RunJsRequest::default()
        };
        let execution = dying.run(&request);
        dying.wait_until_parked();
        let wait_ends = Instant::now() + Duration::from_millis(WAIT_MS);
        drop(dying);
        taker.slow.answer_from_now_on();
        if fresh.is_none() {
            let load_heap = RunJsRequest { code: "1".to_owned(), heap: Some(made.clone()), ..RunJsRequest::default() };
            taker.run(&load_heap);
        }
        std::thread::sleep(wait_ends.saturating_duration_since(Instant::now()));
        let elapsed = taker.take_over(&execution);
        let beyond = elapsed.saturating_sub(taker.slow.take_call_time());
        if fresh.is_some() { cold.push(beyond) } else { cached.push(beyond) }
    }
    for (how, mut times, goal) in [("cached", cached, "  (goal 2)"), ("from storage", cold, "")] {
        let after = if awaits == Awaits::Call { "during its call" } else { "after its timer" };
        let name = format!("continue in another process {after}, {what}, {how}");
        println!("{name:<70} {:>9.3} ms{goal}", median(&mut times));
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

/// Returns the median of the times in milliseconds.
fn median(times: &mut [Duration]) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

/// A service with its own engine, runtime and connection to the store. Dropping this value ends the service like a crash.
struct Process {
    service: Arc<Service>,
    store: Arc<SqliteStore>,
    slow: Arc<SlowUpstream>,
    runtime: Option<Runtime>,
}

impl Process {
    /// Starts a service on a data folder.
    fn start(data: &Path) -> Self {
        let store = Arc::new(SqliteStore::open(&data.join(FILE_NAME)).unwrap());
        let slow = Arc::new(SlowUpstream::default());
        let ports = Ports {
            store: store.clone(),
            blobs: Arc::new(FileBlobs::open(&data.join("blobs")).unwrap()),
            upstream: slow.clone(),
            clock: Arc::new(SystemPorts),
            entropy: Arc::new(SystemPorts),
        };
        let engine =
            Engine::start(&Settings { code_cache: Some(data.join("engines")), ..Settings::default() }).unwrap();
        let presence = OnlyThisProcess { me: InstanceId::from_random(SystemPorts.bytes()) };
        let service = Service::new(ports, Registry::new([]).unwrap(), Limits::default());
        let settings = JsSettings {
            fetch: vec![session::FetchRule::to(Origin::parse(SLOW_ORIGIN).unwrap())],
            ..JsSettings::default()
        };
        let service = Arc::new(service.with_js(Arc::new(engine), Arc::new(presence), settings));
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        Self { service, store, slow, runtime: Some(runtime) }
    }

    fn block<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.as_ref().unwrap().block_on(work)
    }

    fn run(&self, request: &RunJsRequest) -> Execution {
        self.block(self.service.run_js(&Caller::local(), request)).unwrap()
    }

    /// Fills the write-ahead log of the store until it is copied to the database. Later commits then overwrite the log and do not grow it,
    /// as in a server that has run for some minutes.
    fn fill_log(&self) {
        for number in 0..3 {
            self.put(&format!("large/{number}"), 2 << 20);
        }
    }

    fn put(&self, id: &str, bytes: usize) {
        let key = Key::new(&TenantId::local(), Table::Trace, id);
        self.block(self.store.commit(Batch::default().put(key, vec![7; bytes], Expect::Any))).unwrap();
    }

    /// Starts the takeover of runs in a new task, like a server, and waits until this run ends. Returns the time until the end.
    fn take_over(&self, execution: &Execution) -> Duration {
        let service = self.service.clone();
        let id = execution.id.to_string();
        let recovery = self.runtime.as_ref().unwrap().spawn(async move {
            let started = Instant::now();
            assert_eq!(service.resume_js(&[TenantId::local()]).await.unwrap(), 1);
            // The yield lets the task of the run continue.
            tokio::task::yield_now().await;
            let ended = service.wait_for_execution(&Caller::local(), &id, 10_000).await.unwrap();
            assert_eq!(ended.state, ExecutionState::Completed, "{ended:?}");
            started.elapsed()
        });
        self.block(recovery).unwrap()
    }

    /// Waits until the newest run is parked.
    fn wait_until_parked(&self) {
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

/// The port `Presence` that reports every other process as dead, so that a second service takes over the runs of the first.
struct OnlyThisProcess {
    me: InstanceId,
}

impl Presence for OnlyThisProcess {
    fn this_process(&self) -> InstanceId {
        self.me
    }

    fn liveness(&self, _: InstanceId) -> ports::Liveness {
        ports::Liveness::Dead
    }
}

/// The system clock and random numbers of the system, as ports.
struct SystemPorts;

impl Entropy for SystemPorts {
    fn bytes(&self) -> [u8; 16] {
        *uuid::Uuid::new_v4().as_bytes()
    }
}

#[async_trait]
impl Clock for SystemPorts {
    fn now(&self) -> Timestamp {
        Timestamp(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64)
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// An upstream that answers after `CALL_TIME`, or that never answers.
#[derive(Default)]
struct SlowUpstream {
    answers: AtomicBool,
    /// The time of the last call.
    call_time: Mutex<Duration>,
}

impl SlowUpstream {
    fn answer_from_now_on(&self) {
        self.answers.store(true, Ordering::SeqCst);
    }

    /// Returns the time of the last call, and clears it.
    fn take_call_time(&self) -> Duration {
        std::mem::take(&mut *self.call_time.lock().unwrap())
    }
}

#[async_trait]
impl Upstream for SlowUpstream {
    async fn send_checked(
        &self,
        _: upstream::Call,
        _: &dyn upstream::DepartureCheck,
    ) -> Result<Response, upstream::Error> {
        let started = Instant::now();
        if !self.answers.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        tokio::time::sleep(CALL_TIME).await;
        *self.call_time.lock().unwrap() = started.elapsed();
        Ok(Response { status: 200, headers: Vec::new(), body: b"1".to_vec() })
    }
}
