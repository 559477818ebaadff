//! Test harnesses without JavaScript: in-memory ports, services that start and die on them, and requests.

use std::future::Future;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use access::{Caller, Identity};
use base::{InstanceId, Limits, Method, Payload, Principal, Response, TenantId, Timestamp};
use catalog::{Catalog, Registry};
use exec::{Receipt, ReceiptState};
use serde_json::{Value, json};
use session::{
    DetachedRun, Error, OpenRequest, OpenedSession, PlanRequest, Ports, RunAnswer, RunRequest, RunResult, SeedRequest,
    Service, TaughtTable,
};
use testkit::faults::{Faults, FaultyBlobs, FaultyStore};
use testkit::memory::{CountingEntropy, ManualClock, MemoryBlobs, MemoryStore};
use testkit::paced::Processes;
use testkit::upstream::{Rule, ScriptedUpstream};
use tokio::sync::Notify;

/// The first time of every harness: 2026-01-01T23:59:30Z, half a minute before the date changes.
pub const START: Timestamp = Timestamp(1_767_311_970_000);
/// A program with three effects, each with an idempotency key.
pub const OPEN_THREE_TICKETS: &str = r#"["one", "two", "three"] => Ticket.open(project="OPS", title="{{ _ }}")"#;
/// A program with three effects of a capability that has neither an idempotency key nor a probe.
pub const ADD_THREE_COMMENTS: &str =
    r#"["one", "two", "three"] => Comment.add(ticket=Ticket(project="OPS", number=1), text="{{ _ }}")"#;
pub const COMMENTS_PATH: &str = "/api/projects/OPS/tickets/1/comments";
pub const TICKETS_PATH: &str = "/api/projects/OPS/tickets";

/// Everything that outlives the processes of a server: storage, clock and API, all in memory.
pub struct Harness {
    pub store: Arc<MemoryStore>,
    pub blobs: Arc<MemoryBlobs>,
    pub clock: Arc<ManualClock>,
    pub entropy: Arc<CountingEntropy>,
    pub upstream: Arc<ScriptedUpstream>,
    /// The failures that the storage of all processes has on request.
    pub faults: Faults,
    /// The processes that are alive.
    processes: Processes,
    /// The number of processes that were started, from which their ids are made.
    started: AtomicU8,
}

impl Harness {
    pub fn new() -> Self {
        Self {
            store: Arc::new(MemoryStore::new()),
            blobs: Arc::new(MemoryBlobs::new()),
            clock: Arc::new(ManualClock::at(START)),
            entropy: Arc::new(CountingEntropy::new()),
            upstream: Arc::new(ScriptedUpstream::new()),
            faults: Faults::new(),
            processes: Processes::default(),
            started: AtomicU8::new(0),
        }
    }

    /// Returns a harness whose API performs every write.
    pub fn with_working_api() -> Self {
        let harness = Self::new();
        harness.add_working_api();
        harness
    }

    /// Returns a harness whose API answers the first write to this path at once, and the second one only after a
    /// notification of the returned signal. All other writes are performed.
    pub fn with_stuck_second_write(path: &str) -> (Self, Arc<Notify>) {
        let harness = Self::new();
        let allow_answer = Arc::new(Notify::new());
        let row = json!({"project": "OPS", "number": 1, "id": 1});
        harness.upstream.add(Rule::post(path).once().json(201, row.clone()));
        harness.upstream.add(Rule::post(path).waits_for(&allow_answer).once().json(201, row));
        harness.add_working_api();
        (harness, allow_answer)
    }

    pub fn add_working_api(&self) {
        self.upstream.add(
            Rule::post(TICKETS_PATH).answers(|call| Ok(created_response(call, json!({"project": "OPS", "number": 7})))),
        );
        self.upstream.add(Rule::post(COMMENTS_PATH).answers(|call| Ok(created_response(call, json!({"id": 7})))));
    }

    pub fn service(&self) -> Arc<Service> {
        self.service_with(Limits::default())
    }

    pub fn ports(&self) -> Ports {
        Ports {
            store: Arc::new(FaultyStore::new(self.store.clone(), &self.faults)),
            blobs: Arc::new(FaultyBlobs::new(self.blobs.clone(), &self.faults)),
            upstream: self.upstream.clone(),
            clock: self.clock.clone(),
            entropy: self.entropy.clone(),
        }
    }

    pub fn service_with(&self, limits: Limits) -> Arc<Service> {
        self.service_of(self.new_instance(), limits)
    }

