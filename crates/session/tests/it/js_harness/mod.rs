//! A server with JavaScript: processes that start and die on one store, each with an engine of its own.

use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use base::{InstanceId, Limits, TenantId};
use catalog::Registry;
use ports::scripts::Call;
use serde_json::{Value, json};
use session::{Error, Execution, ExecutionState, JsSettings, Ports, Retention, RunJsRequest, Service, SessionTarget};
use testkit::paced::{PacedClock, Processes, SharedTime};
use testkit::tiny::TinyScripts;

use crate::harness::{Harness, START, catalog};

pub struct JsHarness {
    pub house: Harness,
    pub time: SharedTime,
    pub processes: Processes,
    pub settings: JsSettings,
    pub retention: Retention,
    /// The rights of the tenant.
    pub allow: catalog::Permissions,
}

impl JsHarness {
    pub fn new() -> Self {
        let settings = JsSettings { at_once: 4, ..JsSettings::default() };
        let (time, retention) = (SharedTime::at(START), Retention::default());
        let (processes, allow) = (Processes::default(), catalog::Permissions::default());
        Self { house: Harness::working(), time, processes, settings, retention, allow }
    }

    pub fn process(&self) -> Process {
        self.process_with(TinyScripts::default())
    }

    pub fn process_with(&self, engine: TinyScripts) -> Process {
        let engine = Arc::new(engine);
        let me = InstanceId::from_random(ports::Entropy::bytes(self.house.entropy.as_ref()));
        let presence = Arc::new(self.processes.start(me));
        let ports = Ports { clock: Arc::new(PacedClock::new(&self.time)), ..self.house.ports() };
        let service = Service::new(ports, Registry::new([catalog()]).unwrap(), Limits::default());
        let allowed = [(base::TenantId::local(), self.allow.clone())];
        let service = service.with_tenants(access::Tenants::new(allowed.into()));
        let service = service.with_retention(self.retention.clone());
        let service = Arc::new(service.with_js(engine.clone(), presence, self.settings.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        Process { service, engine, runtime, me, processes: self.processes.clone() }
    }
}

/// A process. Dropping it kills all of its tasks.
pub struct Process {
    pub service: Arc<Service>,
    pub engine: Arc<TinyScripts>,
    runtime: tokio::runtime::Runtime,
    me: InstanceId,
    processes: Processes,
}

impl Drop for Process {
    fn drop(&mut self) {
        self.processes.kill(self.me);
    }
}

impl Process {
    pub fn block<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Runs its tasks for this many milliseconds of its own time.
    pub fn rest(&self, ms: u64) {
        self.block(async { tokio::time::sleep(Duration::from_millis(ms)).await });
    }

    pub fn run(&self, asked: &RunJsRequest) -> Result<Execution, Error> {
        self.block(self.service.run_js(&local(), asked))
    }

    pub fn resume(&self) -> usize {
        self.block(self.service.resume_js(&[TenantId::local()])).unwrap()
    }

    pub fn execution(&self, id: &str) -> Execution {
        self.block(self.service.execution(&local(), id)).unwrap()
    }
}

pub fn local() -> Caller {
    crate::harness::me()
}

/// A step that waits.
pub fn timer(ms: u64) -> Value {
    json!({"await": [Call::Timer { ms }]})
}

/// Returns a request to run a program of the tiny engine, outside of any session.
pub fn code(program: Value) -> RunJsRequest {
    RunJsRequest { code: program.to_string(), ..RunJsRequest::default() }
}

/// The same in the named session, answered at once.
pub fn later(name: &str, program: Value) -> RunJsRequest {
    RunJsRequest { wait_ms: Some(0), ..named(name, program) }
}

pub fn named(name: &str, program: Value) -> RunJsRequest {
    RunJsRequest { session: SessionTarget::Named(name.to_owned()), ..code(program) }
}

pub fn logical(reference: &str, program: Value) -> RunJsRequest {
    RunJsRequest { session: SessionTarget::Logical(reference.to_owned()), ..code(program) }
}

/// The value of a completed run.
pub fn value(execution: &Execution) -> Value {
    assert_eq!(execution.state, ExecutionState::Completed, "{execution:?}");
    match &execution.result {
        Some(ports::scripts::Completion::Json(value)) => value.clone(),
        _ => json!(null),
    }
}

pub fn completed(ran: Result<Execution, Error>) -> Execution {
    let ran = ran.unwrap();
    assert_eq!(ran.state, ExecutionState::Completed, "{ran:?}");
    ran
}
