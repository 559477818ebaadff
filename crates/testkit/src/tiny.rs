//! A small script engine for tests. Its heaps behave like real heaps: their key is the digest of their content, they are stored as changes
//! of a parent, and a test can drop them from memory. Its programs are JSON lists of instructions.
//!
//! Invariant: a heap contains only its variables, the instructions that did not run yet, and its open calls. Two engines with the same
//! heap and input make the same heap.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use base::Digest;
use ports::Scripts;
use ports::scripts::{
    Call, Completion, Error, Global, Heap, HostCall, Input, ObjectHeader, Outcome, Step, Stepped, Thrown,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::lock;

/// One instruction. The value of a program is the value of its last instruction that has one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Instruction {
    Set(String, Value),
    /// Adds a number to a variable, which is 0 at first.
    Add(String, i64),
    /// Returns the value of a variable.
    Get(String),
    Print(String),
    Throw(String),
    /// Runs for this number of milliseconds.
    Spin(u64),
    /// Runs until the test calls `release` with this name.
    Hold(String),
    /// Exceeds the limit on memory.
    Grow,
    /// Makes these calls and waits for all of them. Its value is the list of the answers.
    Await(Vec<Call>),
    /// Waits forever, because it waits for no call.
    Never,
    /// Returns the value of `mcp.headers`.
    Headers,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct State {
    /// The global variables.
    vars: BTreeMap<String, Value>,
    /// The instructions that did not run yet.
    rest: Vec<Instruction>,
    /// The calls that have no answer yet.
    owed: Vec<HostCall>,
    /// The answers that have arrived for the waiting instruction, by the ids of its calls.
    answers: BTreeMap<u64, Value>,
    /// The value of the last instruction that has one.
    value: Option<Value>,
    /// The id of the next call.
    next: u64,
}

/// The size in bytes that every heap reports as its memory.
const MEMORY_BYTES: u64 = 65_536;

/// A heap as it is stored: its changes since the parent.
#[derive(Debug, Serialize, Deserialize)]
struct Object {
    key: Digest,
    parent: Option<Digest>,
    engine: Digest,
    /// The variables that differ from those of the parent. `None` marks a variable that was removed.
    changed: BTreeMap<String, Option<Value>>,
    /// The other parts of the state; its `vars` are empty.
    state: State,
}

pub struct TinyScripts {
    guest: Vec<u8>,
    /// The engines whose heaps can run.
    engines: Mutex<HashSet<Digest>>,
    /// The heaps in memory, each with its engine.
    heaps: Mutex<HashMap<Digest, (State, Digest)>>,
    /// The names of all steps, which `steps` returns.
    steps: Mutex<Vec<String>>,
    /// The names with which the test called `release`.
    released: Mutex<HashSet<String>>,
    /// Wakes the instructions `hold` after a release.
    wake: Notify,
    step_count: Mutex<StepCount>,
    /// The heaps for which `prepare` was called, which `made_ready` returns.
    made_ready: Mutex<Vec<Digest>>,
}

#[derive(Default)]
struct StepCount {
    under_way: usize,
    /// The highest value that `under_way` has had.
    max: usize,
}

impl Default for TinyScripts {
    fn default() -> Self {
        Self::build("a tiny engine")
    }
}

impl TinyScripts {
    /// Returns an engine of another build, which has another digest.
    pub fn build(guest: &str) -> Self {
        Self {
            engines: Mutex::new(HashSet::from([Digest::of(guest.as_bytes())])),
            guest: guest.as_bytes().to_vec(),
            heaps: Mutex::default(),
            steps: Mutex::default(),
            released: Mutex::default(),
            wake: Notify::new(),
            step_count: Mutex::default(),
            made_ready: Mutex::default(),
        }
    }

    /// Drops every heap from memory, like an engine whose memory is full.
    pub fn forget(&self) {
        lock(&self.heaps).clear();
    }

    /// Returns one text for each step, in the order in which the steps began: the code of an evaluation, or `settle` for an answer.
    pub fn steps(&self) -> Vec<String> {
        lock(&self.steps).clone()
    }

    /// Lets the instructions `hold` with this name continue.
    pub fn release(&self, name: &str) {
        lock(&self.released).insert(name.to_owned());
        self.wake.notify_waiters();
    }

    /// Returns the highest number of steps that were under way at one moment.
    pub fn most_at_once(&self) -> usize {
        lock(&self.step_count).max
    }

    /// Returns the heaps for which `prepare` was called while they were in memory.
    pub fn made_ready(&self) -> Vec<Digest> {
        lock(&self.made_ready).clone()
    }

    fn state_of(&self, key: Digest) -> Result<(State, Digest), Error> {
        let (state, engine) = lock(&self.heaps).get(&key).cloned().ok_or(Error::Absent(key))?;
        if !lock(&self.engines).contains(&engine) {
            return Err(Error::NoEngine { heap: key, engine });
        }
        Ok((state, engine))
    }

    /// Makes the heap of a state, keeps it in memory and returns it.
    fn store_heap(&self, parent: Option<Digest>, before: &State, state: State, engine: Digest) -> Heap {
        let mut changed: BTreeMap<String, Option<Value>> = BTreeMap::new();
        for (name, value) in &state.vars {
            if before.vars.get(name) != Some(value) {
                changed.insert(name.clone(), Some(value.clone()));
            }
        }
        for name in before.vars.keys().filter(|name| !state.vars.contains_key(*name)) {
            changed.insert(name.clone(), None);
        }
        let rest = State { vars: BTreeMap::new(), ..state.clone() };
        let key = key_of(&state, engine);
        let object = Object { key, parent, engine, changed, state: rest };
        let object = serde_json::to_vec(&object).unwrap();
        lock(&self.heaps).insert(key, (state, engine));
        Heap { key, parent, engine, object: object.into(), memory_bytes: MEMORY_BYTES, links: 1 }
    }

    async fn run(&self, step: &Step, state: &mut State, console: &mut String) -> Result<Outcome, Error> {
        while !state.rest.is_empty() {
            match state.rest.remove(0) {
                Instruction::Set(name, value) => {
                    state.vars.insert(name, value);
                }
                Instruction::Add(name, number) => {
                    let sum = state.vars.get(&name).and_then(Value::as_i64).unwrap_or(0) + number;
                    state.vars.insert(name, json!(sum));
                    state.value = Some(json!(sum));
                }
                Instruction::Get(name) => state.value = Some(state.vars.get(&name).cloned().unwrap_or(Value::Null)),
                Instruction::Print(text) => console.push_str(&text),
                Instruction::Throw(message) => return Ok(Outcome::Threw(thrown("Error", &message))),
                Instruction::Spin(ms) => busy(step, Duration::from_millis(ms)).await?,
                Instruction::Hold(name) => self.hold(step, &name).await?,
                Instruction::Grow => return Err(Error::Memory(step.limits.memory_bytes)),
                Instruction::Headers => state.value = Some(json!(step.surroundings.headers)),
                Instruction::Never => return Ok(Outcome::Waiting { owed: Vec::new() }),
                Instruction::Await(calls) => {
                    for call in calls {
                        state.owed.push(HostCall { id: state.next, call });
                        state.next += 1;
                    }
                    return Ok(Outcome::Waiting { owed: state.owed.clone() });
                }
            }
        }
        let value = state.value.take();
        Ok(Outcome::Completed(value.map_or(Completion::Undefined, Completion::Json)))
    }

    async fn hold(&self, step: &Step, name: &str) -> Result<(), Error> {
        loop {
            let woken = self.wake.notified();
            if lock(&self.released).contains(name) {
                return Ok(());
            }
            tokio::select! {
                () = woken => {}
                ended = busy(step, Duration::from_secs(3600)) => return ended,
            }
        }
    }

    async fn run_step(&self, step: &Step) -> Result<Stepped, Error> {
        let (before, engine) = match step.heap {
            Some(key) => self.state_of(key)?,
            None => (State::default(), self.engine()),
        };
        let mut state = before.clone();
        let mut console = String::new();
        let outcome = match &step.input {
            Input::Evaluate { code } => {
                lock(&self.steps).push(code.clone());
                match serde_json::from_str::<Vec<Instruction>>(code) {
                    Ok(program) => {
                        state.rest = program;
                        self.run(step, &mut state, &mut console).await?
                    }
                    Err(error) => Outcome::Threw(thrown("SyntaxError", &error.to_string())),
                }
            }
            Input::Settle { answers } => {
                lock(&self.steps).push("settle".to_owned());
                self.settle(step, &mut state, &mut console, answers).await?
            }
        };
        let dropped = (console.len() as u64).saturating_sub(step.limits.output_bytes);
        console.truncate(console.len() - dropped as usize);
        let heap = self.store_heap(step.heap, &before, state, engine);
        Ok(Stepped { heap, outcome, console, console_dropped: dropped })
    }

    async fn settle(
        &self,
        step: &Step,
        state: &mut State,
        console: &mut String,
        answers: &[(u64, Result<Value, Thrown>)],
    ) -> Result<Outcome, Error> {
        for (id, answer) in answers {
            let is_open = state.owed.iter().any(|owed| owed.id == *id);
            assert!(is_open, "call {id} was not open, or was answered twice");
            state.owed.retain(|owed| owed.id != *id);
            match answer {
                Ok(value) => state.answers.insert(*id, value.clone()),
                Err(thrown) => return Ok(Outcome::Threw(thrown.clone())),
            };
        }
        if !state.owed.is_empty() {
            return Ok(Outcome::Waiting { owed: state.owed.clone() });
        }
        let answers = std::mem::take(&mut state.answers);
        state.value = Some(answers.into_values().collect());
        self.run(step, state, console).await
    }
}

fn key_of(state: &State, engine: Digest) -> Digest {
    Digest::of(&serde_json::to_vec(&(state, engine)).unwrap())
}

fn thrown(name: &str, message: &str) -> Thrown {
    Thrown { name: name.to_owned(), message: message.to_owned(), stack: "    at <run>:1".to_owned() }
}

/// Waits for a time, unless the step is stopped or reaches its deadline before.
async fn busy(step: &Step, work: Duration) -> Result<(), Error> {
    let began = tokio::time::Instant::now();
    while began.elapsed() < work {
        if step.stop.is_stopped() {
            return Err(Error::Stopped);
        }
        if began.elapsed() >= Duration::from_millis(step.limits.deadline_ms) {
            return Err(Error::Deadline(step.limits.deadline_ms));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

#[async_trait]
impl Scripts for TinyScripts {
    fn engine(&self) -> Digest {
        Digest::of(&self.guest)
    }

    fn guest(&self) -> &[u8] {
        &self.guest
    }

    /// Refuses a program that begins with `type`, which stands for a mistake in TypeScript.
    fn to_javascript(&self, source: &str) -> Result<String, Thrown> {
        if source.starts_with("type ") {
            Err(thrown("SyntaxError", "a type without an end"))
        } else {
            Ok(source.to_owned())
        }
    }

    fn header(&self, bytes: &[u8]) -> Result<ObjectHeader, Error> {
        let object: Object = serde_json::from_slice(bytes).map_err(|_| Error::Damaged(Digest::of(bytes)))?;
        Ok(ObjectHeader { key: object.key, parent: object.parent, memory_bytes: MEMORY_BYTES })
    }

    fn is_in_memory(&self, key: Digest) -> bool {
        lock(&self.heaps).contains_key(&key)
    }

    async fn admit(&self, key: Digest, objects: Vec<Vec<u8>>) -> Result<(), Error> {
        let mut vars = BTreeMap::new();
        let mut last = None;
        for bytes in &objects {
            let object: Object = serde_json::from_slice(bytes).map_err(|_| Error::Damaged(key))?;
            if let (None, Some(parent)) = (&last, object.parent) {
                let heaps = lock(&self.heaps);
                vars = heaps.get(&parent).map(|(state, _)| state.vars.clone()).ok_or(Error::Absent(parent))?;
            }
            for (name, value) in object.changed {
                match value {
                    Some(value) => vars.insert(name, value),
                    None => vars.remove(&name),
                };
            }
            last = Some((object.state, object.engine));
        }
        let Some((state, engine)) = last else { return Err(Error::Damaged(key)) };
        let state = State { vars, ..state };
        if key_of(&state, engine) != key {
            return Err(Error::Damaged(key));
        }
        if !lock(&self.engines).contains(&engine) {
            return Err(Error::NoEngine { heap: key, engine });
        }
        lock(&self.heaps).insert(key, (state, engine));
        Ok(())
    }

    async fn admit_engine(&self, guest: Vec<u8>) -> Result<Digest, Error> {
        if !guest.starts_with(b"a tiny engine") {
            return Err(Error::NotAnEngine);
        }
        lock(&self.engines).insert(Digest::of(&guest));
        Ok(Digest::of(&guest))
    }

    async fn step(&self, step: Step) -> Result<Stepped, Error> {
        {
            let mut count = lock(&self.step_count);
            count.under_way += 1;
            count.max = count.max.max(count.under_way);
        }
        let stepped = self.run_step(&step).await;
        lock(&self.step_count).under_way -= 1;
        stepped
    }

    async fn prepare(&self, key: Digest) -> Result<(), Error> {
        self.state_of(key)?;
        lock(&self.made_ready).push(key);
        Ok(())
    }

    async fn standalone_object(&self, key: Digest) -> Result<Vec<u8>, Error> {
        let (state, engine) = self.state_of(key)?;
        let changed = state.vars.iter().map(|(name, value)| (name.clone(), Some(value.clone()))).collect();
        let state = State { vars: BTreeMap::new(), ..state };
        Ok(serde_json::to_vec(&Object { key, parent: None, engine, changed, state }).unwrap())
    }

    async fn globals(&self, key: Digest) -> Result<Vec<Global>, Error> {
        let global = |(name, value): (&String, &Value)| {
            let preview = value.to_string();
            let kind = if value.is_number() { "number" } else { "object" }.to_owned();
            Global {
                name: name.clone(),
                kind,
                size: preview.len() as u64,
                digest: Digest::of(preview.as_bytes()),
                preview,
            }
        };
        Ok(self.state_of(key)?.0.vars.iter().map(global).collect())
    }
}
