//! The context of a run: its ports, its tenant, its pinned catalogs, its limits.
//! Invariant: a step reaches the outside world only through this context. Without receipts no effect happens.

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
    /// Permits for the calls that may run at once in this session. All its runs share them.
    pub calls: &'a Semaphore,
    /// The store of the receipts. A run without it refuses effects.
    pub effects: Option<Effects<'a>>,
    /// Once cancelled, no further call and no further effect starts. Those that already started run to their end.
    pub cancel: CancellationToken,
    /// Receives the progress, if the caller follows the run.
    pub progress: Option<&'a dyn ProgressSink>,
    /// Lists that earlier runs left unread, by page handle.
    pub pages: Option<&'a BTreeMap<String, Continuation>>,
    /// Answers `wait(…)` and `cancel(…)`.
    pub operations: Option<&'a dyn Operations>,
}

/// The run that effects belong to, and the store of their receipts.
#[derive(Clone, Copy)]
pub struct Effects<'a> {
    pub run: RunId,
    pub receipts: &'a dyn Receipts,
}

/// The progress of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepProgress {
    pub steps_done: usize,
    pub steps: usize,
    pub effects_done: usize,
}

/// Receives the progress after each step and each effect. An implementation must not block.
pub trait ProgressSink: Send + Sync {
    /// Reports the progress so far.
    fn report(&self, progress: StepProgress);
}

/// The runs that go on without their caller, which `wait(…)` and `cancel(…)` refer to by a handle.
#[async_trait]
pub trait Operations: Send + Sync {
    /// Waits for such a run and returns its rows. With `cancel` the run is stopped first.
    async fn answer(&self, handle: &str, cancel: bool) -> Result<Rowset, OperationError>;
}

impl<'a> Ctx<'a> {
    /// Returns a context for reads. Callers add effects, pages and operations if the run may use them.
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

    /// Allows effects, with their receipts under this run.
    pub fn with_effects(mut self, run: RunId, receipts: &'a dyn Receipts) -> Self {
        self.effects = Some(Effects { run, receipts });
        self
    }
}
