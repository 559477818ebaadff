//! The budget of a run: its remaining calls and bytes, the remaining calls of each step, and the permits for concurrent calls
//! at each origin.
//! Invariant: a call is sent only if every bound allows it. A cancelled run sends no further call that the plan counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use base::{CatalogId, Origin};
use catalog::Catalog;
use lang::plan::{Bounds, Step, StepKind};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::ctx::Ctx;
use crate::error::StepError;

/// The remaining budget of the whole run.
pub struct Budget<'p> {
    /// The plan's bounds on calls and bytes.
    bounds: &'p Bounds,
    /// The number of calls made so far, by catalog.
    calls: BTreeMap<CatalogId, AtomicUsize>,
    /// The number of bytes received so far.
    bytes: AtomicU64,
    /// Permits for concurrent calls, by origin.
    origins: BTreeMap<Origin, Semaphore>,
}

impl<'p> Budget<'p> {
    pub fn new(ctx: &Ctx<'_>, bounds: &'p Bounds) -> Self {
        let permit =
            |c: &std::sync::Arc<Catalog>| (c.origin.clone(), Semaphore::new(ctx.limits.calls_per_origin.max(1)));
        Self {
            bounds,
            calls: bounds.calls.keys().map(|id| (id.clone(), AtomicUsize::new(0))).collect(),
            bytes: AtomicU64::new(0),
            origins: ctx.catalogs.values().map(permit).collect(),
        }
    }

    /// Counts one call to a catalog. Returns an error if the plan's bound on calls or bytes is reached.
    fn count_call(&self, catalog: &CatalogId) -> Result<(), StepError> {
        if self.bounds.bytes > 0 && self.bytes.load(Ordering::Relaxed) >= self.bounds.bytes {
            return Err(StepError::Bound {
                what: "bytes",
                bound: usize::try_from(self.bounds.bytes).unwrap_or(usize::MAX),
            });
        }
        match (self.calls.get(catalog), self.bounds.calls.get(catalog)) {
            (Some(made), Some(bound)) => count_within(made, *bound, "calls"),
            // The plan has no total for this catalog. `Allowance::count_call` still bounds the calls of each step.
            _ => Ok(()),
        }
    }

    /// Counts received bytes. The bound on bytes is checked before the next call, because the size of an answer is unknown
    /// until the answer is received.
    pub fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The remaining budget of one step. The step's calls are also counted in the run's budget.
pub struct Allowance<'p> {
    pub run: &'p Budget<'p>,
    /// The number of calls that the step has made so far.
    calls: AtomicUsize,
    /// The plan's bound on the step's calls.
    max_calls: usize,
    /// The allowance of the outer step, if this step is part of a read inside a value of the outer step.
    outer: Option<&'p Allowance<'p>>,
    /// The largest number of rows that the plan allows the step to return.
    pub rows: usize,
    /// The fields to request, for APIs that can return single fields. `None` requests all fields.
    pub fields: Option<Vec<String>>,
}

impl<'p> Allowance<'p> {
    /// Returns the allowance of one step. `embedded` lists the relations whose rows the answer must include for later steps.
    pub fn of(run: &'p Budget<'p>, step: &Step, embedded: &[String]) -> Self {
        let fields = match &step.kind {
            StepKind::Query { fields, .. } | StepKind::Get { fields, .. } | StepKind::Follow { fields, .. } => {
                fields.clone()
            }
            _ => None,
        };
        // An API sends an embedded relation only if the request names it, and naming one field excludes all unnamed
        // fields. The step's own columns are therefore named as well.
        let all_columns = || step.columns.iter().map(|c| c.name.to_string()).collect::<Vec<_>>();
        let fields = match fields {
            None if embedded.is_empty() => None,
            known => Some(known.unwrap_or_else(all_columns).into_iter().chain(embedded.iter().cloned()).collect()),
        };
        Self { run, calls: AtomicUsize::new(0), max_calls: step.calls, outer: None, rows: step.rows, fields }
    }

    /// Returns the allowance of a step that is part of a read inside a value. The outer step's allowance counts the calls as
    /// well.
    pub fn inside(outer: &'p Allowance<'p>, step: &Step) -> Self {
        Self { outer: Some(outer), ..Self::of(outer.run, step, &[]) }
    }

    /// Returns the allowance of the probe of an effect with a lost answer. The plan does not count probe reads. They stay few,
    /// because the run stops at the first effect that stays unresolved.
    pub fn of_probe(run: &'p Budget<'p>, calls: usize, rows: usize) -> Self {
        Self { run, calls: AtomicUsize::new(0), max_calls: calls, outer: None, rows, fields: None }
    }

    /// Counts one call. Returns an error if a bound is reached or the run is cancelled.
    pub fn count_call(&self, ctx: &Ctx<'_>, catalog: &Catalog, counted: Counted) -> Result<(), StepError> {
        if ctx.cancel.is_cancelled() && counted == Counted::ByPlan {
            return Err(StepError::Cancelled);
        }
        match self.outer {
            Some(outer) => outer.count_call(ctx, catalog, counted)?,
            None if counted == Counted::ByPlan => self.run.count_call(&catalog.id)?,
            None => {}
        }
        count_within(&self.calls, self.max_calls, "calls")
    }

    /// Waits for a permit of the origin and a permit of the session. The caller keeps both until the call has ended.
    pub async fn permit<'s>(&'s self, ctx: &'s Ctx<'_>, catalog: &Catalog) -> CallPermit<'s> {
        // The semaphores are never closed. If a semaphore were closed, the call would proceed without a permit, and only the
        // upstream's own limit would bound it.
        let origin = match self.run.origins.get(&catalog.origin) {
            Some(permits) => permits.acquire().await.ok(),
            None => None,
        };
        CallPermit { _origin: origin, _session: ctx.calls.acquire().await.ok() }
    }
}

/// Whether a call counts against the plan's bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// A call that the plan's bounds include.
    ByPlan,
    /// A probe read. It is also made in a cancelled run, because the effect's request has already been sent.
    Extra,
}

/// The permits of one call. The next waiting call starts when this value is dropped.
pub struct CallPermit<'s> {
    _origin: Option<SemaphorePermit<'s>>,
    _session: Option<SemaphorePermit<'s>>,
}

/// Adds one to `made`. Returns an error if `made` has already reached `bound`.
fn count_within(made: &AtomicUsize, bound: usize, what: &'static str) -> Result<(), StepError> {
    let next = |made: usize| (made < bound).then_some(made + 1);
    made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        .map(drop)
        .map_err(|_| StepError::Bound { what, bound })
}
