//! What a run may still do: calls and bytes by the plan, calls of each step, places at each origin.
//! Invariant: no call leaves that a bound does not allow; a run that was told to stop starts none.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use base::{CatalogId, Origin};
use catalog::Catalog;
use lang::plan::{Bounds, Step, StepKind};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::ctx::Ctx;
use crate::error::StepError;

/// Of one run.
pub struct Budget<'p> {
    bounds: &'p Bounds,
    calls: BTreeMap<CatalogId, AtomicUsize>,
    bytes: AtomicU64,
    origins: BTreeMap<Origin, Semaphore>,
}

impl<'p> Budget<'p> {
    pub fn new(ctx: &Ctx<'_>, bounds: &'p Bounds) -> Self {
        let place =
            |c: &std::sync::Arc<Catalog>| (c.origin.clone(), Semaphore::new(ctx.limits.calls_per_origin.max(1)));
        Self {
            bounds,
            calls: bounds.calls.keys().map(|id| (id.clone(), AtomicUsize::new(0))).collect(),
            bytes: AtomicU64::new(0),
            origins: ctx.catalogs.values().map(place).collect(),
        }
    }

    fn call(&self, catalog: &CatalogId) -> Result<(), StepError> {
        if self.bounds.bytes > 0 && self.bytes.load(Ordering::Relaxed) >= self.bounds.bytes {
            return Err(StepError::Bound {
                what: "bytes",
                bound: usize::try_from(self.bounds.bytes).unwrap_or(usize::MAX),
            });
        }
        match (self.calls.get(catalog), self.bounds.calls.get(catalog)) {
            (Some(made), Some(bound)) => take(made, *bound, "calls"),
            // What the plan did not count by catalog, it counted by step.
            _ => Ok(()),
        }
    }

    pub fn came(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// Of one step, and through it of the run.
pub struct Allowance<'p> {
    pub run: &'p Budget<'p>,
    calls: AtomicUsize,
    most_calls: usize,
    /// Of the step that makes these calls for one of its values.
    outer: Option<&'p Allowance<'p>>,
    pub rows: usize,
    /// What an API that can be asked for single fields is asked for; `None` is all.
    pub fields: Option<Vec<String>>,
}

impl<'p> Allowance<'p> {
    /// `also`: what the payload must carry for other steps.
    pub fn of(run: &'p Budget<'p>, step: &Step, also: &[String]) -> Self {
        let fields = match &step.kind {
            StepKind::Query { fields, .. } | StepKind::Get { fields, .. } | StepKind::Follow { fields, .. } => {
                fields.clone()
            }
            _ => None,
        };
        // What is embedded comes only by its name, and a name means no other: so all of them.
        let all = || step.columns.iter().map(|c| c.name.to_string()).collect::<Vec<_>>();
        let fields = match fields {
            None if also.is_empty() => None,
            known => Some(known.unwrap_or_else(all).into_iter().chain(also.iter().cloned()).collect()),
        };
        Self { run, calls: AtomicUsize::new(0), most_calls: step.calls, outer: None, rows: step.rows, fields }
    }

    /// For a step of a read that a value makes: its calls are also calls of the step whose value it is.
    pub fn inside(outer: &'p Allowance<'p>, step: &Step) -> Self {
        Self { outer: Some(outer), ..Self::of(outer.run, step, &[]) }
    }

    /// For the calls that find out what came of an effect: they are as few as the effects whose answer was lost, and a
    /// run stops at the first of those.
    pub fn of_probe(run: &'p Budget<'p>, calls: usize, rows: usize) -> Self {
        Self { run, calls: AtomicUsize::new(0), most_calls: calls, outer: None, rows, fields: None }
    }

    pub fn call(&self, ctx: &Ctx<'_>, catalog: &Catalog, counted: Counted) -> Result<(), StepError> {
        if ctx.cancel.is_cancelled() && counted == Counted::ByPlan {
            return Err(StepError::Cancelled);
        }
        match self.outer {
            Some(outer) => outer.call(ctx, catalog, counted)?,
            None if counted == Counted::ByPlan => self.run.call(&catalog.id)?,
            None => {}
        }
        take(&self.calls, self.most_calls, "calls")
    }

    /// A place at the origin and one in the session, for as long as the call takes.
    pub async fn place<'s>(&'s self, ctx: &'s Ctx<'_>, catalog: &Catalog) -> Place<'s> {
        // Neither is ever closed; without a permit the call goes ahead, bounded by the upstream's own limit.
        let origin = match self.run.origins.get(&catalog.origin) {
            Some(places) => places.acquire().await.ok(),
            None => None,
        };
        Place { _origin: origin, _session: ctx.calls.acquire().await.ok() }
    }
}

/// Whether the plan's bound on calls holds for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    ByPlan,
    /// Finding out about an effect that has left: it is done even when the run is told to stop.
    Extra,
}

pub struct Place<'s> {
    _origin: Option<SemaphorePermit<'s>>,
    _session: Option<SemaphorePermit<'s>>,
}

fn take(made: &AtomicUsize, bound: usize, what: &'static str) -> Result<(), StepError> {
    let next = |made: usize| (made < bound).then_some(made + 1);
    made.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next)
        .map(drop)
        .map_err(|_| StepError::Bound { what, bound })
}
