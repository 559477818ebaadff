//! Tests of scripts on real components: the real engine, SQLite and blob files, on threads and in real time.

mod concurrent_collection;
mod engines;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{InstanceId, Limits};
use catalog::Registry;
use js::Engine;
use ports::Scripts;
use serde_json::{Value, json};
use session::{Execution, ExecutionState, JsSettings, Ports, Retention, RunJsRequest, Service, SessionTarget};
use store::blobs::FileBlobs;
use store::sqlite::{FILE_NAME, SqliteStore};
use testkit::memory::CountingEntropy;
use testkit::paced::{PacedClock, Processes, SharedTime};
use testkit::upstream::ScriptedUpstream;

use crate::harness::{START, catalog, local_caller};

/// Everything that outlives the processes of a server, and the settings of the next process. Only the API is not real.
pub struct RealHarness {
    /// The database and the blobs.
    folder: tempfile::TempDir,
    pub time: SharedTime,
    pub retention: Retention,
    pub settings: JsSettings,
    /// Which processes are alive, so that others can tell whose runs to take over.
    processes: Processes,
    entropy: Arc<CountingEntropy>,
}

impl RealHarness {
    pub fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            time: SharedTime::at(START),
            retention: Retention::default(),
            settings: JsSettings::default(),
            processes: Processes::default(),
            entropy: Arc::new(CountingEntropy::new()),
        }
    }

    pub fn process(&self, engine: Engine) -> RealProcess {
        let engine = Arc::new(engine);
        let id = InstanceId::from_random(ports::Entropy::bytes(self.entropy.as_ref()));
        let presence = Arc::new(self.processes.start(id));
        let store = Arc::new(SqliteStore::open(&self.folder.path().join(FILE_NAME)).unwrap());
        let blobs = Arc::new(FileBlobs::open(&self.folder.path().join("blobs")).unwrap());
        let ports = Ports {
            store: store.clone(),
            blobs: blobs.clone(),
            upstream: Arc::new(ScriptedUpstream::new()),
            clock: Arc::new(PacedClock::new(&self.time)),
            entropy: self.entropy.clone(),
        };
        let service = Service::new(ports, Registry::new([catalog()]).unwrap(), Limits::default());
        let service = service.with_retention(self.retention.clone());
        let service = Arc::new(service.with_js(engine.clone(), presence, self.settings.clone()));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
        RealProcess { runtime: Some(runtime), service, engine, store, blobs, id, processes: self.processes.clone() }
    }
}

/// A process. Dropping it kills all of its tasks.
pub struct RealProcess {
    /// Taken by `drop`: the tasks must end before the process counts as dead.
    runtime: Option<tokio::runtime::Runtime>,
    pub service: Arc<Service>,
    pub engine: Arc<Engine>,
    pub store: Arc<SqliteStore>,
    pub blobs: Arc<FileBlobs>,
    id: InstanceId,
    processes: Processes,
}

impl Drop for RealProcess {
    fn drop(&mut self) {
        drop(self.runtime.take());
        self.processes.kill(self.id);
    }
}

impl RealProcess {
    pub fn block_on<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.as_ref().unwrap().block_on(work)
    }

    pub fn run(&self, request: &RunJsRequest) -> Execution {
        self.block_on(self.service.run_js(&local_caller(), request)).unwrap()
    }

    /// Waits until the run has ended.
    pub fn wait_for_end(&self, id: &str) -> Execution {
        loop {
            let execution = self.block_on(self.service.execution(&local_caller(), id)).unwrap();
            if execution.state.is_final() {
                return execution;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub fn engine_settings() -> js::Settings {
    let code_cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("js-code");
    js::Settings { code_cache: Some(code_cache), threads: 2, ..js::Settings::default() }
}

pub fn script_request(script: &str) -> RunJsRequest {
    RunJsRequest { code: script.to_owned(), ..RunJsRequest::default() }
}

/// Returns a request that starts from this heap and fails if the heap is missing.
pub fn run_on_heap(heap: impl ToString, script: &str) -> RunJsRequest {
    RunJsRequest { heap: Some(heap.to_string()), require_heap: true, ..script_request(script) }
}

pub fn logical_request(reference: &str, script: &str) -> RunJsRequest {
    RunJsRequest { session: SessionTarget::Logical(reference.to_owned()), ..script_request(script) }
}

/// Returns the value of a completed run.
pub fn completed_value(execution: &Execution) -> Value {
    assert_eq!(execution.state, ExecutionState::Completed, "{execution:?}");
    match &execution.result {
        Some(ports::scripts::Completion::Json(value)) => value.clone(),
        _ => json!(null),
    }
}
