//! The port of scripts: a JavaScript engine whose step takes a heap and an input, and returns the next heap, an outcome and
//! the pending calls.
//!
//! Invariant: a step makes no call and touches no store. `session` makes the pending calls and commits the heap, so a
//! run is a continuation that any process can resume, and no thread holds it.
//!
//! A heap is named by its key and travels as objects: each holds the changes since its parent, down to the engine's
//! own base image. The engine keeps recent heaps in memory. For any other heap it returns [`Error::Absent`]; the
//! caller then loads the objects with [`Scripts::admit`] and retries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A JavaScript engine whose whole state is a heap.
#[async_trait]
pub trait Scripts: Send + Sync {
    /// Returns the engine that makes new heaps.
    /// Heaps name their engine, because a heap runs only on the engine that made it.
    fn engine(&self) -> Digest;

    /// Returns the program of that engine. It must be stored for as long as a heap needs it.
    fn guest(&self) -> &[u8];

    /// Translates TypeScript to JavaScript without moving any line. JavaScript is returned unchanged.
    fn to_javascript(&self, source: &str) -> Result<String, Thrown>;

    /// Returns the header of a stored object. Only the header is checked here; `admit` checks the content.
    fn header(&self, object: &[u8]) -> Result<ObjectHeader, Error>;

    /// Returns whether a heap is in memory at this moment. It may be evicted at any time.
    fn is_in_memory(&self, key: Digest) -> bool;

    /// Loads the objects of a heap, the oldest ancestor first, and verifies each one; the last object's key is `key`.
    /// The first object's parent must be the base image or a heap in memory, or else this returns [`Error::Absent`].
    async fn admit(&self, key: Digest, objects: Vec<Vec<u8>>) -> Result<(), Error>;

    /// Loads the program of another engine, as [`Scripts::guest`] of another build returned it.
    async fn admit_engine(&self, guest: Vec<u8>) -> Result<Digest, Error>;

    /// Runs the engine until the code completes, throws or waits for calls.
    async fn step(&self, step: Step) -> Result<Stepped, Error>;

    /// Loads the objects of the step's heap, if any are given, and then runs the step: [`Scripts::admit`] and
    /// [`Scripts::step`] in one call, which saves a thread switch.
    async fn step_from(&self, objects: Arc<Vec<Vec<u8>>>, step: Step) -> Result<Stepped, Error> {
        if let (Some(heap), false) = (step.heap, objects.is_empty()) {
            self.admit(heap, objects.to_vec()).await?;
        }
        self.step(step).await
    }

    /// Prepares an instance for the next step on this heap, to save time later. Doing nothing is a valid
    /// implementation.
    async fn prepare(&self, _key: Digest) -> Result<(), Error> {
        Ok(())
    }

    /// Returns one object that holds the whole heap and needs no parent.
    async fn standalone_object(&self, key: Digest) -> Result<Vec<u8>, Error>;

    /// Returns the global names in a heap, each with a digest of its value, for comparing heaps.
    async fn globals(&self, key: Digest) -> Result<Vec<Global>, Error>;
}

/// The header of a stored object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectHeader {
    /// The key of the heap that the object holds.
    pub key: Digest,
    /// The heap that the object is a difference to. `None` is the engine's base image.
    pub parent: Option<Digest>,
    /// The size of the heap's memory.
    pub memory_bytes: u64,
}

/// One step to run.
#[derive(Debug, Clone)]
pub struct Step {
    /// The heap to start from. `None` starts with the base image of the engine.
    pub heap: Option<Digest>,
    /// The first action of the step.
    pub input: Input,
    pub limits: Limits,
    /// The environment that the code sees. It is never part of a heap.
    pub surroundings: Arc<Surroundings>,
    /// Stops this step from outside.
    pub stop: Stop,
    /// Lets other steps run in between. `None` if steps do not share processors.
    pub turns: Option<Arc<dyn Turns>>,
}

