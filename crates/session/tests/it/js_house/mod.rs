//! A house in which JavaScript runs: processes that live and die on one store, each with an engine of its own.

use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use base::{InstanceId, Limits, TenantId};
use catalog::Registry;
use ports::scripts::Call;
use serde_json::{Value, json};
use session::{Error, Execution, InSession, JsSettings, Ports, Retention, RunJs, Service, State};
use testkit::paced::{PacedClock, Processes, SharedTime};
use testkit::tiny::TinyScripts;

use crate::house::{House, START, catalog};

pub struct JsHouse {
    pub house: House,
    pub time: SharedTime,
    pub processes: Processes,
    pub settings: JsSettings,
    pub retention: Retention,
    /// What the tenant may use.
    pub allow: catalog::Allow,
}

impl JsHouse {
    pub fn new() -> Self {
        let settings = JsSettings { at_once: 4, ..JsSettings::default() };
        let (time, retention) = (SharedTime::at(START), Retention::default());
        let (processes, allow) = (Processes::default(), catalog::Allow::default());
        Self { house: House::working(), time, processes, settings, retention, allow }
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

/// Dropped, it is dead.
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

    /// Lets its tasks go on for so much of its own time.
    pub fn rest(&self, ms: u64) {
        self.block(async { tokio::time::sleep(Duration::from_millis(ms)).await });
    }

    pub fn run(&self, asked: &RunJs) -> Result<Execution, Error> {
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
    crate::house::me()
}

/// A step that waits.
pub fn timer(ms: u64) -> Value {
    json!({"await": [Call::Timer { ms }]})
}

/// A program of the tiny engine, outside of any session.
pub fn code(program: Value) -> RunJs {
    RunJs { code: program.to_string(), ..RunJs::default() }
}

/// The same in the session of this name, answered at once.
pub fn later(name: &str, program: Value) -> RunJs {
    RunJs { wait_ms: Some(0), ..named(name, program) }
}

pub fn named(name: &str, program: Value) -> RunJs {
    RunJs { session: InSession::Named(name.to_owned()), ..code(program) }
}

pub fn logical(reference: &str, program: Value) -> RunJs {
    RunJs { session: InSession::Logical(reference.to_owned()), ..code(program) }
}

/// The value of a completed run.
pub fn value(execution: &Execution) -> Value {
    assert_eq!(execution.state, State::Completed, "{execution:?}");
    match &execution.result {
        Some(ports::scripts::Completion::Json(value)) => value.clone(),
        _ => json!(null),
    }
}

pub fn completed(ran: Result<Execution, Error>) -> Execution {
    let ran = ran.unwrap();
    assert_eq!(ran.state, State::Completed, "{ran:?}");
    ran
}
