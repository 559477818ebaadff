//! Runs conformance files in the guest: on a live heap, or on a heap that is stored and loaded after every job.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use base::Digest;
use js::{Engine, Settings};
use ports::Scripts;
use ports::scripts::{Call, Error, Input, Limits, Outcome, Step, Stop, Surroundings};
use serde_json::Value;

use crate::support::{settings, wait};

/// A conformance file, ready to run.
#[derive(Debug, Clone)]
pub struct Case {
    pub name: String,
    /// The names of the files that run before it, each as a script of its own.
    pub harness: Vec<String>,
    pub source: String,
    pub expectation: Expectation,
}

/// How a conformance file must end.
#[derive(Debug, Clone, PartialEq)]
pub enum Expectation {
    /// The file completes without an error.
    Completes,
    /// The file ends with an error of this name.
    Throws(String),
    /// The file completes without an error and prints this text.
    Prints(&'static str),
    /// The file runs until the deadline ends it.
    Interrupted,
}

/// The result of a conformance file. The error describes the difference from its expectation.
pub type Verdict = Result<(), String>;

/// Returns the text of a harness file by name.
pub type HarnessFiles = Arc<dyn Fn(&str) -> String + Send + Sync>;

type Objects = Vec<(Digest, Vec<u8>)>;

const DEADLINE_MS: u64 = 60_000;

pub struct CaseRunner {
    engine: Engine,
    /// Whether the heap is stored and loaded between harness and test and after every job.
    store_every_job: bool,
    harness_files: HarnessFiles,
    /// The heap after running each list of harness files, with the heap's objects.
    harness_heaps: Mutex<HashMap<Vec<String>, (Digest, Objects)>>,
}

impl CaseRunner {
    pub fn new(store_every_job: bool, harness_files: HarnessFiles) -> Self {
        let live_guests = if store_every_job { 0 } else { 16 };
        let settings = Settings { store_every_job, live_guests, threads: 1, ..settings() };
        let engine = Engine::start(&settings).unwrap();
        Self { engine, store_every_job, harness_files, harness_heaps: Mutex::default() }
    }

    pub fn run(&self, case: &Case) -> Verdict {
        judge(&case.expectation, self.execute(case)?)
    }

    /// Runs a file and returns its console output.
    pub fn console_of(&self, case: &Case) -> Result<String, String> {
        let result = self.execute(case)?.map_err(|error| error.to_string())?;
        match result.outcome {
            Outcome::Threw(thrown) => {
                Err(format!("{}: {}; it printed {}", thrown.name, thrown.message, result.console))
            }
            _ => Ok(result.console),
        }
    }

    fn execute(&self, case: &Case) -> Result<Result<ScriptResult, Error>, String> {
        let (heap, objects) = self.harness_heap(&case.harness)?;
        if self.store_every_job {
            // The heap of the harness is dropped from memory, so that the test runs on the stored heap.
            self.engine.forget();
        }
        // Large tests before this one may have evicted the heap.
        if let Some(heap) = heap.filter(|heap| !self.engine.is_in_memory(*heap)) {
            wait(self.engine.admit(heap, objects.into_iter().map(|(_, object)| object).collect()))
                .map_err(|error| error.to_string())?;
        }
        let deadline_ms = if case.expectation == Expectation::Interrupted { 300 } else { DEADLINE_MS };
        Ok(self.run_script(heap, deadline_ms, &case.source, &mut Vec::new()))
    }

