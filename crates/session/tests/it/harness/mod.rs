//! A server that outlives its processes: storage, clock and API in memory, with services that start and die on them.

use std::future::Future;
use std::sync::{Arc, OnceLock};

use access::{Caller, Identity};
use base::{Limits, Method, Payload, Principal, Response, TenantId, Timestamp};
use catalog::{Catalog, Registry};
use exec::{Receipt, ReceiptState};
use serde_json::{Value, json};
use session::{
    DetachedRun, Error, OpenRequest, PlanRequest, Ports, RunAnswer, RunRequest, RunResult, SeedRequest, Service,
};
use testkit::faults::{Faults, FaultyBlobs, FaultyStore};
use testkit::memory::{CountingEntropy, ManualClock, MemoryBlobs, MemoryStore};
use testkit::upstream::{Rule, ScriptedUpstream};

/// 2026-01-01T23:59:30Z.
pub const START: Timestamp = Timestamp(1_767_311_970_000);
pub const THREE: &str = r#"["one", "two", "three"] => Ticket.open(project="OPS", title="{{ _ }}")"#;
/// Capabilities without an idempotency key.
pub const REMARKS: &str =
    r#"["one", "two", "three"] => Comment.add(ticket=Ticket(project="OPS", number=1), text="{{ _ }}")"#;
pub const REMARKS_AT: &str = "/api/projects/OPS/tickets/1/comments";
pub const TICKETS_AT: &str = "/api/projects/OPS/tickets";

pub struct Harness {
    pub store: Arc<MemoryStore>,
    pub blobs: Arc<MemoryBlobs>,
    pub clock: Arc<ManualClock>,
    pub entropy: Arc<CountingEntropy>,
    pub upstream: Arc<ScriptedUpstream>,
    pub faults: Faults,
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
        }
    }

    /// With an API that performs every request.
    pub fn working() -> Self {
        let house = Self::new();
        house.works();
        house
    }

    pub fn works(&self) {
        self.upstream
            .add(Rule::post(TICKETS_AT).answers(|call| Ok(made(call, json!({"project": "OPS", "number": 7})))));
        self.upstream.add(Rule::post(REMARKS_AT).answers(|call| Ok(made(call, json!({"id": 7})))));
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
        Arc::new(Service::new(self.ports(), Registry::new([catalog()]).unwrap(), limits))
    }

    pub fn process(&self) -> Process {
        Process { service: self.service(), runtime: runtime() }
    }

    pub fn process_with(&self, limits: Limits) -> Process {
        Process { service: self.service_with(limits), runtime: runtime() }
    }

    /// The bodies of all writes, in the order they were sent.
    pub fn sent(&self) -> Vec<String> {
        let calls = self.upstream.calls().into_iter().filter(|call| call.request.method != Method::Get);
        calls.map(|call| body(&call).to_string()).collect()
    }

    /// How often an effect with this text was sent.
    pub fn times(&self, text: &str) -> usize {
        self.sent().iter().filter(|sent| sent.contains(&format!("\"{text}\""))).count()
    }

    /// Returns the idempotency keys of the effects with this text.
    pub fn keys(&self, text: &str) -> Vec<String> {
        let calls = self.upstream.calls().into_iter().filter(|call| body(call).to_string().contains(text));
        let key = |call: ports::upstream::Call| {
            let found = call.request.headers.iter().find(|(name, _)| name == "Idempotency-Key");
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        calls.map(key).collect()
    }
}

fn body(call: &ports::upstream::Call) -> Value {
    match &call.request.body {
        Some(Payload::Json { value, .. }) => value.clone(),
        _ => Value::Null,
    }
}

fn made(call: &ports::upstream::Call, mut row: Value) -> Response {
    for (name, value) in body(call).as_object().into_iter().flatten() {
        row[name] = value.clone();
    }
    Response { status: 201, headers: Vec::new(), body: row.to_string().into_bytes() }
}

/// A process whose tasks run only inside `block`. An unused process is a paused one, and a dropped process is dead.
pub struct Process {
    pub service: Arc<Service>,
    runtime: tokio::runtime::Runtime,
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

impl Process {
    pub fn block<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Runs its tasks for this many seconds of its own time.
    pub fn rest(&self, seconds: u64) {
        self.block(async { tokio::time::sleep(std::time::Duration::from_secs(seconds)).await });
    }

