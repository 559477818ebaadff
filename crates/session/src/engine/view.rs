//! What a call around JavaScript asks for, and what its caller sees.
//! Invariant: data only; what is here is durable already.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use base::{Digest, ExecutionId, Timestamp};
use ports::scripts::Completion;
use serde::{Deserialize, Serialize};

pub type Tags = BTreeMap<String, String>;

/// Which execution a call became, for who gives it up before it is answered.
pub type Became = Arc<OnceLock<ExecutionId>>;

#[derive(Debug, Clone, Default)]
pub struct RunJs {
    pub code: String,
    /// A key; `""` asks for a fresh heap.
    pub heap: Option<String>,
    pub session: InSession,
    /// Of the heap that the run leaves.
    pub tags: Option<Tags>,
    /// A heap that is not there is an error, not a fresh start.
    pub require_heap: bool,
    pub wait_ms: Option<u64>,
    pub timeout_ms: Option<u64>,
    pub memory_mb: Option<u64>,
    /// What the code reads as `mcp.headers`.
    pub headers: BTreeMap<String, String>,
    /// Told before the run can begin.
    pub became: Option<Became>,
}

/// Which session a call is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum InSession {
    #[default]
    None,
    /// A slot or a canonical id.
    Logical(String),
    /// As the caller's connection is named.
    Named(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Queued,
    Running,
    /// It asked for a write, which waits for a commit from outside.
    WaitingReview,
    Completed,
    Failed,
    Cancelled,
    TimedOut,
}

impl State {
    /// It never changes again.
    pub fn is_final(self) -> bool {
        matches!(self, State::Completed | State::Failed | State::Cancelled | State::TimedOut)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Running => "running",
            State::WaitingReview => "waiting_review",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
            State::TimedOut => "timed_out",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One run of JavaScript, as its caller sees it.
#[derive(Debug, Clone)]
pub struct Execution {
    pub id: ExecutionId,
    pub state: State,
    pub result: Option<Completion>,
    pub error: Option<Uncaught>,
    /// What it left, where it completed.
    pub heap: Option<Digest>,
    pub input_heap: Option<Digest>,
    pub warning: Option<String>,
    /// The name of its session.
    pub session: Option<String>,
    pub accepted: Timestamp,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// Writes that wait for a commit from outside.
    pub reviews: Vec<Review>,
    pub output_bytes: u64,
    pub output_lines: u64,
    /// Bytes beyond what is kept of one run.
    pub output_dropped: u64,
    pub code: String,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Uncaught {
    pub name: String,
    pub message: String,
    /// In the caller's own line numbers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stack: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Review {
    /// `pc0`
    pub commit: String,
    pub plan: String,
}

/// Which part of an execution's output is wanted.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutputRequest {
    pub line_offset: Option<u64>,
    pub line_limit: Option<u64>,
    pub byte_offset: Option<u64>,
    pub byte_limit: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutputPage {
    pub data: String,
    pub next_line_offset: u64,
    pub next_byte_offset: u64,
    pub total_lines: u64,
    pub total_bytes: u64,
    /// Bytes beyond what is kept of one run.
    #[serde(skip_serializing_if = "is_zero")]
    pub dropped_bytes: u64,
    pub has_more: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One entry of a session's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub index: u64,
    pub input_heap: Option<Digest>,
    pub output_heap: Digest,
    pub code: String,
    pub timestamp: Timestamp,
    /// The entry whose heap this one went back to.
    pub rewound_to: Option<u64>,
    /// Its heap is kept no longer.
    pub gone: bool,
}

/// What is known of a heap without opening it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeapInfo {
    pub heap: Digest,
    /// Of the memory it stands for.
    pub memory_bytes: u64,
    /// Of the object that is stored for it.
    pub stored_bytes: u64,
    pub engine: Digest,
    pub created: String,
    /// The heaps it came from by runs, nearest first, as far as that was recorded.
    pub parents: Vec<Digest>,
    /// The heaps whose objects a reader of it needs, nearest first.
    pub stored_against: Vec<Digest>,
    pub tags: Tags,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

/// What two heaps differ in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HeapDiff {
    pub added: Vec<Named>,
    pub removed: Vec<Named>,
    pub changed: Vec<Changed>,
    pub unchanged: usize,
    pub memory_bytes: [u64; 2],
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    pub name: String,
    pub kind: String,
    pub preview: String,
    pub size: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    pub name: String,
    pub before: Named,
    pub after: Named,
}
