//! For how long things are kept.
//! Invariant: nothing of a session in use goes because of its age; only what nobody has asked for in that time.

use serde::Deserialize;

/// In days, unless the name says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// A symbol space after its last use; the session itself, its intent and its numbers stay.
    pub execute_sessions: u32,
    /// A session without a symbol space, with all that it has left.
    pub sessions: u32,
    /// Results of runs, plans that were shown, page handles and operations that ended.
    pub artifacts: u32,
    /// Claims of runs: by which a plan or a request id that ran is known to have run.
    pub claims: u32,
    /// Connections that were not used, and what they were begun with.
    pub connections: u32,
    /// Calls of a session that its trace remembers.
    pub trace_calls: u32,
    /// Runs of JavaScript that ended, with their output.
    pub executions: u32,
    /// The heap of an entry of a session's log, or of a run outside of sessions. Heads and tags keep theirs.
    pub heaps: u32,
    /// Entries of a session's log, counted from the newest, that keep their heap.
    pub log_entries: u32,
    /// What nothing names is left alone for so many hours: it may be about to be named.
    pub grace_hours: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            execute_sessions: 30,
            sessions: 365,
            artifacts: 7,
            claims: 90,
            connections: 30,
            trace_calls: 1_000,
            executions: 30,
            heaps: 30,
            log_entries: 1_000,
            grace_hours: 24,
        }
    }
}
