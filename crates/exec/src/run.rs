//! A plan, from its first ready step to its last.
//! Invariant: a step starts as soon as its input is there, whatever else is still running; it runs at most once.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{CatalogId, Limits, TenantId};
use catalog::{Catalog, Row, Show};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use lang::plan::{Plan, Step};
use ports::Upstream;
use tokio::sync::Semaphore;

use crate::coverage::Coverage;
use crate::error::StepError;
use crate::step;

/// What a run stands on.
pub struct Ctx<'a> {
    pub upstream: &'a dyn Upstream,
    pub tenant: &'a TenantId,
    /// Those that the session pinned.
    pub catalogs: &'a BTreeMap<CatalogId, Arc<Catalog>>,
    pub limits: &'a Limits,
    /// Calls that may be under way at once in this session.
    pub calls: &'a Semaphore,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rowset {
    pub rows: Vec<Row>,
    pub coverage: Coverage,
}

/// What came of each result of the plan, in its order.
#[derive(Debug)]
pub struct Outcome {
    pub returns: Vec<Finished>,
}

#[derive(Debug)]
pub struct Finished {
    pub label: String,
    pub entity: String,
    pub columns: Vec<String>,
    /// Columns that the catalog shows only in the artifact when space is short.
    pub long_columns: Vec<String>,
    pub result: Result<Arc<Rowset>, Arc<StepError>>,
}

impl Outcome {
    pub fn failed(&self) -> bool {
        self.returns.iter().any(|r| r.result.is_err())
    }
}

type StepResult = Result<Arc<Rowset>, Arc<StepError>>;

pub async fn run(ctx: &Ctx<'_>, plan: &Plan) -> Outcome {
    let mut done: Vec<Option<StepResult>> = vec![None; plan.steps.len()];
    let mut started = vec![false; plan.steps.len()];
    let mut running = FuturesUnordered::new();
    loop {
        for (at, step) in plan.steps.iter().enumerate() {
            if started[at] {
                continue;
            }
            match step.kind.input().map(|input| &done[input]) {
                None => running.push(numbered(at, run_step(ctx, plan, step, None))),
                Some(Some(Ok(rows))) => running.push(numbered(at, run_step(ctx, plan, step, Some(rows.clone())))),
                Some(Some(Err(_))) => done[at] = Some(Err(Arc::new(StepError::Input(input_name(plan, step))))),
                Some(None) => continue,
            }
            started[at] = true;
        }
        // A failed input is known at once and may free its own dependants: look again before waiting.
        let waiting = (0..plan.steps.len()).any(|at| !started[at] && input_known(plan, &done, at));
        if waiting {
            continue;
        }
        match running.next().await {
            Some((at, result)) => done[at] = Some(result),
            None => break,
        }
    }
    let finished = |returned: &lang::plan::Returned| {
        let step = plan.steps.get(returned.step);
        let missing = || Err(Arc::new(StepError::Input(returned.label.clone())));
        Finished {
            long_columns: step.map(|s| long_columns(ctx, s)).unwrap_or_default(),
            label: returned.label.clone(),
            entity: step.map(|s| s.entity.clone()).unwrap_or_default(),
            columns: step.map(|s| s.columns.clone()).unwrap_or_default(),
            result: done.get(returned.step).cloned().flatten().unwrap_or_else(missing),
        }
    };
    Outcome {
        returns: plan.returns.iter().map(finished).collect(),
    }
}

fn input_known(plan: &Plan, done: &[Option<StepResult>], at: usize) -> bool {
    plan.steps[at].kind.input().is_none_or(|input| done[input].is_some())
}

fn input_name(plan: &Plan, step: &Step) -> String {
    let input = step.kind.input().unwrap_or(0);
    let label = plan.steps.get(input).and_then(|s| s.label.clone());
    label.unwrap_or_else(|| format!("step {:02}", input + 1))
}

fn long_columns(ctx: &Ctx<'_>, step: &Step) -> Vec<String> {
    let entity = ctx.catalogs.get(&step.catalog).and_then(|c| c.entity(&step.entity));
    let fields = entity.into_iter().flat_map(|e| e.fields.values());
    fields
        .filter(|f| f.show == Show::Artifact && step.columns.contains(&f.name))
        .map(|f| f.name.clone())
        .collect()
}

async fn numbered(at: usize, work: impl Future<Output = StepResult>) -> (usize, StepResult) {
    (at, work.await)
}

async fn run_step(ctx: &Ctx<'_>, plan: &Plan, step: &Step, input: Option<Arc<Rowset>>) -> StepResult {
    let input = input.unwrap_or_default();
    step::run(ctx, plan, step, &input).await.map(Arc::new).map_err(Arc::new)
}
