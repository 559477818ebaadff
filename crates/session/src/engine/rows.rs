//! The stored rows of JavaScript.
//! Invariant: a row is JSON that every later version can read; a field that is added later has a default. A heap's
//! row is its JSON, a line feed and its object, so that a small object is in the same transaction as the row that
//! names it.

use std::collections::BTreeMap;

use base::{Digest, ExecutionId, InstanceId, LogicalSessionId, Principal, Slot, TenantId, Timestamp};
use ports::scripts::{Completion, HostCall, Thrown};
use ports::store::{Key, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::view::{ExecutionState, Tags, UncaughtError};
use crate::error::Error;
use crate::rows;

/// One script run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ExecutionRow {
    /// The principal that started the run. Calls of the run are made on its behalf.
    pub principal: Principal,
    pub session: Option<SessionName>,
    /// The caller's slot for its logical session.
    #[serde(default)]
    pub slot: Option<Slot>,
    pub code: String,
    pub from: StartFrom,
    /// The heap that the run started from, known once it has started.
    #[serde(default)]
    pub input_heap: Option<Digest>,
    #[serde(default)]
    pub warning: Option<String>,
    #[serde(default)]
    pub tags: Option<Tags>,
    /// The limit for the whole run, without the time it waited for processors.
    pub timeout_ms: u64,
    pub memory_bytes: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The state, which never changes again once it is final.
    pub state: ExecutionState,
    pub accepted: Timestamp,
    #[serde(default)]
    pub started: Option<Timestamp>,
    #[serde(default)]
    pub ended: Option<Timestamp>,
    /// The process that drives the run. Another process may take over only if this one is dead.
    pub owner: InstanceId,
    /// The continuation, while the run waits for calls.
    #[serde(default)]
    pub parked: Option<Parked>,
    #[serde(default)]
    pub result: Option<Completion>,
    #[serde(default)]
    pub error: Option<UncaughtError>,
    #[serde(default)]
    pub heap: Option<Digest>,
    #[serde(default)]
    pub output: OutputIndex,
}

/// The starting point of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartFrom {
    Fresh,
    Heap(Digest),
    /// The session's head when the run's turn comes.
    Head,
}

/// A run that waits for calls: its heap and the pending calls.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parked {
    pub heap: Digest,
    pub owed: Vec<PendingCall>,
}

/// A call that a parked run waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PendingCall {
    pub call: HostCall,
    /// When a timer is due.
    #[serde(default)]
    pub due: Option<Timestamp>,
    /// The plan commit of a write that needs a review, and the text of its plan.
    #[serde(default)]
    pub review: Option<(String, String)>,
    /// A request with an effect that may have left. Only rows of older versions say so here; receipts say it now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begun: bool,
    /// The answer to an effect. It is stored before the code sees it.
    #[serde(default)]
    pub answer: Option<CallAnswer>,
}

/// The answer to a call: a value or an exception.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallAnswer {
    Value(Value),
    Threw(Thrown),
}

impl std::convert::From<CallAnswer> for Result<Value, Thrown> {
    fn from(answer: CallAnswer) -> Self {
        match answer {
            CallAnswer::Value(value) => Ok(value),
            CallAnswer::Threw(thrown) => Err(thrown),
        }
    }
}

impl std::convert::From<Result<Value, Thrown>> for CallAnswer {
    fn from(answer: Result<Value, Thrown>) -> Self {
        answer.map_or_else(CallAnswer::Threw, CallAnswer::Value)
    }
}

/// The size of the console output, and where its pieces begin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OutputIndex {
    pub bytes: u64,
    /// The number of line feeds.
    pub ends: u64,
    pub dropped: u64,
    /// The last line has no line feed yet.
    pub open: bool,
    /// For each piece, the bytes and the line feeds before it.
    pub pieces: Vec<(u64, u64)>,
}

impl OutputIndex {
    pub fn lines(&self) -> u64 {
        self.ends + u64::from(self.open)
    }
}

/// A session with JavaScript: a logical session, or a session named by a connection's header.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionName {
    Logical(LogicalSessionId),
    Named(String),
}

impl SessionName {
    /// Returns the id of the session's row. A name comes from outside, so it is hashed and cannot equal a logical
    /// session's id.
    pub fn row_id(&self) -> String {
        match self {
            SessionName::Logical(id) => format!("l/{id}"),
            SessionName::Named(name) => format!("n/{}", Digest::of(name.as_bytes())),
        }
    }

    pub fn shown(&self) -> String {
        match self {
            SessionName::Logical(id) => id.to_string(),
            SessionName::Named(name) => name.clone(),
        }
    }
}