/// Lets steps take turns on the processors.
pub trait Turns: Send + Sync {
    /// Called on the step's thread every few milliseconds. Returns when the step may go on, or when `stopped` returns
    /// true. The returned duration is added to the step's deadline.
    fn pause(&self, stopped: &dyn Fn() -> bool) -> Duration;
}

impl std::fmt::Debug for dyn Turns {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Turns")
    }
}

/// The first action of a step.
#[derive(Debug, Clone)]
pub enum Input {
    /// Evaluates JavaScript, as [`Scripts::to_javascript`] returned it.
    Evaluate { code: String },
    /// Settles pending calls of earlier steps, by call id.
    Settle { answers: Vec<(u64, Result<Value, Thrown>)> },
}

/// The limits of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The size that the heap's memory may reach.
    pub memory_bytes: u64,
    /// The limit of this step in wall clock time.
    pub deadline_ms: u64,
    /// Console output beyond this size is counted and dropped.
    pub output_bytes: u64,
}

/// The environment that the code sees.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The headers that the code reads as `mcp.headers`.
    pub headers: BTreeMap<String, String>,
    /// Whether `plasm` and `plasm.plan` are defined.
    pub programs: bool,
    /// Whether `fetch` is defined.
    pub fetch: bool,
}

/// Stops a step from outside. A stopped step has no outcome and leaves no heap.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Ends the step soon. All clones of this value mean the same step.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns whether the step was asked to end.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The result of a step.
#[derive(Debug, Clone)]
pub struct Stepped {
    /// The memory after the step.
    pub heap: Heap,
    pub outcome: Outcome,
    /// The step's console output, in order and not cut at line ends.
    pub console: String,
    /// The number of bytes that were dropped from it.
    pub console_dropped: u64,
}

/// A heap in the form in which it is stored.
#[derive(Debug, Clone)]
pub struct Heap {
    pub key: Digest,
    /// The heap that the object is a difference to. `None` is the engine's base image.
    pub parent: Option<Digest>,
    /// The engine that the heap needs.
    pub engine: Digest,
    /// The bytes to store.
    pub object: Arc<[u8]>,
    /// The size of the heap's memory.
    pub memory_bytes: u64,
    /// The number of objects that a reader needs, this one included.
    pub links: u32,
}

/// How a step ended.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// The script ended with a value.
    Completed(Completion),
    /// The script ended with an exception that it did not catch.
    Threw(Thrown),
    /// The code waits for calls. Its stack is empty, so the heap is the complete continuation.
    Waiting {
        /// Every pending call, including those of earlier steps.
        owed: Vec<HostCall>,
    },
}

/// The value of a completed script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// A value that JSON can represent.
    Json(Value),
    /// A value that JSON cannot represent, as text for a person.
    Inspected(String),
    Undefined,
}

/// A call that the code waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostCall {
    /// Unique in its heap and in all heaps derived from it.
    pub id: u64,
    pub call: Call,
}

/// The kinds of call that code can make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// A timer. It is settled without a value, this many milliseconds after the code first requested it.
    Timer { ms: u64 },
    /// A program to run. It is settled with the program's results.
    Plasm { program: String },
    /// A program to plan. It is settled with the answer of the `plasm` tool.
    Plan { program: String },
    /// A request to an origin that the server's rules allow.
    Fetch { request: Value },
}

/// An exception.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thrown {
    /// The name of the error's class, such as `TypeError`.
    pub name: String,
    pub message: String,
    /// The stack trace, in the line numbers of the caller's source.
    pub stack: String,
}

/// A global name of a heap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Global {
    pub name: String,
    /// `number`, `function`, `class`, `object`, …
    pub kind: String,
    /// A short rendering of the value.
    pub preview: String,
    /// The approximate size of everything that is reachable from this name.
    pub size: u64,
    /// Equal for equal content.
    pub digest: Digest,
}

/// Why the engine has no result.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not a fault: load its objects with `admit` and retry.
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
    /// The engine has no room. The run is not at fault and can be retried.
    #[error("too many runs are waiting for the JavaScript engine")]
    Busy,
    #[error("the JavaScript engine failed")]
    Engine(#[source] crate::Cause),
}