    fn service_of(&self, instance: InstanceId, limits: Limits) -> Arc<Service> {
        let service = Service::new(self.ports(), Registry::new([catalog()]).unwrap(), limits);
        Arc::new(service.with_presence(Arc::new(self.processes.start(instance))))
    }

    fn new_instance(&self) -> InstanceId {
        InstanceId::from_random([self.started.fetch_add(1, Ordering::Relaxed); 16])
    }

    pub fn process(&self) -> Process {
        self.process_with(Limits::default())
    }

    pub fn process_with(&self, limits: Limits) -> Process {
        let instance = self.new_instance();
        let service = self.service_of(instance, limits);
        Process { service, runtime: paused_runtime(), instance, processes: self.processes.clone() }
    }

    /// Returns the bodies of all writes, in the order in which they were sent.
    pub fn sent_bodies(&self) -> Vec<String> {
        let calls = self.upstream.calls().into_iter().filter(|call| call.request.method != Method::Get);
        calls.map(|call| json_body(&call).to_string()).collect()
    }

    /// Returns how often an effect with this text was sent.
    pub fn times_sent(&self, text: &str) -> usize {
        self.sent_bodies().iter().filter(|body| body.contains(&format!("\"{text}\""))).count()
    }

    /// Returns the idempotency keys of the effects with this text.
    pub fn idempotency_keys(&self, text: &str) -> Vec<String> {
        let calls = self.upstream.calls().into_iter().filter(|call| json_body(call).to_string().contains(text));
        let key = |call: ports::upstream::Call| {
            let header = call.request.headers.iter().find(|(name, _)| name == "Idempotency-Key");
            header.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        calls.map(key).collect()
    }
}

fn json_body(call: &ports::upstream::Call) -> Value {
    match &call.request.body {
        Some(Payload::Json { value, .. }) => value.clone(),
        _ => Value::Null,
    }
}

/// Returns the answer to a creation: the row with the fields of the request.
fn created_response(call: &ports::upstream::Call, mut row: Value) -> Response {
    for (name, value) in json_body(call).as_object().into_iter().flatten() {
        row[name] = value.clone();
    }
    Response { status: 201, headers: Vec::new(), body: row.to_string().into_bytes() }
}

/// A process whose tasks run only inside `block_on`. An unused process is paused, and a dropped process is dead.
pub struct Process {
    pub service: Arc<Service>,
    /// Single-threaded and with a paused time, so a test decides when the tasks of this process continue.
    runtime: tokio::runtime::Runtime,
    instance: InstanceId,
    processes: Processes,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.lose_leases();
    }
}

fn paused_runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

impl Process {
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Lets the other processes take the runs of this one over, as after a freeze that was longer than a lease.
    pub fn lose_leases(&self) {
        self.processes.kill(self.instance);
    }

    /// Runs the tasks of the process for this many seconds of its own time.
    pub fn run_for_secs(&self, seconds: u64) {
        self.block_on(async { tokio::time::sleep(std::time::Duration::from_secs(seconds)).await });
    }

    pub fn open_session(&self) {
        self.block_on(open_session(&self.service));
    }

    /// Continues the programs of dead processes and returns their number.
    pub fn recover_programs(&self) -> usize {
        self.block_on(self.service.recover_programs(&[TenantId::local()])).unwrap()
    }

    pub fn run(&self, request: RunRequest) -> Result<RunAnswer, Error> {
        self.block_on(self.service.run(&local_caller(), &request))
    }

    pub fn run_program(&self, program: &str) -> Result<RunAnswer, Error> {
        self.run(program_request(program))
    }
}

/// One service with its in-memory ports, for tests that need neither faults nor several processes.
pub struct MemoryService {
    pub service: Arc<Service>,
    pub store: Arc<MemoryStore>,
    pub blobs: Arc<MemoryBlobs>,
    pub clock: Arc<ManualClock>,
    pub upstream: Arc<ScriptedUpstream>,
}

impl MemoryService {
    pub fn with_registry(registry: Arc<Registry>, limits: Limits) -> Self {
        let store = Arc::new(MemoryStore::new());
        let blobs = Arc::new(MemoryBlobs::new());
        let clock = Arc::new(ManualClock::default());
        let upstream = Arc::new(ScriptedUpstream::new());
        let ports = Ports {
            store: store.clone(),
            blobs: blobs.clone(),
            upstream: upstream.clone(),
            clock: clock.clone(),
            entropy: Arc::new(CountingEntropy::new()),
        };
        let service = Arc::new(Service::new(ports, registry, limits));
        Self { service, store, blobs, clock, upstream }
    }
}

