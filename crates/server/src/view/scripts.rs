//! Script runs, the logs of their sessions, and heaps.

use std::collections::BTreeMap;

use app::calls::{ListedExecutions, RunJsAnswer};
use base::Digest;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use session::{
    Completion, Execution, ExecutionState, ForkedSession, ListPage, LogEntry, PendingReview, Tags, UncaughtError,
};

/// A script run with its result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExecutionView {
    execution_id: String,
    status: ExecutionState,
    /// The value of the last expression. A value that JSON cannot hold is described as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<UncaughtError>,
    /// The key of the heap that the run produced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heap: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
    started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    /// Writes that wait for an approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    reviews: Vec<ReviewView>,
}

/// A write of a script that waits for an approval.
#[derive(Debug, Serialize, JsonSchema)]
struct ReviewView {
    /// Send it as `plan_commit_ref` of `plasm_run` to approve the plan.
    plan_commit_ref: String,
    plan: String,
}

impl ExecutionView {
    pub fn new(execution: &Execution) -> Self {
        let review =
            |review: &PendingReview| ReviewView { plan_commit_ref: review.commit.clone(), plan: review.plan.clone() };
        Self {
            execution_id: execution.id.to_string(),
            status: execution.state,
            result: match &execution.result {
                Some(Completion::Json(value)) => Some(value.clone()),
                Some(Completion::Inspected(text)) => Some(Value::String(text.clone())),
                Some(Completion::Undefined) | None => None,
            },
            error: execution.error.clone(),
            heap: execution.heap.map(|heap| heap.to_string()),
            warning: execution.warning.clone(),
            started_at: execution.started.map(|time| time.to_string()),
            completed_at: execution.ended.map(|time| time.to_string()),
            reviews: execution.reviews.iter().map(review).collect(),
        }
    }
}

/// The answer of `run_js`: the run with the beginning of its console output.
#[derive(Debug, Serialize, JsonSchema)]
pub struct RunJsView {
    #[serde(flatten)]
    execution: ExecutionView,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_has_more: Option<bool>,
    /// The offset from which `get_execution_output` reads on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_next_byte_offset: Option<u64>,
    /// Output bytes that were dropped beyond the limit of one run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dropped_bytes: Option<u64>,
}

impl RunJsView {
    pub fn new(answer: &RunJsAnswer) -> Self {
        let unfinished = answer.output.as_ref().filter(|page| page.has_more);
        let dropped = answer.execution.output_dropped;
        Self {
            execution: ExecutionView::new(&answer.execution),
            output: answer.output.as_ref().map(|page| page.data.clone()),
            output_has_more: unfinished.map(|_| true),
            output_next_byte_offset: unfinished.map(|page| page.next_byte_offset),
            dropped_bytes: (dropped > 0).then_some(dropped),
        }
    }
}

/// Script runs, the newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ExecutionList {
    executions: Vec<ExecutionSummary>,
    /// Present if there are older executions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    has_more: Option<bool>,
    /// The `after` of a request for the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// A script run without its result.
#[derive(Debug, Serialize, JsonSchema)]
struct ExecutionSummary {
    execution_id: String,
    status: ExecutionState,
    started_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    completed_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heap: Option<String>,
}

impl ExecutionList {
    pub fn new(listed: &ListedExecutions) -> Self {
        let summary = |execution: &Execution| ExecutionSummary {
            execution_id: execution.id.to_string(),
            status: execution.state,
            started_at: execution.started.map(|time| time.to_string()),
            completed_at: execution.ended.map(|time| time.to_string()),
            session: execution.session.clone(),
            heap: execution.heap.map(|heap| heap.to_string()),
        };
        let next = listed.next.map(|id| id.to_string());
        Self {
            executions: listed.executions.iter().map(summary).collect(),
            has_more: next.as_ref().map(|_| true),
            next,
        }
    }
}

/// The names of sessions that have a log of script runs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SessionNames {
    sessions: Vec<String>,
    #[serde(flatten)]
    rest: ListRest<String>,
}

impl SessionNames {
    pub fn new(page: ListPage<String>) -> Self {
        Self { rest: ListRest::of(&page, Clone::clone), sessions: page.rows }
    }
}

