//! The test harness with scripts: processes that start and die on one store, each with an engine of its own.

use std::sync::Arc;
use std::time::Duration;

use base::{InstanceId, Limits, TenantId};
use catalog::Registry;
use ports::scripts::Call;
use serde_json::{Value, json};
use session::{Error, Execution, ExecutionState, JsSettings, Ports, Retention, RunJsRequest, Service, SessionTarget};
use testkit::paced::{PacedClock, Processes, SharedTime};
use testkit::tiny::TinyScripts;

pub use crate::harness::local_caller;
use crate::harness::{self, Harness, START, catalog};

/// Everything that outlives the processes of a server with scripts, and the settings of the next process.
pub struct JsHarness {
    /// The in-memory ports that all processes share.
    pub memory: Harness,
    /// The time of all processes. The clock of each process moves it on.
    pub time: SharedTime,
    /// Which processes are alive, so that others can tell whose runs to take over.
    pub processes: Processes,
    pub settings: JsSettings,
    pub retention: Retention,
    /// The rights of the local tenant.
    pub permissions: catalog::Permissions,
    pub limits: Limits,
    /// Whether each principal has its own sessions.
    pub delegated: bool,
}

impl JsHarness {
    pub fn new() -> Self {
        let settings = JsSettings { at_once: 4, ..JsSettings::default() };
        Self {
            memory: Harness::with_working_api(),
            time: SharedTime::at(START),
            processes: Processes::default(),
            settings,
            retention: Retention::default(),
            permissions: catalog::Permissions::default(),
            limits: Limits::default(),
            delegated: false,
        }
    }

    pub fn process(&self) -> Process {
        self.process_with(TinyScripts::default())
    }

    pub fn process_with(&self, engine: TinyScripts) -> Process {
        let engine = Arc::new(engine);
        let instance = InstanceId::from_random(ports::Entropy::bytes(self.memory.entropy.as_ref()));
        let presence = Arc::new(self.processes.start(instance));
        let ports = Ports { clock: Arc::new(PacedClock::new(&self.time)), ..self.memory.ports() };
        let service = Service::new(ports, Registry::new([catalog()]).unwrap(), self.limits.clone());
        let permissions = [(TenantId::local(), self.permissions.clone())];
        let service = service.with_tenants(access::Tenants::new(permissions.into()));
        let service = service.with_retention(self.retention.clone()).with_delegated(self.delegated);
        let service = Arc::new(service.with_js(engine.clone(), presence, self.settings.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        Process { service, engine, runtime, instance, processes: self.processes.clone() }
    }
}

/// A process whose tasks run only inside `block_on`. Dropping it kills all of its tasks.
pub struct Process {
    pub service: Arc<Service>,
    pub engine: Arc<TinyScripts>,
    /// Single-threaded and with a paused time, so a test decides when the tasks of this process continue.
    runtime: tokio::runtime::Runtime,
    instance: InstanceId,
    processes: Processes,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.processes.kill(self.instance);
    }
}

impl Process {
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Runs the tasks of the process for this many milliseconds of its own time.
    pub fn run_for_ms(&self, ms: u64) {
        self.block_on(async { tokio::time::sleep(Duration::from_millis(ms)).await });
    }

    /// Opens `s0` of the local caller with all entities that the tests use.
    pub fn open_session(&self) {
        self.block_on(harness::open_session(&self.service));
    }

    pub fn run(&self, request: &RunJsRequest) -> Result<Execution, Error> {
        self.block_on(self.service.run_js(&local_caller(), request))
    }

    /// Runs a script that must complete, and returns its value.
    pub fn run_to_value(&self, request: &RunJsRequest) -> Value {
        completed_value(&expect_completed(self.run(request)))
    }

    /// Takes over the runs of dead processes and returns their number.
    pub fn resume_runs(&self) -> usize {
        self.block_on(self.service.resume_js(&[TenantId::local()])).unwrap()
    }

    pub fn execution(&self, id: &str) -> Execution {
        self.block_on(self.service.execution(&local_caller(), id)).unwrap()
    }
}

/// Returns a step that waits for this many milliseconds.
pub fn timer_step(ms: u64) -> Value {
    json!({"await": [Call::Timer { ms }]})
}

/// Returns a request to run a program of the tiny engine outside of any session.
pub fn script_request(program: Value) -> RunJsRequest {
    RunJsRequest { code: program.to_string(), ..RunJsRequest::default() }
}

/// Returns a request for a named session that is answered at once.
pub fn unawaited_request(name: &str, program: Value) -> RunJsRequest {
    RunJsRequest { wait_ms: Some(0), ..named_request(name, program) }
}

pub fn named_request(name: &str, program: Value) -> RunJsRequest {
    RunJsRequest { session: SessionTarget::Named(name.to_owned()), ..script_request(program) }
}

pub fn logical_request(reference: &str, program: Value) -> RunJsRequest {
    RunJsRequest { session: SessionTarget::Logical(reference.to_owned()), ..script_request(program) }
}

/// Returns the value of a completed run.
pub fn completed_value(execution: &Execution) -> Value {
    assert_eq!(execution.state, ExecutionState::Completed, "{execution:?}");
    match &execution.result {
        Some(ports::scripts::Completion::Json(value)) => value.clone(),
        _ => json!(null),
    }
}

pub fn expect_completed(answer: Result<Execution, Error>) -> Execution {
    let execution = answer.unwrap();
    assert_eq!(execution.state, ExecutionState::Completed, "{execution:?}");
    execution
}
