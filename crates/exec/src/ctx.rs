//! The context of a run: ports, tenant, pinned catalogs, limits.
//! Invariant: a step performs I/O only through this context. Without a store for receipts, effects are refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use base::{CatalogId, Limits, RunId, TenantId};
use catalog::Catalog;
use ports::{Receipts, Upstream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::error::OperationError;
use crate::outcome::{Continuation, Rowset};

/// The context of a run.
pub struct Ctx<'a> {
    pub upstream: &'a dyn Upstream,
    pub tenant: &'a TenantId,
    /// The catalogs that the session pinned.
    pub catalogs: &'a BTreeMap<CatalogId, Arc<Catalog>>,
    pub limits: &'a Limits,
    /// The permits for concurrent calls of the session. All runs of the session share them.
    pub calls: &'a Semaphore,
    /// The run id and the store for receipts of effects. If it is `None`, the run refuses effects.
    pub effects: Option<Effects<'a>>,
    /// Cancels the run. After the cancellation no further call or effect starts; running calls and effects are awaited.
    pub cancel: CancellationToken,
    /// Receives the progress after each step. `None` if the caller does not observe the run.
    pub progress: Option<&'a dyn ProgressSink>,
    /// The continuations of unfinished lists of earlier runs, by page handle.
    pub pages: Option<&'a BTreeMap<String, Continuation>>,
    /// Executes `wait(…)` and `cancel(…)` of a program.
    pub operations: Option<&'a dyn Operations>,
}

/// The run that effects belong to, and the store of their receipts.
#[derive(Clone, Copy)]
pub struct Effects<'a> {
    pub run: RunId,
    pub receipts: &'a dyn Receipts,
}

/// The numbers of finished steps and effects of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepProgress {
    pub steps_done: usize,
    pub steps: usize,
    pub effects_done: usize,
}

/// A receiver of progress reports after each step and each effect. An implementation must not block.
pub trait ProgressSink: Send + Sync {
    /// Receives the current progress.
    fn report(&self, progress: StepProgress);
}

/// Access to runs in the background. `wait(…)` and `cancel(…)` name such a run by its handle.
#[async_trait]
pub trait Operations: Send + Sync {
    /// Waits for the run with this handle and returns its rows. If `cancel` is true, the run is cancelled first.
    async fn answer(&self, handle: &str, cancel: bool) -> Result<Rowset, OperationError>;
}

impl<'a> Ctx<'a> {
    /// Returns a context for a run that only reads. The caller sets `effects`, `pages` and `operations` if the run may use
    /// them.
    pub fn new(
        upstream: &'a dyn Upstream,
        tenant: &'a TenantId,
        catalogs: &'a BTreeMap<CatalogId, Arc<Catalog>>,
        limits: &'a Limits,
        calls: &'a Semaphore,
    ) -> Self {
        Self {
            upstream,
            tenant,
            catalogs,
            limits,
            calls,
            effects: None,
            cancel: CancellationToken::new(),
            progress: None,
            pages: None,
            operations: None,
        }
    }

    /// Allows effects. Their receipts are stored under the id `run`.
    pub fn with_effects(mut self, run: RunId, receipts: &'a dyn Receipts) -> Self {
        self.effects = Some(Effects { run, receipts });
        self
    }
}
