//! The budget of a run: the calls and bytes that the plan allows, the calls of each step, and permits at each origin.
//! Invariant: no call leaves without a bound that allows it. A cancelled run starts no call.

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
    /// The plan's bounds, which are never exceeded.
    bounds: &'p Bounds,
    /// Calls made so far, by catalog.
    calls: BTreeMap<CatalogId, AtomicUsize>,
    /// Bytes received so far.
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

    /// Counts one call to a catalog, or refuses it.
    fn count_call(&self, catalog: &CatalogId) -> Result<(), StepError> {
        if self.bounds.bytes > 0 && self.bytes.load(Ordering::Relaxed) >= self.bounds.bytes {
            return Err(StepError::Bound {
                what: "bytes",
                bound: usize::try_from(self.bounds.bytes).unwrap_or(usize::MAX),
            });
        }
        match (self.calls.get(catalog), self.bounds.calls.get(catalog)) {
            (Some(made), Some(bound)) => count_within(made, *bound, "calls"),
            // A catalog that the plan did not count as a whole is bounded by each step's own number of calls.
            _ => Ok(()),
        }
    }

    /// Counts received bytes. The bound is checked before the next call, because the size of an answer is known only after
    /// it came.
    pub fn add_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The remaining budget of one step. Its calls also count against the run.
pub struct Allowance<'p> {
    pub run: &'p Budget<'p>,
    /// Calls that the step has made so far.
    calls: AtomicUsize,
    /// The plan's bound for `calls`.
    most_calls: usize,
    /// The outer step, if these calls are made for one of that step's values.
    outer: Option<&'p Allowance<'p>>,
    /// The number of rows that the plan lets the step return.
    pub rows: usize,
    /// The fields to ask for, if the API can be asked for single fields. `None` asks for all fields.
    pub fields: Option<Vec<String>>,
}

impl<'p> Allowance<'p> {
    /// Returns the allowance of one step. `embedded` lists the relations that the payload must carry for other steps.
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
        Self { run, calls: AtomicUsize::new(0), most_calls: step.calls, outer: None, rows: step.rows, fields }
    }

    /// Returns the allowance of a step inside the read of a value. Its calls count against the outer step too.
    pub fn inside(outer: &'p Allowance<'p>, step: &Step) -> Self {
        Self { outer: Some(outer), ..Self::of(outer.run, step, &[]) }
    }

    /// Returns the allowance of the reads that resolve an effect with a lost answer. The plan does not count these reads.
    /// They are few, because the run stops at the first effect that stays unresolved.
    pub fn of_probe(run: &'p Budget<'p>, calls: usize, rows: usize) -> Self {
        Self { run, calls: AtomicUsize::new(0), most_calls: calls, outer: None, rows, fields: None }
    }

    /// Counts one call, or refuses it if a bound is reached or the run is cancelled.
    pub fn count_call(&self, ctx: &Ctx<'_>, catalog: &Catalog, counted: Counted) -> Result<(), StepError> {
        if ctx.cancel.is_cancelled() && counted == Counted::ByPlan {
            return Err(StepError::Cancelled);
        }
        match self.outer {
            Some(outer) => outer.count_call(ctx, catalog, counted)?,
            None if counted == Counted::ByPlan => self.run.count_call(&catalog.id)?,
            None => {}
        }
        count_within(&self.calls, self.most_calls, "calls")
    }

    /// Waits for a permit at the origin and one in the session. The caller holds both for the whole call.
    pub async fn permit<'s>(&'s self, ctx: &'s Ctx<'_>, catalog: &Catalog) -> CallPermit<'s> {
        // The semaphores are never closed. If one were, the call would go ahead without a permit, bounded by the
        // upstream's own limit.
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
    /// A call that the plan announced.
    ByPlan,
    /// A read that resolves an effect. It is made even if the run is cancelled, because the effect has already left.
    Extra,
}

/// The permits of one call. Dropping them lets the next call start.
pub struct CallPermit<'s> {
    _origin: Option<SemaphorePermit<'s>>,
    _session: Option<SemaphorePermit<'s>>,
}

/// Adds one to `made` unless that exceeds `bound`.
fn count_within(made: &AtomicUsize, bound: usize, what: &'static str) -> Result<(), StepError> {
    let next = |made: usize| (made < bound).then_some(made + 1);
    made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        .map(drop)
        .map_err(|_| StepError::Bound { what, bound })
}
