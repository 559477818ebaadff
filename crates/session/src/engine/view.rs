//! Requests and answers around JavaScript.
//! Invariant: data only; every answer describes durable state.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use base::{Digest, ExecutionId, Timestamp};
use ports::scripts::Completion;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tags of a heap.
pub type Tags = BTreeMap<String, String>;

/// Receives the id of the run that a call started, so that a caller that leaves early can cancel the run.
pub type ExecutionIdCell = Arc<OnceLock<ExecutionId>>;

/// A script to run.
#[derive(Debug, Clone, Default)]
pub struct RunJsRequest {
    pub code: String,
    /// A heap key. `""` asks for a fresh heap.
    pub heap: Option<String>,
    pub session: SessionTarget,
    /// Tags for the heap that the run produces.
    pub tags: Option<Tags>,
    /// Fail if the heap does not exist, instead of starting fresh.
    pub require_heap: bool,
    pub wait_ms: Option<u64>,
    pub timeout_ms: Option<u64>,
    pub memory_mb: Option<u64>,
    /// The headers that the code reads as `mcp.headers`.
    pub headers: BTreeMap<String, String>,
    /// Filled in before the run can start.
    pub id_cell: Option<ExecutionIdCell>,
}

/// The session that a call is about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SessionTarget {
    #[default]
    None,
    /// A slot or a canonical id.
    Logical(String),
    /// The name in a connection's header.
    Named(String),
}

/// The state of a script run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionState {
    Queued,
    Running,
    /// The run requested a write that waits for an approval.
    WaitingReview,
    Completed,
    Failed,
    Cancelled,
    TimedOut,
}

impl ExecutionState {
    /// Whether the state never changes again.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            ExecutionState::Completed | ExecutionState::Failed | ExecutionState::Cancelled | ExecutionState::TimedOut
        )
    }

    pub fn as_str(self) -> &'static str {
        match self {
            ExecutionState::Queued => "queued",
            ExecutionState::Running => "running",
            ExecutionState::WaitingReview => "waiting_review",
            ExecutionState::Completed => "completed",
            ExecutionState::Failed => "failed",
            ExecutionState::Cancelled => "cancelled",
            ExecutionState::TimedOut => "timed_out",
        }
    }
}

impl fmt::Display for ExecutionState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One script run, as its caller sees it.
#[derive(Debug, Clone)]
pub struct Execution {
    pub id: ExecutionId,
    pub state: ExecutionState,
    pub result: Option<Completion>,
    pub error: Option<UncaughtError>,
    /// The heap that a completed run produced.
    pub heap: Option<Digest>,
    pub input_heap: Option<Digest>,
    pub warning: Option<String>,
    /// The name of its session.
    pub session: Option<String>,
    pub accepted: Timestamp,
    pub started: Option<Timestamp>,
    pub ended: Option<Timestamp>,
    /// Writes that wait for an approval.
    pub reviews: Vec<PendingReview>,
    pub output_bytes: u64,
    pub output_lines: u64,
    /// Output bytes that were dropped beyond the limit of one run.
    pub output_dropped: u64,
    pub code: String,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UncaughtError {
    pub name: String,
    pub message: String,
    /// The stack trace, in the line numbers of the caller's source.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stack: String,
}

/// A write that waits for an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingReview {
    /// The plan commit, such as `pc0`.
    pub commit: String,
    /// The plan as text.
    pub plan: String,
}

/// The part of an execution's output to read.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutputRequest {
    pub line_offset: Option<u64>,
    pub line_limit: Option<u64>,
    pub byte_offset: Option<u64>,
    pub byte_limit: Option<u64>,
}

/// A part of an execution's output, and where the next part begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OutputPage {
    pub data: String,
    pub next_line_offset: u64,
    pub next_byte_offset: u64,
    pub total_lines: u64,
    pub total_bytes: u64,
    /// Output bytes that were dropped beyond the limit of one run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped_bytes: u64,
    pub has_more: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// One entry of a session's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    pub index: u64,
    pub input_heap: Option<Digest>,
    pub output_heap: Digest,
    pub code: String,
    pub timestamp: Timestamp,
    /// For a rewind, the entry whose heap became the head again.
    pub rewound_to: Option<u64>,
    /// The retention period of the entry's heap is over.
    pub gone: bool,
}

/// The properties of a heap, known without loading it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeapInfo {
    /// The key of the heap.
    #[schemars(with = "String")]
    pub heap: Digest,
    /// The size of the heap's memory.
    pub memory_bytes: u64,
    /// The size of the object that is stored for it.
    pub stored_bytes: u64,
    /// The engine that made the heap and runs it.
    #[schemars(with = "String")]
    pub engine: Digest,
    pub created: String,
    /// The heaps it was derived from by runs, nearest first, as far as recorded.
    #[schemars(with = "Vec<String>")]
    pub parents: Vec<Digest>,
    /// The heaps whose objects a reader needs, nearest first.
    #[schemars(with = "Vec<String>")]
    pub stored_against: Vec<Digest>,
    pub tags: Tags,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

/// The differences between two heaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HeapDiff {
    pub added: Vec<GlobalSummary>,
    pub removed: Vec<GlobalSummary>,
    pub changed: Vec<ChangedGlobal>,
    pub unchanged: usize,
    pub memory_bytes: [u64; 2],
    /// The number of further globals that differ, for which the answer has no room.
    #[serde(default, skip_serializing_if = "is_zero_count")]
    pub omitted: usize,
}

fn is_zero_count(count: &usize) -> bool {
    *count == 0
}

/// A global of a heap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GlobalSummary {
    pub name: String,
    pub kind: String,
    pub preview: String,
    pub size: u64,
}

/// A global that differs between two heaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChangedGlobal {
    pub name: String,
    pub before: GlobalSummary,
    pub after: GlobalSummary,
}
