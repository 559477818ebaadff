//! Retention periods.
//! Invariant: data of a session in use never expires by its age, but only if no call has used it for that long.

use serde::{Deserialize, Serialize};

/// Retention periods, in days unless the name says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// An execute session after its last use. The logical session, its intent and its numbers stay.
    pub execute_sessions: u32,
    /// A session without an execute session, with all of its data.
    pub sessions: u32,
    /// Results of runs, shown plans, page handles, and operations that ended.
    pub artifacts: u32,
    /// Claims, by which a plan or request id is known to have run.
    pub claims: u32,
    /// Unused connections with their `initialize` parameters.
    pub connections: u32,
    /// The number of calls that the trace of a session keeps.
    pub trace_calls: u32,
    /// Ended script runs with their output.
    pub executions: u32,
    /// The heap of a log entry, or of a run outside of sessions. Heads and tagged heaps are kept.
    pub heaps: u32,
    /// The number of newest log entries that keep their heap.
    pub log_entries: u32,
    /// The hours for which unreferenced data is kept, because a row that refers to it may be about to be written.
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
