//! What a run stands on: its ports, its tenant, its pinned catalogs, its limits.
//! Invariant: a step sees the world through this and nothing else; without receipts no effect happens.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use base::{CatalogId, Limits, RunId, TenantId};
use catalog::Catalog;
use ports::{Receipts, Upstream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::continuation::Continuation;
use crate::error::OperationError;
use crate::outcome::Rowset;

/// What a run stands on.
pub struct Ctx<'a> {
    pub upstream: &'a dyn Upstream,
    pub tenant: &'a TenantId,
    /// Those that the session pinned.
    pub catalogs: &'a BTreeMap<CatalogId, Arc<Catalog>>,
    pub limits: &'a Limits,
    /// Calls that may be under way at once in this session.
    pub calls: &'a Semaphore,
    /// Where effects are kept; a run without it refuses them.
    pub effects: Option<Effects<'a>>,
    /// Once cancelled, no further call and no further effect starts; what is under way ends.
    pub cancel: CancellationToken,
    pub progress: Option<&'a dyn Progress>,
    /// Lists that earlier runs left unread, by handle.
    pub pages: Option<&'a BTreeMap<String, Continuation>>,
    pub operations: Option<&'a dyn Operations>,
}

/// Under which run effects are kept, and where.
#[derive(Clone, Copy)]
pub struct Effects<'a> {
    pub run: RunId,
    pub receipts: &'a dyn Receipts,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Told {
    pub steps_done: usize,
    pub steps: usize,
    pub effects_done: usize,
}

/// Is told when a step or an effect has ended. It must not wait.
pub trait Progress: Send + Sync {
    fn tell(&self, told: Told);
}

/// Runs that outlive their call, which `wait(…)` and `cancel(…)` speak of.
#[async_trait]
pub trait Operations: Send + Sync {
    async fn ask(&self, handle: &str, cancel: bool) -> Result<Rowset, OperationError>;
}

impl<'a> Ctx<'a> {
    /// For reads: effects, pages and operations are added where there are some.
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

    pub fn with_effects(mut self, run: RunId, receipts: &'a dyn Receipts) -> Self {
        self.effects = Some(Effects { run, receipts });
        self
    }
}
