//! Every bound on input and work, with its default.
//! Invariant: a limit is checked where the input enters, before memory or time is spent on it.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    pub program_bytes: usize,
    pub statements: usize,
    /// Reads, relations, projections and limits of one program.
    pub steps: usize,
    /// Results of one program.
    pub returns: usize,
    pub nesting: usize,
    pub intent_bytes: usize,
    pub seeds: usize,
    /// Rows one list read may bring, whatever its `.limit`.
    pub rows: usize,
    pub pages: usize,
    pub response_bytes: usize,
    pub request_timeout_ms: u64,
    pub calls_per_session: usize,
    pub calls_per_origin: usize,
    /// Calls a relation over many rows may make in one step.
    pub fan_out: usize,
    pub template_bytes: usize,
    pub template_output_bytes: usize,
    /// Instructions that one rendering may take.
    pub template_fuel: u64,
    /// How long a call waits for its run before it answers with a handle.
    pub inline_ms: u64,
    /// A result up to this size is stored in the transaction of its run, a larger one as a blob.
    pub row_bytes: usize,
    /// Characters of a result that go to the model before rows are cut.
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