/// Returns the demo catalog with an additional capability that has neither an idempotency key nor a probe.
pub fn catalog() -> Arc<Catalog> {
    static CATALOG: OnceLock<Arc<Catalog>> = OnceLock::new();
    let read_catalog = || {
        let text = include_str!("../../../../catalogs/demo.yaml");
        let (before, after) = text.split_once("    effect: a new comment on the ticket\n").unwrap();
        assert!(after.lines().count() < 4, "comment_add is the last capability");
        Arc::new(catalog::read("demo.yaml", &format!("{before}    effect: a new comment on the ticket\n")).unwrap())
    };
    CATALOG.get_or_init(read_catalog).clone()
}

pub fn caller(tenant: &str, connection: &str) -> Caller {
    let identity = Identity { tenant: TenantId::parse(tenant).unwrap(), principal: Principal::local() };
    identity.caller(Some(connection.to_owned()))
}

pub fn local_caller() -> Caller {
    caller("local", "a")
}

/// Opens `s0` of the local caller with all entities that the tests use.
pub async fn open_session(service: &Service) {
    open_session_as(service, &local_caller(), "task").await;
}

pub async fn open_session_as(service: &Service, caller: &Caller, intent: &str) {
    let seeds = ["Ticket", "Comment", "Project", "Person"];
    let seeds = seeds.map(|e| SeedRequest::all("demo", e)).to_vec();
    service.open(caller, &OpenRequest::new(intent, seeds)).await.unwrap();
}

/// Plans the program and returns the commit of its plan.
pub async fn plan_commit(service: &Service, program: &str) -> String {
    let request = PlanRequest { session: "s0".to_owned(), program: program.to_owned() };
    service.plan(&local_caller(), &request).await.unwrap().commit.unwrap()
}

pub fn program_request(program: &str) -> RunRequest {
    RunRequest { session: "s0".to_owned(), program: Some(program.to_owned()), ..RunRequest::default() }
}

pub fn commit_request(commit: &str) -> RunRequest {
    RunRequest { session: "s0".to_owned(), plan_commit_ref: Some(commit.to_owned()), ..RunRequest::default() }
}

pub fn forced_request(program: &str) -> RunRequest {
    RunRequest { force: true, ..program_request(program) }
}

/// Returns a forced request that gets a handle at once.
pub fn detached_request(program: &str) -> RunRequest {
    RunRequest { wait: Some(false), ..forced_request(program) }
}

pub fn expect_finished(answer: Result<RunAnswer, Error>) -> Arc<RunResult> {
    match answer.unwrap() {
        RunAnswer::Finished(result) => result,
        RunAnswer::Running(operation) => panic!("still running: {operation:?}"),
    }
}

pub fn expect_running(answer: Result<RunAnswer, Error>) -> DetachedRun {
    match answer.unwrap() {
        RunAnswer::Running(operation) => operation,
        RunAnswer::Finished(result) => panic!("ended: {result:?}"),
    }
}

/// Returns `done`, `failed`, `unknown` or `open` for each receipt, in order.
pub fn receipt_states(receipts: &[Receipt]) -> Vec<&'static str> {
    let name = |receipt: &Receipt| match receipt.state {
        ReceiptState::Open => "open",
        ReceiptState::Done => "done",
        ReceiptState::Failed { .. } => "failed",
        ReceiptState::Unknown { .. } => "unknown",
    };
    receipts.iter().map(name).collect()
}

/// Returns the receipts of an answer, whether it is a result or an error.
pub fn answered_receipts(answer: &Result<RunAnswer, Error>) -> Vec<Receipt> {
    match answer {
        Ok(RunAnswer::Finished(result)) => result.outcome.receipts.clone(),
        Ok(RunAnswer::Running(_)) => Vec::new(),
        Err(error) => error_receipts(error),
    }
}

fn error_receipts(error: &Error) -> Vec<Receipt> {
    match error {
        Error::NotKept { receipts, .. } => receipts.clone(),
        Error::Shared(inner) => error_receipts(inner),
        _ => Vec::new(),
    }
}

/// Returns the table that an open taught, or an empty text if it taught nothing.
pub fn taught_table(opened: &OpenedSession) -> &str {
    match &opened.taught {
        TaughtTable::Text(text) => text,
        TaughtTable::Unchanged { .. } => "",
    }
}

/// A deterministic random generator: every machine gets the same numbers from the same seed.
pub struct DeterministicRandom(pub u64);

impl DeterministicRandom {
    /// Returns a number from 0 up to `limit`, which is excluded.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
