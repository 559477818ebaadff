//! Where a case is run: in one step after another on a heap that is alive, or stored and brought back at every turn.

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
    /// Names of the files that run before it, each as a program of its own.
    pub harness: Vec<String>,
    pub source: String,
    pub wanted: Wanted,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Wanted {
    /// It ends without an error.
    Completes,
    /// It throws an error of this name.
    Throws(String),
    /// It prints that it is complete, at some time.
    Says(&'static str),
    /// It goes on until it is ended from outside.
    Interrupted,
}

/// What a file came to: nothing to say, or what was wrong.
pub type Verdict = Result<(), String>;

/// Texts of harness files by name.
pub type Library = Arc<dyn Fn(&str) -> String + Send + Sync>;

type Objects = Vec<(Digest, Vec<u8>)>;

pub struct Desk {
    engine: Engine,
    restless: bool,
    library: Library,
    /// The heap after each list of harness files, with the objects it is made of.
    made: Mutex<HashMap<Vec<String>, (Digest, Objects)>>,
}

impl Desk {
    pub fn new(restless: bool, library: Library) -> Self {
        let settings = Settings { restless, live: if restless { 0 } else { 16 }, threads: 1, ..settings() };
        Self { engine: Engine::start(&settings).unwrap(), restless, library, made: Mutex::default() }
    }

    pub fn run(&self, case: &Case) -> Verdict {
        judge(&case.wanted, self.ran(case)?)
    }

    /// What it wrote to its console.
    pub fn said(&self, case: &Case) -> Result<String, String> {
        let ran = self.ran(case)?.map_err(|error| error.to_string())?;
        match ran.outcome {
            Outcome::Threw(thrown) => Err(format!("{}: {}; it said {}", thrown.name, thrown.message, ran.console)),
            _ => Ok(ran.console),
        }
    }

    fn ran(&self, case: &Case) -> Result<Result<Ran, Error>, String> {
        let (heap, objects) = self.harness(&case.harness)?;
        if self.restless {
            // Between harness and test: nothing is left of it in memory, and it comes back from what was stored.
            self.engine.forget();
        }
        // Without that, too, some large tests before this one may have taken its place.
        if let Some(heap) = heap.filter(|heap| !self.engine.is_in_memory(*heap)) {
            wait(self.engine.admit(heap, objects.into_iter().map(|(_, object)| object).collect()))
                .map_err(|error| error.to_string())?;
        }
        let deadline_ms = if case.wanted == Wanted::Interrupted { 300 } else { 60_000 };
        Ok(self.program((heap, deadline_ms), &case.source, &mut Vec::new()))
    }

    fn harness(&self, names: &[String]) -> Result<(Option<Digest>, Objects), String> {
        if names.is_empty() {
            return Ok((None, Vec::new()));
        }
        if let Some((heap, objects)) = self.made.lock().unwrap().get(names) {
            return Ok((Some(*heap), objects.clone()));
        }
        let (mut heap, mut objects) = (None, Vec::new());
        for name in names {
            let ran = self.program((heap, 60_000), &(self.library)(name), &mut objects);
            let Ran { heap: next, outcome, .. } = ran.map_err(|error| format!("{name}: {error}"))?;
            if let Outcome::Threw(thrown) = outcome {
                return Err(format!("{name} threw {}: {}", thrown.name, thrown.message));
            }
            heap = next;
        }
        // The objects that the last heap is made of, the oldest first.
        let by_key: HashMap<_, _> = objects.into_iter().collect();
        let (mut at, mut chain) = (heap, Vec::new());
        while let Some(key) = at {
            let object: &Vec<u8> = &by_key[&key];
            chain.insert(0, (key, object.clone()));
            at = self.engine.header(object).map_err(|error| error.to_string())?.parent;
        }
        let made = (heap.unwrap(), chain);
        self.made.lock().unwrap().insert(names.to_vec(), made.clone());
        Ok((Some(made.0), made.1))
    }

    /// A program to its end; timers go off in their order, at once.
    fn program(
        &self,
        (heap, deadline_ms): (Option<Digest>, u64),
        code: &str,
        objects: &mut Objects,
    ) -> Result<Ran, Error> {
        let mut ran = Ran { heap, outcome: Outcome::Waiting { owed: Vec::new() }, console: String::new() };
        let mut input = Input::Evaluate { code: code.to_owned() };
        loop {
            let step = Step {
                heap: ran.heap,
                input,
                limits: Limits { memory_bytes: 512 << 20, deadline_ms, output_bytes: 1 << 20 },
                surroundings: Arc::new(Surroundings::default()),
                stop: Stop::default(),
                turns: None,
            };
            let stepped = wait(self.engine.step(step))?;
            objects.push((stepped.heap.key, stepped.heap.object.to_vec()));
            ran.heap = Some(stepped.heap.key);
            ran.console += &stepped.console;
            ran.outcome = stepped.outcome;
            let Outcome::Waiting { owed } = &ran.outcome else { return Ok(ran) };
            let due = owed.iter().filter_map(|call| match call.call {
                Call::Timer { ms } => Some((ms, call.id)),
                _ => None,
            });
            let Some((_, id)) = due.min() else { return Ok(ran) };
            input = Input::Settle { answers: vec![(id, Ok(Value::Null))] };
        }
    }
}

struct Ran {
    heap: Option<Digest>,
    outcome: Outcome,
    console: String,
}

fn judge(wanted: &Wanted, ran: Result<Ran, Error>) -> Verdict {
    if *wanted == Wanted::Interrupted {
        return if matches!(ran, Err(Error::Deadline(_))) { Ok(()) } else { Err("it ended by itself".to_owned()) };
    }
    let ran = ran.map_err(|error| error.to_string())?;
    let shown = match &ran.outcome {
        Outcome::Threw(thrown) => Some(format!("{}: {}", thrown.name, thrown.message)),
        _ => None,
    };
    match (wanted, shown) {
        (Wanted::Completes, None) => Ok(()),
        (Wanted::Says(text), None) if ran.console.contains(text) && !ran.console.contains("Test262 failed") => Ok(()),
        (Wanted::Says(_), None) => Err(format!("it said {:?}", ran.console)),
        (Wanted::Throws(name), Some(shown)) if threw(name, &shown) => Ok(()),
        (Wanted::Throws(name), shown) => Err(format!("no {name} but {shown:?}")),
        (_, Some(shown)) => Err(shown),
        (Wanted::Interrupted, None) => Err("it ended by itself".to_owned()),
    }
}

/// The error that the suite itself throws is no `Error`: it is shown as its class is.
fn threw(name: &str, shown: &str) -> bool {
    shown.starts_with(&format!("{name}: ")) || (shown.starts_with("Uncaught: ") && shown.contains(name))
}