/// The state of a session with JavaScript.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JsSessionRow {
    pub name: SessionName,
    /// The heap that the session's next run starts from.
    #[serde(default)]
    pub head: Option<Digest>,
    /// The number of entries in its log.
    #[serde(default)]
    pub entries: u64,
    /// The runs that have not ended, in order of acceptance. The first one runs.
    #[serde(default)]
    pub waiting: Vec<ExecutionId>,
    /// The session it was forked from, and the number of log entries that session had then.
    #[serde(default)]
    pub forked: Option<(SessionName, u64)>,
    /// When a call last changed the session.
    #[serde(default = "rows::never")]
    pub used: Timestamp,
}

impl JsSessionRow {
    pub fn new(name: SessionName) -> Self {
        Self { name, head: None, entries: 0, waiting: Vec::new(), forked: None, used: rows::never() }
    }
}

/// One entry of a session's log: a completed run or a rewind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct LogRow {
    pub input_heap: Option<Digest>,
    pub output_heap: Digest,
    pub code: String,
    pub timestamp: Timestamp,
    #[serde(default)]
    pub execution: Option<ExecutionId>,
    #[serde(default)]
    pub rewound_to: Option<u64>,
    /// The retention period of the entry's heap is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

/// One stored heap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeapRow {
    /// The heap that the stored object is a difference to.
    pub parent: Option<Digest>,
    /// The heap that the run which first produced this heap had started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    pub engine: Digest,
    pub memory_bytes: u64,
    /// The number of objects that a reader needs, this one included.
    pub links: u32,
    pub created: Timestamp,
    /// The blob of the object, if the object is not in the row.
    #[serde(default)]
    pub blob: Option<Digest>,
    pub stored_bytes: u64,
    /// Since when nothing refers to the heap. It is deleted after the grace period unless it is retained again. Heaps
    /// based on it are condemned too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condemned: Option<Timestamp>,
    /// A caller pinned the heap, so it is kept even if nothing refers to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

impl ExecutionRow {
    /// Whether the run has no stored heap yet, so that its engine may not be stored either.
    pub fn has_no_stored_heap(&self) -> bool {
        self.parked.is_none() && self.input_heap.is_none()
    }
}

impl HeapRow {
    pub fn write(&self, object: &[u8]) -> Vec<u8> {
        let mut bytes = rows::write(self);
        bytes.push(b'\n');
        if self.blob.is_none() {
            bytes.extend_from_slice(object);
        }
        bytes
    }

    /// Splits stored bytes into the row and the object, which is empty if it is in a blob.
    pub fn read<'a>(name: &str, bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        let at = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| Error::Damaged(name.to_owned()))?;
        Ok((rows::read(name, &bytes[..at])?, &bytes[at + 1..]))
    }
}

/// The program of an engine that stored heaps need.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GuestRow {
    pub blob: Digest,
    /// When the engine was last known to be needed.
    #[serde(default = "rows::never")]
    pub kept: Timestamp,
}

pub(crate) fn execution_key(tenant: &TenantId, id: ExecutionId) -> Key {
    Key::new(tenant, Table::Execution, id.to_newest_first_key())
}

pub(crate) fn open_key(tenant: &TenantId, id: ExecutionId) -> Key {
    Key::new(tenant, Table::OpenExecution, id.to_newest_first_key())
}

pub(crate) fn output_key(tenant: &TenantId, id: ExecutionId, piece: usize) -> Key {
    Key::new(tenant, Table::ExecutionOutput, format!("{}/{piece:06}", id.to_newest_first_key()))
}

pub(crate) fn session_key(tenant: &TenantId, name: &SessionName) -> Key {
    Key::new(tenant, Table::JsSession, name.row_id())
}

pub(crate) fn log_key(tenant: &TenantId, name: &SessionName, index: u64) -> Key {
    Key::new(tenant, Table::SessionLog, format!("{}/{index:010}", name.row_id()))
}

pub(crate) fn heap_key(tenant: &TenantId, heap: Digest) -> Key {
    Key::new(tenant, Table::Heap, heap.to_string())
}

pub(crate) fn tags_key(tenant: &TenantId, heap: Digest) -> Key {
    Key::new(tenant, Table::HeapTags, heap.to_string())
}

/// The approximate storage that a tenant's heaps use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeapUseRow {
    pub bytes: u64,
}

pub(crate) fn heap_use_key(tenant: &TenantId) -> Key {
    Key::new(tenant, Table::HeapUse, "all")
}

pub(crate) fn guest_key(tenant: &TenantId, engine: Digest) -> Key {
    Key::new(tenant, Table::Guest, engine.to_string())
}
