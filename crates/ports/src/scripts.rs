//! The port of scripts: a JavaScript engine whose step takes a heap and an input, and returns the next heap, an outcome and
//! the pending calls.
//!
//! Invariant: a step makes no call and touches no store. The crate `session` makes the pending calls and commits the
//! heap. A waiting run is therefore data that any process can resume, and no thread is blocked by it.
//!
//! A heap is named by its key. It is stored and loaded as a chain of objects: each object contains the changes since
//! its parent heap, and the first one the changes since the engine's base image. The engine caches recent heaps in
//! memory. For a heap that is not in memory it returns [`Error::Absent`]; the caller then loads the objects with
//! [`Scripts::admit`] and retries.

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
    /// Returns the digest of the engine that makes new heaps. A heap records this digest, because a heap runs only on
    /// the engine that made it.
    fn engine(&self) -> Digest;

    /// Returns the WebAssembly code of the engine that [`Scripts::engine`] names. The caller stores this code for as
    /// long as a heap of the engine exists.
    fn guest(&self) -> &[u8];

    /// Translates TypeScript to JavaScript and keeps every line number. JavaScript is returned unchanged.
    fn to_javascript(&self, source: &str) -> Result<String, Thrown>;

    /// Returns the header of a stored object. This method checks the header only; `admit` checks the content.
    fn header(&self, object: &[u8]) -> Result<ObjectHeader, Error>;

    /// Returns whether a heap is in memory at this moment. The engine may evict the heap right after this call.
    fn is_in_memory(&self, key: Digest) -> bool;

    /// Loads the objects of a heap, the oldest ancestor first, and verifies each object. The last object must have
    /// the key `key`. The parent of the first object must be the base image or a heap in memory; otherwise this
    /// returns [`Error::Absent`].
    async fn admit(&self, key: Digest, objects: Vec<Vec<u8>>) -> Result<(), Error>;

    /// Loads another engine from its WebAssembly code, which [`Scripts::guest`] of another build returned. Returns
    /// the digest of that engine.
    async fn admit_engine(&self, guest: Vec<u8>) -> Result<Digest, Error>;

    /// Runs the engine until the code completes, throws or waits for calls.
    async fn step(&self, step: Step) -> Result<Stepped, Error>;

    /// Loads `objects` as the step's heap unless the list is empty, and then runs the step. This call does the work
    /// of [`Scripts::admit`] and [`Scripts::step`] and saves a thread switch.
    async fn step_from(&self, objects: Arc<Vec<Vec<u8>>>, step: Step) -> Result<Stepped, Error> {
        if let (Some(heap), false) = (step.heap, objects.is_empty()) {
            self.admit(heap, objects.to_vec()).await?;
        }
        self.step(step).await
    }

    /// Prepares an engine instance for the next step on this heap, so that the step starts sooner. An implementation
    /// may do nothing.
    async fn prepare(&self, _key: Digest) -> Result<(), Error> {
        Ok(())
    }

    /// Returns one object with the whole content of a heap, which can be loaded without a parent.
    async fn standalone_object(&self, key: Digest) -> Result<Vec<u8>, Error>;

    /// Returns the global variables of a heap, each with a digest of its value, so that two heaps can be compared.
    async fn globals(&self, key: Digest) -> Result<Vec<Global>, Error>;
}

/// The header of a stored object: the fields that can be read without loading the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectHeader {
    /// The key of the heap that results from loading this object.
    pub key: Digest,
    /// The heap to which the object adds its changes. `None` means the engine's base image.
    pub parent: Option<Digest>,
    /// The size of the script's memory after the object is loaded.
    pub memory_bytes: u64,
}

/// One step to run: a piece of work on a heap, from its input until the code ends or waits.
#[derive(Debug, Clone)]
pub struct Step {
    /// The heap to start from. `None` starts with the base image of the engine.
    pub heap: Option<Digest>,
    /// The code to evaluate, or the answers to deliver.
    pub input: Input,
    pub limits: Limits,
    /// The headers and host functions that the code can use. They are passed anew to each step and never stored in a
    /// heap.
    pub surroundings: Arc<Surroundings>,
    /// The flag with which the caller can stop this step while it runs.
    pub stop: Stop,
    /// Pauses this step so that other steps can run. `None` if steps do not share processors.
    pub turns: Option<Arc<dyn Turns>>,
}

/// Shares the processors among running steps: a step pauses while other steps have their turn.
pub trait Turns: Send + Sync {
    /// Blocks the step's thread until the step may continue or `stopped` returns true. The engine calls this every
    /// few milliseconds. The returned duration is the time spent waiting; the engine adds it to the step's deadline.
    fn pause(&self, stopped: &dyn Fn() -> bool) -> Duration;
}

impl std::fmt::Debug for dyn Turns {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Turns")
    }
}

