//! Errors around JavaScript, outside of its runs. A failure inside a run is the run's own `error`.
//! Invariant: `code` is stable; each message says what to do.

use base::{Digest, ExecutionId};

/// Why a call around JavaScript failed.
#[derive(Debug, thiserror::Error)]
pub enum JsError {
    #[error("this server was built without a JavaScript engine")]
    NoScripts,
    #[error("`code` is empty; send the JavaScript to run")]
    NoCode,
    #[error("`code` has at most {max} bytes, this one has {found}")]
    CodeTooLong { max: usize, found: usize },
    #[error("`{0}` is not a heap key; a key is 64 lowercase hexadecimal characters")]
    BadHeap(String),
    #[error("no heap {0} in storage")]
    NoHeap(Digest),
    #[error("heap {0} is damaged; the session stays where it was")]
    DamagedHeap(Digest),
    #[error("heap {heap} needs engine {engine}, which is not in storage")]
    NoEngine { heap: Digest, engine: Digest },
    #[error("{what} {most} runs that have not ended; try again when one has")]
    Busy { what: &'static str, most: usize },
    #[error(
        "the heaps of this tenant take {used_mb} MB of the {most_mb} it has; remove sessions or tags that keep some and wait for \
         `tokamak gc`, or have `heaps_mb` raised in the settings"
    )]
    NoRoom { used_mb: u64, most_mb: u64 },
    #[error("no execution `{0}`; list_executions lists them")]
    NoExecution(String),
    #[error("execution {id} has ended: {state}")]
    Ended { id: ExecutionId, state: &'static str },
    #[error("bad tags: {0}")]
    BadTags(&'static str),
    #[error("`{name}` is from {least} to {most}, this one is {found}")]
    BadLimit { name: &'static str, least: u64, most: u64, found: u64 },
    #[error("give `{0}` or `{1}`, not both")]
    Either(&'static str, &'static str),
    #[error("no field `{found}`; one of: {known}")]
    BadField { found: String, known: String },
    #[error("`after` is the `next` of the page before, or is left out")]
    BadAfter,
    #[error("no session ID available (send X-MCP-Session-Id header)")]
    NoName,
    #[error("a session's name has from 1 to {0} characters, none of them a control character")]
    BadName(usize),
    #[error("the session's log has no entry {index}; it has {entries}")]
    NoEntry { index: u64, entries: u64 },
    #[error("the session has runs that have not ended; wait for them or cancel them")]
    UnderWay,
    #[error("there is a session with this intent already; choose another for the fork")]
    IntentTaken,
    #[error("this session is not a fork, or was promoted before")]
    NotFenced,
    /// A write of a fork that was not promoted.
    #[error("this session is a fork: its writes stop at the plan until promote_session")]
    Fenced { explained: String },
    #[error("not a valid heap file: {0}")]
    NotAHeap(&'static str),
    #[error("the JavaScript engine failed")]
    Engine(#[source] ports::scripts::Error),
}

impl JsError {
    /// Returns the stable code that clients branch on.
    pub fn code(&self) -> &'static str {
        match self {
            JsError::NoScripts => "no_javascript",
            JsError::NoCode | JsError::CodeTooLong { .. } => "bad_code",
            JsError::BadHeap(_) => "bad_heap",
            JsError::NoHeap(_) => "no_heap",
            JsError::DamagedHeap(_) => "damaged_heap",
            JsError::NoEngine { .. } => "no_engine",
            JsError::Busy { .. } => "busy",
            JsError::NoRoom { .. } => "no_room",
            JsError::NoExecution(_) => "no_execution",
            JsError::Ended { .. } => "ended",
            JsError::BadTags(_) => "bad_tags",
            JsError::BadLimit { .. } | JsError::Either(..) | JsError::BadField { .. } | JsError::BadAfter => {
                "bad_arguments"
            }
            JsError::NoName | JsError::BadName(_) => "no_session_name",
            JsError::NoEntry { .. } => "no_entry",
            JsError::UnderWay => "under_way",
            JsError::IntentTaken => "intent_taken",
            JsError::NotFenced => "not_fenced",
            JsError::Fenced { .. } => "fenced",
            JsError::NotAHeap(_) => "not_a_heap",
            JsError::Engine(_) => "engine",
        }
    }

    /// Returns whether the fault is of the server or its storage.
    pub fn is_fault(&self) -> bool {
        matches!(self, JsError::DamagedHeap(_) | JsError::NoEngine { .. } | JsError::Engine(_))
    }

    /// Returns whether the requested thing does not exist, or not for this caller.
    pub fn is_missing(&self) -> bool {
        matches!(self, JsError::NoHeap(_) | JsError::NoExecution(_) | JsError::NoEntry { .. })
    }

    /// Returns whether the request itself is wrong, so that repeating it fails again.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            JsError::NoCode
                | JsError::CodeTooLong { .. }
                | JsError::BadHeap(_)
                | JsError::BadTags(_)
                | JsError::BadLimit { .. }
                | JsError::Either(..)
                | JsError::BadField { .. }
                | JsError::BadAfter
                | JsError::NoName
                | JsError::BadName(_)
                | JsError::NotAHeap(_)
        )
    }
}
