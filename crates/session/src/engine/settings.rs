//! What runs of JavaScript may use.
//! Invariant: a limit is checked where the request enters.

use std::collections::BTreeMap;

use base::TenantId;
use serde::{Deserialize, Serialize};

use super::FetchRule;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JsSettings {
    /// For a run that names none, and the most that one may name.
    pub timeout_ms: u64,
    pub most_timeout_ms: u64,
    pub memory_mb: u64,
    pub most_memory_mb: u64,
    /// How long a call waits for its run before it answers that the run goes on.
    pub wait_ms: u64,
    pub code_bytes: usize,
    /// Console output of one run beyond this is counted and dropped.
    pub output_bytes: u64,
    /// Runs of one session that have not ended.
    pub queue: usize,
    /// Runs of one tenant that have not ended, in this process.
    pub runs: usize,
    /// Steps that go on side by side; 0 is one for each processor.
    pub at_once: usize,
    /// What the memory limits of all steps that have begun may come to; 0 is for who reads the settings to fill in.
    pub at_work_mb: u64,
    /// What the heaps of a tenant may take in storage, and of tenants that have a room of their own; 0 is any amount.
    pub heaps_mb: u64,
    #[serde(skip)]
    pub heaps_mb_of: BTreeMap<TenantId, u64>,
    /// Objects that a reader of a heap needs before they are merged into one.
    pub links: u32,
    /// A session named by a header goes on from its head, too.
    pub resume_named_sessions: bool,
    /// Where `fetch` may go.
    pub fetch: Vec<FetchRule>,
    /// Writes asked for by code are done without a review.
    pub writes_without_review: bool,
}

impl Default for JsSettings {
    fn default() -> Self {
        Self {
            timeout_ms: 30_000,
            most_timeout_ms: 600_000,
            memory_mb: 128,
            most_memory_mb: 512,
            wait_ms: 10_000,
            code_bytes: 1024 * 1024,
            output_bytes: 1024 * 1024,
            queue: 100,
            runs: 1_000,
            at_once: 0,
            at_work_mb: 0,
            heaps_mb: 16_384,
            heaps_mb_of: BTreeMap::new(),
            links: 64,
            resume_named_sessions: false,
            fetch: Vec::new(),
            writes_without_review: false,
        }
    }
}

impl JsSettings {
    /// In bytes; `None` is any amount.
    pub(crate) fn heap_room(&self, tenant: &TenantId) -> Option<u64> {
        let mb = self.heaps_mb_of.get(tenant).copied().unwrap_or(self.heaps_mb);
        (mb > 0).then(|| mb.saturating_mul(1 << 20))
    }
}
