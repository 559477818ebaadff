//! The type `Session` for tests: runs steps one after another and keeps their objects as a store would.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use base::Digest;
use js::{Engine, Settings};
use ports::Scripts;
use ports::scripts::{
    Call, Completion, Error, HostCall, Input, Limits, Outcome, Step, Stepped, Stop, Surroundings, Thrown,
};
use serde_json::Value;

pub const LIMITS: Limits = Limits { memory_bytes: 128 << 20, deadline_ms: 30_000, output_bytes: 1 << 20 };

pub fn settings() -> Settings {
    let code = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("js-code");
    Settings { code_cache: Some(code), threads: 2, ..Settings::default() }
}

pub fn engine() -> Arc<Engine> {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    ENGINE.get_or_init(|| Arc::new(Engine::start(&settings()).unwrap())).clone()
}

/// Returns the folder of a package of the workspace's build, which is named as `name-version`.
pub fn package(name: &str) -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--manifest-path"])
        .arg(manifest)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&metadata.stdout);
    let end = text.find(&format!("{name}/Cargo.toml\"")).unwrap() + name.len();
    let start = text[..end].rfind('"').unwrap() + 1;
    PathBuf::from(&text[start..end])
}

pub fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

pub struct Session {
    pub engine: Arc<Engine>,
    /// The heap of the next step.
    pub head: Option<Digest>,
    /// The objects of all steps.
    pub objects: HashMap<Digest, Vec<u8>>,
    pub limits: Limits,
    pub surroundings: Surroundings,
    /// The result of the last step.
    pub last: Option<Stepped>,
}

impl Session {
    pub fn new() -> Self {
        Self::on(engine())
    }

    pub fn on(engine: Arc<Engine>) -> Self {
        Self {
            engine,
            head: None,
            objects: HashMap::new(),
            limits: LIMITS,
            surroundings: Surroundings { programs: true, ..Surroundings::default() },
            last: None,
        }
    }

    pub fn attempt(&mut self, input: Input) -> Result<Outcome, Error> {
        let step = Step {
            heap: self.head,
            input,
            limits: self.limits,
            surroundings: Arc::new(self.surroundings.clone()),
            stop: Stop::default(),
            turns: None,
        };
        let stepped = wait(self.engine.step(step))?;
        self.head = Some(stepped.heap.key);
        self.objects.insert(stepped.heap.key, stepped.heap.object.to_vec());
        let outcome = stepped.outcome.clone();
        self.last = Some(stepped);
        Ok(outcome)
    }

    pub fn run(&mut self, code: &str) -> Outcome {
        self.attempt(Input::Evaluate { code: code.to_owned() }).unwrap_or_else(|error| panic!("{code}: {error}"))
    }

    pub fn fails(&mut self, code: &str) -> Error {
        match self.attempt(Input::Evaluate { code: code.to_owned() }) {
            Err(error) => error,
            Ok(outcome) => panic!("{code} ended with {outcome:?}"),
        }
    }

    pub fn settle(&mut self, answers: Vec<(u64, Result<Value, Thrown>)>) -> Outcome {
        self.attempt(Input::Settle { answers }).unwrap()
    }

    pub fn console(&self) -> &str {
        self.last.as_ref().map_or("", |stepped| &stepped.console)
    }

    /// Runs code and returns its completion value, which must be JSON.
    pub fn json(&mut self, code: &str) -> Value {
        match self.run(code) {
            Outcome::Completed(Completion::Json(value)) => value,
            other => panic!("{code} ended with {other:?}"),
        }
    }

    pub fn threw(&mut self, code: &str) -> Thrown {
        match self.run(code) {
            Outcome::Threw(thrown) => thrown,
            other => panic!("{code} ended with {other:?}"),
        }
    }

    /// Runs code that must wait, and returns its pending calls.
    pub fn pending_calls(&mut self, code: &str) -> Vec<HostCall> {
        pending_calls(self.run(code))
    }

    /// Returns the objects that a reader of the head needs, the oldest first.
    pub fn chain(&self) -> Vec<Vec<u8>> {
        let mut chain = Vec::new();
        let mut at = self.head;
        while let Some(key) = at {
            let object = self.objects[&key].clone();
            at = self.engine.header(&object).unwrap().parent;
            chain.insert(0, object);
        }
        chain
    }

    /// Replaces the engine by a new one, which has to load the heap from the stored objects.
    pub fn move_to_new_engine(&mut self) {
        let fresh = Arc::new(Engine::start(&settings()).unwrap());
        wait(fresh.admit(self.head.unwrap(), self.chain())).unwrap();
        self.engine = fresh;
    }
}

pub fn pending_calls(outcome: Outcome) -> Vec<HostCall> {
    match outcome {
        Outcome::Waiting { owed } => owed,
        other => panic!("the script does not wait: {other:?}"),
    }
}

/// Returns the programs among the calls, with the ids of their calls.
pub fn programs(calls: &[HostCall]) -> Vec<(u64, &str)> {
    calls
        .iter()
        .filter_map(|call| match &call.call {
            Call::Plasm { program } => Some((call.id, program.as_str())),
            _ => None,
        })
        .collect()
}