/// The input of a step.
#[derive(Debug, Clone)]
pub enum Input {
    /// Evaluates this code, which [`Scripts::to_javascript`] returned.
    Evaluate { code: String },
    /// Delivers the results of pending calls of earlier steps. Each result is paired with the id of its call.
    Settle { answers: Vec<(u64, Result<Value, Thrown>)> },
}

/// The limits of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The maximum size of the script's memory. A step that needs more fails with [`Error::Memory`].
    pub memory_bytes: u64,
    /// The maximum duration of this step in wall clock time. A longer step fails with [`Error::Deadline`].
    pub deadline_ms: u64,
    /// Console output beyond this size is counted and dropped.
    pub output_bytes: u64,
}

/// The parts of the code's environment that a heap does not store.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// The headers that the code reads as `mcp.headers`.
    pub headers: BTreeMap<String, String>,
    /// Whether the functions `plasm` and `plasm.plan` are defined.
    pub programs: bool,
    /// Whether the function `fetch` is defined.
    pub fetch: bool,
}

/// A flag that stops a running step. A stopped step returns [`Error::Stopped`] and leaves no heap.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// Requests the end of the step. All clones of this value share one flag.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns whether [`Stop::stop`] was called on any clone.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The result of a step.
#[derive(Debug, Clone)]
pub struct Stepped {
    /// The heap after the step.
    pub heap: Heap,
    pub outcome: Outcome,
    /// The step's console output, in order and not cut at line ends.
    pub console: String,
    /// The number of bytes of console output that were dropped because of [`Limits::output_bytes`].
    pub console_dropped: u64,
}

/// A heap in the form in which it is stored.
#[derive(Debug, Clone)]
pub struct Heap {
    pub key: Digest,
    /// The heap to which the object adds its changes. `None` means the engine's base image.
    pub parent: Option<Digest>,
    /// The digest of the engine that made the heap and can run it.
    pub engine: Digest,
    /// The stored object: the changes since `parent`.
    pub object: Arc<[u8]>,
    /// The size of the script's memory.
    pub memory_bytes: u64,
    /// The number of objects in the chain from the base image to this heap, this object included.
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
        /// Every call without an answer, including calls that earlier steps made.
        owed: Vec<HostCall>,
    },
}

/// The value of a completed script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Completion {
    /// A value that JSON can represent.
    Json(Value),
    /// A value that JSON cannot represent, rendered as text.
    Inspected(String),
    Undefined,
}

/// A call that the code waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostCall {
    /// The number by which [`Input::Settle`] names the call. The number is unique in the heap and in all later heaps
    /// of the chain.
    pub id: u64,
    pub call: Call,
}

/// The kinds of call that code can make.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Call {
    /// A timer, answered without a value `ms` milliseconds after the code requested the timer.
    Timer { ms: u64 },
    /// A program to run. The answer is the program's results.
    Plasm { program: String },
    /// A program to plan. The answer is that of the tool `plasm`.
    Plan { program: String },
    /// An HTTP request of `fetch`. The server checks the origin against its rules before it sends the request.
    Fetch { request: Value },
}

/// An exception that JavaScript code threw.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thrown {
    /// The name of the error's class, such as `TypeError`.
    pub name: String,
    pub message: String,
    /// The stack trace. Its line numbers are those of the caller's source text.
    pub stack: String,
}

/// A global variable of a heap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Global {
    pub name: String,
    /// The kind of the value: `number`, `function`, `class`, `object`, …
    pub kind: String,
    /// A short text form of the value.
    pub preview: String,
    /// The approximate number of bytes of all values that are reachable from the variable.
    pub size: u64,
    /// The digest of the value's content. Two variables with equal content have equal digests.
    pub digest: Digest,
}

/// Why an operation of the engine failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The heap must be loaded first: the caller calls [`Scripts::admit`] and retries.
    #[error("heap {0} is not in memory")]
    Absent(Digest),
    #[error("the stored objects of heap {0} are damaged; restore them from a backup")]
    Damaged(Digest),
    #[error("heap {heap} needs engine {engine}, which is not loaded in this process")]
    NoEngine { heap: Digest, engine: Digest },
    #[error("the stored JavaScript engine is not an engine that this version can run")]
    NotAnEngine,
    #[error("an answer was delivered to call {0}, but the heap has no such pending call")]
    NoCall(u64),
    #[error("the run used more than {0} bytes of memory")]
    Memory(u64),
    #[error("the run took longer than {0} ms")]
    Deadline(u64),
    #[error("the run was stopped")]
    Stopped,
    /// The engine already runs as many steps as it can. The caller can retry later.
    #[error("too many runs are waiting for the JavaScript engine")]
    Busy,
    #[error("the JavaScript engine failed")]
    Engine(#[source] crate::Cause),
}
