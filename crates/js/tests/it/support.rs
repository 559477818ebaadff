//! A session of steps, its objects kept as a store would.

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
    Settings { code: Some(code), threads: 2, ..Settings::default() }
}

pub fn engine() -> Arc<Engine> {
    static ENGINE: OnceLock<Arc<Engine>> = OnceLock::new();
    ENGINE.get_or_init(|| Arc::new(Engine::start(&settings()).unwrap())).clone()
}

/// Where Cargo keeps a package that the workspace is built of, as `name-version`.
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
    pub head: Option<Digest>,
    pub objects: HashMap<Digest, Vec<u8>>,
    pub limits: Limits,
    pub surroundings: Surroundings,
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
            Ok(outcome) => panic!("{code} came to {outcome:?}"),
        }
    }

    pub fn settle(&mut self, answers: Vec<(u64, Result<Value, Thrown>)>) -> Outcome {
        self.attempt(Input::Settle { answers }).unwrap()
    }

    pub fn console(&self) -> &str {
        self.last.as_ref().map_or("", |stepped| &stepped.console)
    }

    /// Runs to JSON.
    pub fn json(&mut self, code: &str) -> Value {
        match self.run(code) {
            Outcome::Completed(Completion::Json(value)) => value,
            other => panic!("{code} came to {other:?}"),
        }
    }

    pub fn threw(&mut self, code: &str) -> Thrown {
        match self.run(code) {
            Outcome::Threw(thrown) => thrown,
            other => panic!("{code} came to {other:?}"),
        }
    }

    pub fn owed(&mut self, code: &str) -> Vec<HostCall> {
        owed(self.run(code))
    }

    /// The objects that the head needs, oldest first.
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

    /// Goes on in an engine that knows nothing but the objects.
    pub fn cold(&mut self) {
        let fresh = Arc::new(Engine::start(&settings()).unwrap());
        wait(fresh.admit(self.head.unwrap(), self.chain())).unwrap();
        self.engine = fresh;
    }
}

pub fn owed(outcome: Outcome) -> Vec<HostCall> {
    match outcome {
        Outcome::Waiting { owed } => owed,
        other => panic!("it waits for nothing: {other:?}"),
    }
}

/// The programs among what is owed.
pub fn programs(owed: &[HostCall]) -> Vec<(u64, &str)> {
    owed.iter()
        .filter_map(|call| match &call.call {
            Call::Plasm { program } => Some((call.id, program.as_str())),
            _ => None,
        })
        .collect()
}
