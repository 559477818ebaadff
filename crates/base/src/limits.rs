//! Every bound on input and work, with its default.
//! Invariant: a limit is checked where the input enters, before memory or time is spent on it.

use serde::{Deserialize, Serialize};

/// The bounds of one server; a setting may lower or raise each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    pub program_bytes: usize,
    pub statements: usize,
    /// Steps of one program: reads, relations, projections, limits and so on.
    pub steps: usize,
    /// Results that one program may return.
    pub returns: usize,
    pub nesting: usize,
    pub intent_bytes: usize,
    pub seeds: usize,
    /// Rows that one list read may return, whatever its `.limit` says.
    pub rows: usize,
    pub pages: usize,
    pub response_bytes: usize,
    pub request_timeout_ms: u64,
    pub calls_per_session: usize,
    pub calls_per_origin: usize,
    /// Calls that one step may make because it makes one for each row.
    pub fan_out: usize,
    pub template_bytes: usize,
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
