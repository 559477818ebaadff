//! The bounds on input and work of one server, with their defaults.
//! Invariant: a limit is checked where the input enters, before memory or time is spent on it.

use serde::{Deserialize, Serialize};

/// The bounds of one server. A setting may lower or raise each of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The length of one program's text.
    pub program_bytes: usize,
    /// Statements of one program.
    pub statements: usize,
    /// Steps of one program: reads, relations, projections, limits and so on.
    pub steps: usize,
    /// Results that one program may return.
    pub returns: usize,
    /// How deeply brackets of a program, and the levels of an answer, may be nested.
    pub nesting: usize,
    /// The length of one intent.
    pub intent_bytes: usize,
    /// Seeds of one call that opens a session.
    pub seeds: usize,
    /// Rows that one list read may return, whatever its `.limit` says.
    pub rows: usize,
    /// Pages that one list read may request.
    pub pages: usize,
    /// The size of one answer's body, after it is decompressed.
    pub response_bytes: usize,
    /// The time of one try of a request.
    pub request_timeout_ms: u64,
    /// Requests that all runs of one session may have under way at one time.
    pub calls_per_session: usize,
    /// Requests that may be under way to one origin at one time.
    pub calls_per_origin: usize,
    /// Calls that one step may make because it makes one for each row.
    pub fan_out: usize,
    /// The length of one template's text.
    pub template_bytes: usize,
    /// The length of one rendering of a template.
    pub template_output_bytes: usize,
    /// Instructions that one rendering of a template may execute.
    pub template_fuel: u64,
    /// How long a call waits for its run, in milliseconds, before it answers with a handle.
    pub inline_ms: u64,
    /// A result up to this size is stored with its run in one transaction; a larger one is stored as a blob.
    pub row_bytes: usize,
    /// Characters of a result that are shown to the model; further rows are cut.
    pub shown_chars: usize,
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
        }
    }
}
