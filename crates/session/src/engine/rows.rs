//! The rows of JavaScript, as stored.
//! Invariant: a row is JSON that this version reads back; a field that is added later has a default. A heap's row is its JSON,
//! a line feed and its object, so that small objects are in the transaction that names them.

use std::collections::BTreeMap;

use base::{Digest, ExecutionId, InstanceId, LogicalSessionId, Principal, Slot, TenantId, Timestamp};
use ports::scripts::{Completion, HostCall, Thrown};
use ports::store::{Key, Table};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::view::{State, Tags, Uncaught};
use crate::error::Error;
use crate::rows;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ExecutionRow {
    /// Who asked for it: what it calls, it calls as this one.
    pub principal: Principal,
    pub session: Option<SessionName>,
    /// The caller's slot for its logical session.
    #[serde(default)]
    pub slot: Option<Slot>,
    pub code: String,
    pub from: From,
    /// What it stands on; known when it starts.
    #[serde(default)]
    pub input_heap: Option<Digest>,
    #[serde(default)]
    pub warning: Option<String>,
    #[serde(default)]
    pub tags: Option<Tags>,
    pub timeout_ms: u64,
    pub memory_bytes: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    pub state: State,
    pub accepted: Timestamp,
    #[serde(default)]
    pub started: Option<Timestamp>,
    #[serde(default)]
    pub ended: Option<Timestamp>,
    /// The process that runs it; another one takes it over only when that one is dead.
    pub owner: InstanceId,
    #[serde(default)]
    pub parked: Option<Parked>,
    #[serde(default)]
    pub result: Option<Completion>,
    #[serde(default)]
    pub error: Option<Uncaught>,
    #[serde(default)]
    pub heap: Option<Digest>,
    #[serde(default)]
    pub output: Printed,
}

/// What a run starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum From {
    Fresh,
    Heap(Digest),
    /// Of its session, when its turn comes.
    Head,
}

/// A run that waits, as a continuation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Parked {
    pub heap: Digest,
    pub owed: Vec<Owed>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Owed {
    pub call: HostCall,
    /// Of a timer.
    #[serde(default)]
    pub due: Option<Timestamp>,
    /// Of a write: the commit that stands for it, and its plan.
    #[serde(default)]
    pub review: Option<(String, String)>,
    /// An effect that may have left.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub begun: bool,
    /// Of an effect: kept before it is delivered.
    #[serde(default)]
    pub answer: Option<Answer>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Value(Value),
    Threw(Thrown),
}

impl std::convert::From<Answer> for Result<Value, Thrown> {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Value(value) => Ok(value),
            Answer::Threw(thrown) => Err(thrown),
        }
    }
}

impl std::convert::From<Result<Value, Thrown>> for Answer {
    fn from(answer: Result<Value, Thrown>) -> Self {
        answer.map_or_else(Answer::Threw, Answer::Value)
    }
}

/// How much console output there is, and where its pieces begin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Printed {
    pub bytes: u64,
    /// Line feeds.
    pub ends: u64,
    pub dropped: u64,
    /// It does not end with a line feed.
    pub open: bool,
    /// Of each piece: the bytes and the line feeds before it.
    pub pieces: Vec<(u64, u64)>,
}

impl Printed {
    pub fn lines(&self) -> u64 {
        self.ends + u64::from(self.open)
    }
}

/// A session with JavaScript: a logical one, or one that a connection is named by.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionName {
    Logical(LogicalSessionId),
    Named(String),
}

impl SessionName {
    /// A name comes from outside, so it is hashed, and can never be a logical session's id.
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

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct JsSessionRow {
    pub name: SessionName,
    #[serde(default)]
    pub head: Option<Digest>,
    /// How many entries its log has.
    #[serde(default)]
    pub entries: u64,
    /// Executions that have not ended, in the order they were accepted: the first one runs.
    #[serde(default)]
    pub waiting: Vec<ExecutionId>,
    /// The session it was forked from, and how many entries that one had then.
    #[serde(default)]
    pub forked: Option<(SessionName, u64)>,
    /// When something was last asked of it that changed it.
    #[serde(default = "rows::never")]
    pub used: Timestamp,
}

impl JsSessionRow {
    pub fn new(name: SessionName) -> Self {
        Self { name, head: None, entries: 0, waiting: Vec::new(), forked: None, used: rows::never() }
    }
}

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
    /// Its heap is kept no longer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeapRow {
    /// What its object is packed against.
    pub parent: Option<Digest>,
    /// What the run stood on that first left it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<Digest>,
    pub engine: Digest,
    pub memory_bytes: u64,
    /// How many objects a reader needs, this one included.
    pub links: u32,
    pub created: Timestamp,
    /// Where the object is not in the row.
    #[serde(default)]
    pub blob: Option<Digest>,
    pub stored_bytes: u64,
    /// Since when nothing leads to it: it goes unless someone saves it. What stands on it is condemned, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condemned: Option<Timestamp>,
    /// Someone keeps it, whatever leads to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

impl ExecutionRow {
    /// Whether no heap is in storage that its next one comes of.
    pub fn stands_on_nothing(&self) -> bool {
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

    /// The row, and the object where it is in it.
    pub fn read<'a>(name: &str, bytes: &'a [u8]) -> Result<(Self, &'a [u8]), Error> {
        let at = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| Error::Damaged(name.to_owned()))?;
        Ok((rows::read(name, &bytes[..at])?, &bytes[at + 1..]))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct GuestRow {
    pub blob: Digest,
    /// When someone last said that it is needed.
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

/// What the heaps of a tenant take, about.
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
