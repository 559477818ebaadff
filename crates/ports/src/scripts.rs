//! JavaScript as a step function: an image and an input in; an image, an outcome and the calls it waits for out.
//! Invariant: a step makes no call and touches no store. `session` makes the calls owed and commits the image, so a run is
//! a continuation that any process can take up, not a thread that one of them holds.

use async_trait::async_trait;
use base::Digest;
use serde_json::Value;

#[async_trait]
pub trait Scripts: Send + Sync {
    async fn step(&self, step: Step) -> Result<Stepped, Error>;
}

#[derive(Debug, Clone)]
pub struct Step {
    /// The heap to stand on; `None` starts fresh.
    pub image: Option<Vec<u8>>,
    pub input: Input,
    pub memory_bytes: u64,
    pub deadline_ms: u64,
}

#[derive(Debug, Clone)]
pub enum Input {
    Evaluate {
        code: String,
    },
    /// Answers to calls that an earlier step owed, by call id.
    Settle {
        answers: Vec<(u64, Result<Value, Thrown>)>,
    },
}

#[derive(Debug, Clone)]
pub struct Stepped {
    pub image: Vec<u8>,
    pub key: Digest,
    pub outcome: Outcome,
    pub console: Vec<String>,
}

#[derive(Debug, Clone)]
pub enum Outcome {
    Completed(Value),
    Threw(Thrown),
    /// Waiting for the host; the stack is empty and the image is the whole program.
    Waiting {
        owed: Vec<HostCall>,
    },
}

#[derive(Debug, Clone)]
pub struct HostCall {
    pub id: u64,
    pub name: String,
    pub argument: Value,
}

#[derive(Debug, Clone)]
pub struct Thrown {
    pub name: String,
    pub message: String,
    pub stack: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the heap image is damaged")]
    Damaged,
    #[error("the heap needs engine {0}, which is not here")]
    NoEngine(Digest),
    #[error("the run used more than {0} bytes of memory")]
    Memory(u64),
    #[error("the run took longer than {0} ms")]
    Deadline(u64),
    #[error("the JavaScript engine failed")]
    Engine(#[source] crate::Cause),
}
