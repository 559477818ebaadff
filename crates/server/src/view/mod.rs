//! Answers as typed JSON: the same fields over MCP, HTTP and on the command line.
//! Invariant: field names are the wire contract (docs/http.md, docs/heaps.md). The JSON of an answer has no value that the
//! text of the same answer contradicts.

mod plasm;
mod registry;
mod scripts;

pub use plasm::{ContextMeta, OperationState, PlanMeta, RunMeta, RunningMeta};
pub use registry::{ApiDescription, ApiSummary, DiscoveredRows, DiscoveryDecision};
pub use scripts::{
    ExecutionList, ExecutionView, ForkView, HeapTagMatches, HeapTags, LogEntries, LogEntryView, Rewound, RunJsView,
    SessionNames, Success,
};

use serde::Serialize;
use serde_json::Value;

/// Serializes an answer. All answers are plain data with text keys, so serialization cannot fail.
pub fn json(answer: &impl Serialize) -> Value {
    serde_json::to_value(answer).unwrap_or_default()
}
