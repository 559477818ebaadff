//! JavaScript as a step function: a heap and an input in; the next heap, an outcome and the calls it waits for out.
//! Invariant: a step makes no call and touches no store. `session` makes the calls owed and commits the heap, so a run is
//! a continuation that any process can take up, not a thread that one of them holds.
//!
//! A heap is named by its key and travels as objects: each holds what changed since its parent, down to the engine's own
//! base image. The engine keeps recent heaps in memory; one it does not have is [`Error::Absent`], and the caller brings the
//! objects with [`Scripts::admit`] and asks again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[async_trait]
pub trait Scripts: Send + Sync {
    /// The engine that new heaps are made by.
    fn engine(&self) -> Digest;

    /// The program of that engine, to be kept as long as a heap needs it.
    fn guest(&self) -> &[u8];

    /// The JavaScript that a source in TypeScript means, every line where it was; JavaScript is itself.
    fn plain(&self, source: &str) -> Result<String, Thrown>;

    /// What a stored object says of itself. Only its own frame is checked here; its content is by `admit`.
    fn frame(&self, object: &[u8]) -> Result<Frame, Error>;

    /// Whether a heap is here at this moment. It may be gone in the next.
    fn is_here(&self, key: Digest) -> bool;

    /// Takes the objects of a heap, its oldest ancestor first, and verifies every one; the key of the last is the heap's. What
    /// the first stands on is the base image, or is here; else it is [`Error::Absent`].
    async fn admit(&self, key: Digest, objects: Vec<Vec<u8>>) -> Result<(), Error>;

    /// Takes the program of another engine, as [`Scripts::guest`] of another build gave it.
    async fn admit_engine(&self, guest: Vec<u8>) -> Result<Digest, Error>;

    async fn step(&self, step: Step) -> Result<Stepped, Error>;

    /// Takes the objects of the heap that the step stands on first, if there are any: [`Scripts::admit`] and [`Scripts::step`]
    /// without the way from the one to the other.
    async fn step_from(&self, objects: Arc<Vec<Vec<u8>>>, step: Step) -> Result<Stepped, Error> {
        if let (Some(heap), false) = (step.heap, objects.is_empty()) {
            self.admit(heap, objects.to_vec()).await?;
        }
        self.step(step).await
    }

    /// Makes what the next step on this heap will need, while there is time for it. Nothing is wrong where nothing was made.
    async fn ready(&self, _key: Digest) -> Result<(), Error> {
        Ok(())
    }

    /// One object that holds the whole heap, needing no parent.
    async fn whole(&self, key: Digest) -> Result<Vec<u8>, Error>;

    /// The names a heap holds, with a digest of what each one is: what two heaps are compared by.
    async fn globals(&self, key: Digest) -> Result<Vec<Global>, Error>;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Of the heap that it holds.
    pub key: Digest,
    /// What it was made against; `None` is the engine's base image.
    pub parent: Option<Digest>,
    /// The size of the memory that the heap stands for.
    pub memory_bytes: u64,
}

#[derive(Debug, Clone)]
pub struct Step {
    /// The heap to stand on; `None` starts fresh.
    pub heap: Option<Digest>,
    pub input: Input,
    pub limits: Limits,
    /// What the code may see of its surroundings. Never part of a heap.
    pub surroundings: Arc<Surroundings>,
    pub stop: Stop,
    /// Where steps share processors: who is asked, now and then, whether others go first.
    pub turns: Option<Arc<dyn Turns>>,
}

/// Steps take turns on the processors.
pub trait Turns: Send + Sync {
    /// Called on the thread of a step, some milliseconds apart. Comes back when the step may go on, or `stopped` says that it
    /// will not; that long its deadline is put off.
    fn pause(&self, stopped: &dyn Fn() -> bool) -> Duration;
}

impl std::fmt::Debug for dyn Turns {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Turns")
    }
}

#[derive(Debug, Clone)]
pub enum Input {
    /// JavaScript, as [`Scripts::plain`] gave it.
    Evaluate { code: String },
    /// Answers to calls that earlier steps owed, by call id.
    Settle { answers: Vec<(u64, Result<Value, Thrown>)> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub memory_bytes: u64,
    /// For this step, on the wall clock.
    pub deadline_ms: u64,
    /// Console output beyond this is counted and dropped.
    pub output_bytes: u64,
}

#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// What the code reads as `mcp.headers`.
    pub headers: BTreeMap<String, String>,
    /// Whether `plasm` and `plasm.plan` are there.
    pub programs: bool,
    /// Whether `fetch` is there.
    pub fetch: bool,
}

/// Ends a step from outside. A stopped step has no outcome and leaves no heap.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

#[derive(Debug, Clone)]
pub struct Stepped {
    pub heap: Heap,
    pub outcome: Outcome,
    /// What the step wrote to its console, whole lines or not, in order.
    pub console: String,
    /// Bytes of it that were dropped.
    pub console_dropped: u64,
}

/// A heap as it is stored.
#[derive(Debug, Clone)]
pub struct Heap {
    pub key: Digest,
    /// What the object was made against; `None` is the engine's base image.
    pub parent: Option<Digest>,
    pub engine: Digest,
    pub object: Arc<[u8]>,
    /// The size of the memory it stands for.
    pub memory_bytes: u64,
    /// How many objects a reader needs, this one included.
    pub links: u32,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    Completed(Completion),
    Threw(Thrown),
    /// Waiting for the host; the stack is empty and the heap is the whole program.
    Waiting {
        /// Every call that is owed, also those owed before this step.
        owed: Vec<HostCall>,
    },
}

/// What a program came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    Json(Value),
    /// It does not serialise: how a person would have it printed.
    Inspected(String),
    Undefined,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostCall {
    /// Unique in its heap and every heap that comes of it.
    pub id: u64,
    pub call: Call,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// Settled with nothing, so many milliseconds after it was first owed.
    Timer { ms: u64 },
    /// A program to run; settled with its results.
    Plasm { program: String },
    /// A program to plan; settled with what `plasm` would answer.
    Plan { program: String },
    /// A request to an origin that the server's policy allows.
    Fetch { request: Value },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thrown {
    pub name: String,
    pub message: String,
    /// In the caller's own line numbers.
    pub stack: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Global {
    pub name: String,
    /// `number`, `function`, `class`, `object`, …
    pub kind: String,
    /// A short look at it.
    pub preview: String,
    /// About how much it holds, reached from this name alone.
    pub size: u64,
    /// Equal for equal content.
    pub digest: Digest,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a fault: bring its objects with `admit`.
    #[error("heap {0} is not in memory")]
    Absent(Digest),
    #[error("heap {0} is damaged")]
    Damaged(Digest),
    #[error("heap {heap} needs engine {engine}, which is not here")]
    NoEngine { heap: Digest, engine: Digest },
    #[error("these bytes are not an engine of ours")]
    NotAnEngine,
    #[error("the heap waits for no answer to call {0}")]
    NoCall(u64),
    #[error("the run used more than {0} bytes of memory")]
    Memory(u64),
    #[error("the run took longer than {0} ms")]
    Deadline(u64),
    #[error("the run was stopped")]
    Stopped,
    /// It is not the run's fault; it can be asked again.
    #[error("too many runs are waiting for the JavaScript engine")]
    Busy,
    #[error("the JavaScript engine failed")]
    Engine(#[source] crate::Cause),
}