    /// Returns the heap after running these harness files, and the heap's objects.
    fn harness_heap(&self, names: &[String]) -> Result<(Option<Digest>, Objects), String> {
        if names.is_empty() {
            return Ok((None, Vec::new()));
        }
        if let Some((heap, objects)) = self.harness_heaps.lock().unwrap().get(names) {
            return Ok((Some(*heap), objects.clone()));
        }
        let mut heap = None;
        let mut objects = Vec::new();
        for name in names {
            let result = self.run_script(heap, DEADLINE_MS, &(self.harness_files)(name), &mut objects);
            let ScriptResult { heap: next, outcome, .. } = result.map_err(|error| format!("{name}: {error}"))?;
            if let Outcome::Threw(thrown) = outcome {
                return Err(format!("{name} threw {}: {}", thrown.name, thrown.message));
            }
            heap = next;
        }
        // Only the objects that a reader of the last heap needs are kept, the oldest first.
        let by_key: HashMap<_, _> = objects.into_iter().collect();
        let mut next_key = heap;
        let mut chain = Vec::new();
        while let Some(key) = next_key {
            let object: &Vec<u8> = &by_key[&key];
            chain.insert(0, (key, object.clone()));
            next_key = self.engine.header(object).map_err(|error| error.to_string())?.parent;
        }
        let harness_heap = heap.unwrap();
        self.harness_heaps.lock().unwrap().insert(names.to_vec(), (harness_heap, chain.clone()));
        Ok((Some(harness_heap), chain))
    }

    /// Runs a script to its end. Timers fire in their order, without waiting. All objects are appended to `objects`.
    fn run_script(
        &self,
        heap: Option<Digest>,
        deadline_ms: u64,
        code: &str,
        objects: &mut Objects,
    ) -> Result<ScriptResult, Error> {
        let mut result = ScriptResult { heap, outcome: Outcome::Waiting { owed: Vec::new() }, console: String::new() };
        let mut input = Input::Evaluate { code: code.to_owned() };
        loop {
            let step = Step {
                heap: result.heap,
                input,
                limits: Limits { memory_bytes: 512 << 20, deadline_ms, output_bytes: 1 << 20 },
                surroundings: Arc::new(Surroundings::default()),
                stop: Stop::default(),
                turns: None,
            };
            let stepped = wait(self.engine.step(step))?;
            objects.push((stepped.heap.key, stepped.heap.object.to_vec()));
            result.heap = Some(stepped.heap.key);
            result.console += &stepped.console;
            result.outcome = stepped.outcome;
            let Outcome::Waiting { owed: calls } = &result.outcome else { return Ok(result) };
            let timers = calls.iter().filter_map(|call| match call.call {
                Call::Timer { ms } => Some((ms, call.id)),
                _ => None,
            });
            let Some((_, id)) = timers.min() else { return Ok(result) };
            input = Input::Settle { answers: vec![(id, Ok(Value::Null))] };
        }
    }
}

/// The state of a script at its end, and its console output.
struct ScriptResult {
    heap: Option<Digest>,
    outcome: Outcome,
    console: String,
}

fn judge(expectation: &Expectation, result: Result<ScriptResult, Error>) -> Verdict {
    if *expectation == Expectation::Interrupted {
        return if matches!(result, Err(Error::Deadline(_))) { Ok(()) } else { Err("it ended by itself".to_owned()) };
    }
    let result = result.map_err(|error| error.to_string())?;
    let thrown = match &result.outcome {
        Outcome::Threw(thrown) => Some(format!("{}: {}", thrown.name, thrown.message)),
        _ => None,
    };
    let console = &result.console;
    match (expectation, thrown) {
        (Expectation::Completes, None) => Ok(()),
        (Expectation::Prints(text), None) if console.contains(text) && !console.contains("Test262 failed") => Ok(()),
        (Expectation::Prints(_), None) => Err(format!("it printed {console:?}")),
        (Expectation::Throws(name), Some(thrown)) if has_name(&thrown, name) => Ok(()),
        (Expectation::Throws(name), thrown) => Err(format!("no {name} but {thrown:?}")),
        (_, Some(thrown)) => Err(thrown),
        (Expectation::Interrupted, None) => Err("it ended by itself".to_owned()),
    }
}

/// Returns whether the shown error has this name. The suite's own error is no `Error`, so it is shown as `Uncaught`
/// with its class.
fn has_name(thrown: &str, name: &str) -> bool {
    thrown.starts_with(&format!("{name}: ")) || (thrown.starts_with("Uncaught: ") && thrown.contains(name))
}