/// The fields of a list that has more rows than its answer. A whole list has none of them.
#[derive(Debug, Serialize, JsonSchema)]
struct ListRest<N> {
    /// Present if there are more rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    has_more: Option<bool>,
    /// The `after` of a request for the next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<N>,
    /// The number of rows of the whole list.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
}

impl<N> ListRest<N> {
    fn of<T>(page: &ListPage<T>, next: impl Fn(&String) -> N) -> Self {
        let next = page.next.as_ref().map(next);
        Self { has_more: next.as_ref().map(|_| true), total: next.as_ref().map(|_| page.total), next }
    }
}

/// The log of a session, the oldest entry first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LogEntries {
    entries: Vec<LogEntryView>,
    #[serde(flatten)]
    rest: ListRest<u64>,
}

impl LogEntries {
    /// Returns the entries with the chosen fields. No choice means all fields.
    pub fn new(page: &ListPage<LogEntry>, fields: &[String]) -> Self {
        // The service names an entry by its index.
        let rest = ListRest::of(page, |index| index.parse().unwrap_or_default());
        Self { entries: page.rows.iter().map(|entry| LogEntryView::with_fields(entry, fields)).collect(), rest }
    }
}

/// One entry of a session's log. A request may choose some of the fields.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct LogEntryView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<u64>,
    /// The key of the heap that the run started from. Null for a fresh heap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    input_heap: Option<Value>,
    /// The key of the heap that the run produced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_heap: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timestamp: Option<String>,
    /// For a rewind: the index of the entry whose heap became the head again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rewound_to: Option<u64>,
    /// The heap was deleted after its retention period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    heap_gone: Option<bool>,
}

impl LogEntryView {
    /// Returns the entry with all fields.
    pub fn whole(entry: &LogEntry) -> Self {
        Self::with_fields(entry, &[])
    }

    /// Returns the entry with the chosen fields. No choice means all fields.
    pub fn with_fields(entry: &LogEntry, fields: &[String]) -> Self {
        let chosen = |name: &str| fields.is_empty() || fields.iter().any(|field| field == name);
        Self {
            index: chosen("index").then_some(entry.index),
            // An option inside an option: a field that was not chosen is left out, and a run without an input heap has null.
            input_heap: chosen("input_heap").then(|| super::json(&entry.input_heap)),
            output_heap: chosen("output_heap").then(|| entry.output_heap.to_string()),
            code: chosen("code").then(|| entry.code.clone()),
            timestamp: chosen("timestamp").then(|| entry.timestamp.to_string()),
            rewound_to: entry.rewound_to.filter(|_| fields.is_empty()),
            heap_gone: (entry.gone && chosen("output_heap")).then_some(true),
        }
    }
}

/// The entry to which a session was rewound.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Rewound {
    pub entry: LogEntryView,
}

/// A new fork. Its writes stop at the plan until it is promoted.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ForkView {
    logical_session_ref: String,
    logical_session_id: String,
    /// The key of the heap that the next script of the fork starts from.
    heap: Option<String>,
    /// Always true.
    fenced: bool,
}

impl ForkView {
    pub fn new(forked: &ForkedSession) -> Self {
        Self {
            logical_session_ref: forked.slot.to_string(),
            logical_session_id: forked.session.to_string(),
            heap: forked.head.map(|heap| heap.to_string()),
            fenced: true,
        }
    }
}

/// The tags of one heap.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HeapTags {
    pub tags: BTreeMap<String, String>,
}

/// The heaps that have the requested tags.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HeapTagMatches {
    results: Vec<TaggedHeap>,
    #[serde(flatten)]
    rest: ListRest<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TaggedHeap {
    heap: String,
    tags: BTreeMap<String, String>,
}

impl HeapTagMatches {
    pub fn new(page: ListPage<(Digest, Tags)>) -> Self {
        let rest = ListRest::of(&page, Clone::clone);
        let mut results = Vec::new();
        for (heap, tags) in page.rows {
            results.push(TaggedHeap { heap: heap.to_string(), tags });
        }
        Self { results, rest }
    }
}

/// The answer of a call that only changes something.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Success {
    ok: bool,
    /// Present if `ok` is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Success {
    /// Returns the answer for a change that was made.
    pub fn yes() -> Self {
        Self { ok: true, error: None }
    }

    /// Returns the answer for a change that was refused.
    pub fn no(error: String) -> Self {
        Self { ok: false, error: Some(error) }
    }
}
