//! The limits on the input and the work of one server, with their defaults.
//! Invariant: each limit is checked where the input enters the server, before the server spends memory or time on the
//! input.

use serde::{Deserialize, Serialize};

/// The limits of one server. The settings can lower or raise each limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The maximum length of one program's text, in bytes.
    pub program_bytes: usize,
    /// The maximum number of statements in one program.
    pub statements: usize,
    /// The maximum number of steps in one program: reads, relations, projections, limits and so on.
    pub steps: usize,
    /// The maximum number of results that one program may return.
    pub returns: usize,
    /// The maximum nesting depth of the brackets in a program, and of arrays and objects in an answer.
    pub nesting: usize,
    /// The maximum length of one session's intent, in bytes.
    pub intent_bytes: usize,
    /// The maximum number of seeds in one call that opens a session.
    pub seeds: usize,
    /// The maximum number of rows that one list read may return, also if `.limit` asks for more.
    pub rows: usize,
    /// The maximum number of pages that one list read may request.
    pub pages: usize,
    /// The maximum size of one answer's body after decompression.
    pub response_bytes: usize,
    /// The maximum duration of one attempt of a request. A retry is a new attempt.
    pub request_timeout_ms: u64,
    /// The maximum number of simultaneous requests of all runs of one session.
    pub calls_per_session: usize,
    /// The maximum number of simultaneous requests to one origin.
    pub calls_per_origin: usize,
    /// The maximum number of calls of a step that makes one call for each input row.
    pub fan_out: usize,
    /// The maximum length of a template in a program, in bytes.
    pub template_bytes: usize,
    /// The maximum length of the text that one rendering of a template produces.
    pub template_output_bytes: usize,
    /// The maximum number of instructions of the template engine for one rendering.
    pub template_fuel: u64,
    /// The time that a call waits for the result of its run. After this time the call answers with a handle.
    pub inline_ms: u64,
    /// The maximum size of a result that is stored as a row, in one transaction with its run. A larger result is
    /// stored as a blob.
    pub row_bytes: usize,
    /// The maximum number of characters of a result that the model sees. Later rows are left out.
    pub shown_chars: usize,
    /// The maximum number of characters of a plan in an answer. A longer plan says what is missing and where it can be read whole.
    pub plan_chars: usize,
    /// The maximum number of rows in the answer of a list.
    pub list_rows: usize,
    /// The maximum size of the rows in the answer of a list, as JSON. A list has at least one row, however large.
    pub list_bytes: usize,
    /// The maximum number of sessions that one transport session (`Mcp-Session-Id`) may open.
    pub slots_per_connection: usize,
    /// The maximum number of runs of one tenant that no caller waits for.
    pub detached_runs: usize,
    /// The maximum number of runs of all tenants that no caller waits for.
    pub detached_runs_of_all: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            program_bytes: 64 * 1024,
            statements: 500,
            steps: 500,
            returns: 50,
            nesting: 64,
            intent_bytes: 4 * 1024,
            seeds: 256,
            rows: 1_000,
            pages: 20,
            response_bytes: 32 * 1024 * 1024,
            request_timeout_ms: 30_000,
            calls_per_session: 16,
            calls_per_origin: 8,
            fan_out: 50,
            template_bytes: 64 * 1024,
            template_output_bytes: 1024 * 1024,
            template_fuel: 300_000,
            inline_ms: 45_000,
            row_bytes: 64 * 1024,
            shown_chars: 4_000,
            plan_chars: 40_000,
            list_rows: 1_000,
            list_bytes: 4_000_000,
            slots_per_connection: 1_000,
            detached_runs: 256,
            detached_runs_of_all: 1_024,
        }
    }
}

/// The limits on the connections of one server, over HTTP and stdio. The settings can lower or raise each limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConnectionLimits {
    /// The maximum number of simultaneous connections. If more than half of them are in use, the oldest idle ones are closed.
    pub places: usize,
    /// The number of places that only health checks and requests with a valid key can keep.
    pub reserved: usize,
    /// The maximum number of simultaneous connections from one address.
    pub per_address: usize,
    /// The time after which an idle connection is closed. Each answer announces it in `Keep-Alive`.
    pub idle_seconds: u64,
    /// The time within which the head of a request must arrive.
    pub head_seconds: u64,
    /// The time within which the body of a request must arrive.
    pub body_seconds: u64,
    /// The time after which a connection is closed whose client takes nothing, or almost nothing, of its answer.
    pub write_seconds: u64,
    /// The maximum size of one answer, in MB.
    pub answer_mb: usize,
    /// The maximum size of all answers together that wait for their clients to read them, in MB.
    pub answers_mb: usize,
    /// The maximum number of requests under way in one transport session or on standard input.
    pub requests_under_way: usize,
    /// The maximum number of transport sessions in memory that have no open stream. All others are only stored.
    pub transport_sessions: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            places: 2_048,
            reserved: 256,
            per_address: 1_024,
            idle_seconds: 75,
            head_seconds: 15,
            body_seconds: 30,
            write_seconds: 30,
            answer_mb: 64,
            answers_mb: 256,
            requests_under_way: 64,
            transport_sessions: 128,
        }
    }
}