    pub fn open(&self) {
        self.block(open(&self.service));
    }

    pub fn run(&self, request: RunRequest) -> Result<RunAnswer, Error> {
        self.block(self.service.run(&me(), &request))
    }

    pub fn ask(&self, program: &str) -> Result<RunAnswer, Error> {
        self.run(program_of(program))
    }
}

/// The demo catalog with an additional capability that has neither an idempotency key nor a probe.
pub fn catalog() -> Arc<Catalog> {
    static READ: OnceLock<Arc<Catalog>> = OnceLock::new();
    let read = || {
        let text = include_str!("../../../../../catalogs/demo.yaml");
        let (before, after) = text.split_once("    effect: a new comment on the ticket\n").unwrap();
        assert!(after.lines().count() < 4, "comment_add is the last capability");
        Arc::new(catalog::read("demo.yaml", &format!("{before}    effect: a new comment on the ticket\n")).unwrap())
    };
    READ.get_or_init(read).clone()
}

pub fn caller(tenant: &str, connection: &str) -> Caller {
    let identity = Identity { tenant: TenantId::parse(tenant).unwrap(), principal: Principal::local() };
    identity.caller(Some(connection.to_owned()))
}

pub fn me() -> Caller {
    caller("local", "a")
}

pub async fn open(service: &Service) {
    open_as(service, &me(), "task").await;
}

pub async fn open_as(service: &Service, caller: &Caller, intent: &str) {
    let seeds = ["Ticket", "Comment", "Project", "Person"];
    let seeds = seeds.map(|e| SeedRequest::all("demo", e)).to_vec();
    service.open(caller, &OpenRequest::new(intent, seeds)).await.unwrap();
}

pub async fn plan(service: &Service, program: &str) -> String {
    let request = PlanRequest { session: "s0".to_owned(), program: program.to_owned() };
    service.plan(&me(), &request).await.unwrap().commit.unwrap()
}

pub fn program_of(program: &str) -> RunRequest {
    RunRequest { session: "s0".to_owned(), program: Some(program.to_owned()), ..RunRequest::default() }
}

pub fn commit_of(commit: &str) -> RunRequest {
    RunRequest { session: "s0".to_owned(), plan_commit_ref: Some(commit.to_owned()), ..RunRequest::default() }
}

pub fn forced(program: &str) -> RunRequest {
    RunRequest { force: true, ..program_of(program) }
}

pub fn detached(program: &str) -> RunRequest {
    RunRequest { wait: Some(false), ..forced(program) }
}

pub fn finished(answer: Result<RunAnswer, Error>) -> Arc<RunResult> {
    match answer.unwrap() {
        RunAnswer::Finished(ran) => ran,
        RunAnswer::Running(operation) => panic!("still running: {operation:?}"),
    }
}

pub fn running(answer: Result<RunAnswer, Error>) -> DetachedRun {
    match answer.unwrap() {
        RunAnswer::Running(operation) => operation,
        RunAnswer::Finished(ran) => panic!("ended: {ran:?}"),
    }
}

/// `done`, `failed`, `unknown` or `open` for each receipt, in order.
pub fn states(receipts: &[Receipt]) -> Vec<&'static str> {
    let name = |receipt: &Receipt| match receipt.state {
        ReceiptState::Open => "open",
        ReceiptState::Done => "done",
        ReceiptState::Failed { .. } => "failed",
        ReceiptState::Unknown { .. } => "unknown",
    };
    receipts.iter().map(name).collect()
}

/// The receipts in an answer, in whichever form it has.
pub fn told(answer: &Result<RunAnswer, Error>) -> Vec<Receipt> {
    match answer {
        Ok(RunAnswer::Finished(ran)) => ran.outcome.receipts.clone(),
        Ok(RunAnswer::Running(_)) => Vec::new(),
        Err(error) => told_by(error),
    }
}

fn told_by(error: &Error) -> Vec<Receipt> {
    match error {
        Error::Interrupted { receipts } | Error::NotKept { receipts, .. } => receipts.clone(),
        Error::Shared(inner) => told_by(inner),
        _ => Vec::new(),
    }
}
