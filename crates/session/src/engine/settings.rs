//! The settings of JavaScript runs.
//! Invariant: limits are checked where a request enters.

use std::collections::BTreeMap;

use base::TenantId;
use serde::{Deserialize, Serialize};

use super::FetchRule;

/// The `[js]` section of the settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JsSettings {
    /// The default for runs, and the most that a run may request.
    pub timeout_ms: u64,
    pub most_timeout_ms: u64,
    pub memory_mb: u64,
    pub most_memory_mb: u64,
    /// How long a call waits for its run before it answers that the run continues.
    pub wait_ms: u64,
    pub code_bytes: usize,
    /// Console output of one run beyond this size is counted and dropped.
    pub output_bytes: u64,
    /// The most unended runs of one session.
    pub queue: usize,
    /// The most unended runs of one tenant in this process.
    pub runs: usize,
    /// The number of steps that run at once. 0 means one for each processor.
    pub at_once: usize,
    /// The memory limits of all started steps together. 0 lets the caller of the settings choose.
    pub at_work_mb: u64,
    /// The storage that the heaps of a tenant may use, with exceptions by tenant. 0 means unlimited.
    pub heaps_mb: u64,
    #[serde(skip)]
    pub heaps_mb_of: BTreeMap<TenantId, u64>,
    /// The number of objects in a heap's chain beyond which they are merged into one.
    pub links: u32,
    /// Whether a session named by a header continues from its head too.
    pub resume_named_sessions: bool,
    /// The requests that `fetch` may make.
    pub fetch: Vec<FetchRule>,
    /// Whether writes requested by code run without a review.
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
    /// Returns the tenant's limit in bytes. `None` means unlimited.
    pub(crate) fn heap_room(&self, tenant: &TenantId) -> Option<u64> {
        let mb = self.heaps_mb_of.get(tenant).copied().unwrap_or(self.heaps_mb);
        (mb > 0).then(|| mb.saturating_mul(1 << 20))
    }
}
