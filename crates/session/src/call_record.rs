//! Records of the calls that a session's trace lists, and the buffer of those that are not written yet.
//! Invariant: data only. A record that waits in the buffer can be lost; the work it describes is in rows of its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use access::Caller;
use base::{Digest, LogicalSessionId, RunId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longer programs are cut in a record.
const MAX_PROGRAM_CHARS: usize = 2_000;
/// Seeds, steps and receipts that a record lists.
pub(crate) const MAX_LISTED: usize = 50;
/// Longer answers are counted and not repeated in a record. An answer of a run is not longer unless the settings say so.
const MAX_ANSWER_CHARS: usize = 4_096;

/// One call of a session.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallRecord {
    /// The start of the call, in milliseconds since 1970.
    pub at: i64,
    /// The duration in milliseconds.
    pub ms: i64,
    /// The name of the tool, route or command.
    pub tool: String,
    /// `ok`, or the code of the failure.
    pub outcome: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Entities to teach, such as `demo:Ticket`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seeds: Vec<String>,
    /// The digest of the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub plan: Option<Digest>,
    /// The URI of the result or of the plan, such as `plasm://session/s0/r/3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
    /// Effects and their states, such as `demo:ticket_open done`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub receipts: Vec<String>,
    /// The run, if the outcome of one of its effects was not known. A reader sees how its receipts have settled, and not this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub unsettled: Option<RunId>,
    pub answer_chars: usize,
    /// The text that a model read, unless it was long. A reader of the trace counts its tokens.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
}

/// One step of a run in a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StepRecord {
    pub name: String,
    /// The duration in microseconds.
    pub us: u64,
    /// The number of rows, or null if the step failed.
    pub rows: Option<usize>,
}

impl CallRecord {
    /// Records the program, cut if it is long.
    #[must_use]
    pub fn with_program(self, program: &str) -> Self {
        Self { program: Some(cut_program(program)), ..self }
    }

    /// Records the text of the answer: always its length, and the text itself unless it is long.
    #[must_use]
    pub fn with_answer(self, text: &str) -> Self {
        let answer_chars = text.chars().count();
        let answer = if answer_chars <= MAX_ANSWER_CHARS { text.to_owned() } else { String::new() };
        Self { answer_chars, answer, ..self }
    }
}

pub(crate) fn cut_program(program: &str) -> String {
    program.chars().take(MAX_PROGRAM_CHARS).collect()
}

/// Receives a copy of each record, such as a collector of spans.
pub trait Exporter: Send + Sync {
    fn export(&self, session: LogicalSessionId, call: &CallRecord);
}

/// A record that is not written yet.
pub(crate) struct UnwrittenRecord {
    /// The caller, because slots lead to different sessions on different connections.
    pub caller: Caller,
    /// A slot or an id that leads to the session.
    pub reference: String,
    pub record: CallRecord,
}

/// The records of this process.
#[derive(Default)]
pub(crate) struct Traces {
    /// Records that the next write stores, oldest first.
    pub unwritten: Mutex<VecDeque<UnwrittenRecord>>,
    /// The time of the last call of each session that was called recently. The metric of live sessions counts them.
    pub live: Mutex<HashMap<LogicalSessionId, Timestamp>>,
    /// Set once at the start of a server whose settings name a collector.
    pub exporter: Mutex<Option<Arc<dyn Exporter>>>,
}
