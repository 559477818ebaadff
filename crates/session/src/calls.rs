//! Calls of sessions, and those that are not written yet.
//! Invariant: data only; what waits here can be lost.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use base::{Digest, LogicalSessionId, Timestamp};
use serde::{Deserialize, Serialize};

use access::Caller;

/// One call of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// In milliseconds since 1970.
    pub at: i64,
    pub ms: i64,
    pub tool: String,
    /// `ok`, or the code of what went wrong.
    pub outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// `demo:Ticket`, where it asked to be taught.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Digest>,
    /// `plasm://session/s0/r/3`, or the plan's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<CallStep>,
    /// `demo:ticket_open done`
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<String>,
    pub answer_chars: usize,
    /// What a model read, where it is not too long to be kept twice: whoever shows the trace counts its tokens.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallStep {
    pub name: String,
    pub us: u64,
    /// None where it failed.
    pub rows: Option<usize>,
}

/// Where calls go beside the store, such as a collector of spans.
pub trait Exporter: Send + Sync {
    fn export(&self, session: LogicalSessionId, call: &Call);
}

/// A call that is not written yet.
pub(crate) struct Waiting {
    pub caller: Caller,
    /// Slot, id or nothing that leads to a session.
    pub reference: String,
    pub call: Call,
}

#[derive(Default)]
pub(crate) struct Traces {
    pub waiting: Mutex<VecDeque<Waiting>>,
    /// When each session was last called, for those of the last minutes.
    pub live: Mutex<HashMap<LogicalSessionId, Timestamp>>,
    pub exporter: Mutex<Option<Arc<dyn Exporter>>>,
}
