//! Runs a plan from its first ready step to its last.
//! Invariant: a step starts as soon as its inputs are ready, whatever else is running, and runs at most once; effects
//! run one after another in their order, and an effect that did not succeed stops all later ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use catalog::{Show, Via};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use lang::plan::{Plan, Shape, Step, StepKind};

use crate::budget::{Allowance, Budget};
use crate::ctx::{Ctx, StepProgress};
use crate::error::StepError;
use crate::outcome::{Outcome, ReturnResult, Rowset, StepTime};
use crate::step::effect::Ledger;
use crate::step::{self, Work};
use crate::value::{Inputs, step_name};

/// The shared result of a step, which several dependants may use.
type StepResult = Result<Arc<Rowset>, Arc<StepError>>;

/// Runs a plan to its end. Failures are part of the outcome, so this never returns an error.
pub async fn run(ctx: &Ctx<'_>, plan: &Plan) -> Outcome {
    let (budget, ledger) = (Budget::new(ctx, &plan.bounds), Ledger::default());
    let embedded = embedded(ctx, plan);
    let ended_steps = AtomicUsize::new(0);
    let needs = plan.steps.iter().map(|step| step.kind.inputs()).collect();
    let running =
        Running { ctx, plan, budget: &budget, ledger: &ledger, embedded: &embedded, ended_steps: &ended_steps, needs };
    let (done, took) = running.all().await;
    let finished = |returned: &lang::plan::PlanResult| {
        let step = plan.steps.get(returned.step);
        let missing = || Err(Arc::new(StepError::NeverRun(returned.label.clone())));
        let result: StepResult = done.get(returned.step).cloned().flatten().unwrap_or_else(missing);
        let mut columns: Vec<String> =
            step.map(|s| s.columns.iter().map(|c| c.name.to_string()).collect()).unwrap_or_default();
        // The plan does not know the columns of a list that is read on from an earlier run. Its rows do.
        if let (true, Ok(rows)) = (columns.is_empty(), &result) {
            columns = rows.rows.first().map(|row| row.keys().cloned().collect()).unwrap_or_default();
        }
        ReturnResult {
            long_columns: step.map(|s| long_columns(ctx, s)).unwrap_or_default(),
            label: returned.label.clone(),
            entity: step.and_then(|s| s.of.as_ref()).map(|of| of.entity.to_string()).unwrap_or_default(),
            columns,
            effect: step.is_some_and(|s| s.shape == Shape::Effect),
            result,
        }
    };
    let returns = plan.returns.iter().map(finished).collect();
    let stopped = |r: &Option<StepResult>| matches!(r, Some(Err(error)) if error.is_cancelled());
    Outcome { returns, cancelled: done.iter().any(stopped), receipts: ledger.into_receipts(), step_times: took }
}

/// One run in progress, shared by the futures of its steps.
struct Running<'a> {
    ctx: &'a Ctx<'a>,
    plan: &'a Plan,
    budget: &'a Budget<'a>,
    ledger: &'a Ledger,
    /// For each step, the relations that its payload must carry.
    embedded: &'a [Vec<String>],
    /// Steps that have ended, for the progress.
    ended_steps: &'a AtomicUsize,
    /// For each step, the earlier steps whose rows it needs.
    needs: Vec<Vec<usize>>,
}

/// The decision about a step that has not started.
enum StepDecision {
    Wait,
    Start(Inputs),
    Fail(StepError),
}

impl Running<'_> {
    async fn all(&self) -> (Vec<Option<StepResult>>, Vec<StepTime>) {
        let steps = &self.plan.steps;
        let mut done: Vec<Option<StepResult>> = vec![None; steps.len()];
        let mut started = vec![false; steps.len()];
        let mut took = Vec::with_capacity(steps.len());
        let mut running = FuturesUnordered::new();
        loop {
            // Another round for each failure, since a failure may decide the fate of further steps at once.
            let mut changed = true;
            while changed {
                changed = false;
                for at in 0..steps.len() {
                    if started[at] {
                        continue;
                    }
                    match self.next(at, &done) {
                        StepDecision::Wait => continue,
                        StepDecision::Start(inputs) => running.push(self.one(at, inputs)),
                        StepDecision::Fail(error) => {
                            done[at] = Some(Err(Arc::new(error)));
                            changed = true;
                            self.count_end();
                        }
                    }
                    started[at] = true;
                }
            }
            let Some((at, time, result)) = running.next().await else { break };
            let rows = result.as_ref().ok().map(|rows: &Arc<Rowset>| rows.rows.len());
            took.push(StepTime { name: step_name(steps, at), time, rows });
            done[at] = Some(result);
            self.count_end();
        }
        (done, took)
    }

    fn next(&self, at: usize, done: &[Option<StepResult>]) -> StepDecision {
        let step = &self.plan.steps[at];
        let needed = &self.needs[at];
        let known = |at: &usize| done.get(*at).is_some_and(Option::is_some);
        if !needed.iter().all(known) || !step.after.iter().all(known) {
            return StepDecision::Wait;
        }
        let mut inputs = Inputs::new();
        for at in needed {
            match done.get(*at).and_then(Option::as_ref) {
                Some(Ok(rows)) => drop(inputs.insert(*at, rows.clone())),
                Some(Err(error)) => return StepDecision::Fail(self.because(*at, error)),
                None => return StepDecision::Wait,
            }
        }
        if let StepKind::Effect { call, .. } = &step.kind {
            // A read before an effect in the program must not see the effect, so the effect waits for it.
            let reads = self.plan.steps[..at].iter().zip(done);
            let reads = reads.filter(|(s, _)| s.kind.calls_api() && catalog_of(s).is_none_or(|id| *id == call.catalog));
            if reads.clone().any(|(_, result)| result.is_none()) {
                return StepDecision::Wait;
            }
            let before = |(other, _): &(usize, &Step)| *other < at || step.after == Some(*other);
            let earlier = self.plan.steps.iter().enumerate().filter(|(_, s)| is_effect(s)).filter(before);
            for (other, _) in earlier {
                match &done[other] {
                    None => return StepDecision::Wait,
                    Some(Err(cause)) => return StepDecision::Fail(self.stopped(other, cause)),
                    Some(Ok(_)) => {}
                }
            }
        }
        if self.ctx.cancel.is_cancelled() && step.kind.calls_api() {
            return StepDecision::Fail(StepError::Cancelled);
        }
        StepDecision::Start(inputs)
    }

    async fn one(&self, at: usize, inputs: Inputs) -> (usize, Duration, StepResult) {
        let started = Instant::now();
        let also = self.embedded.get(at).map_or(&[][..], Vec::as_slice);
        let allowance = Allowance::of(self.budget, &self.plan.steps[at], also);
        let report = || self.report();
        let work = Work {
            ctx: self.ctx,
            steps: &self.plan.steps,
            at,
            inputs: &inputs,
            allowance: &allowance,
            ledger: Some(self.ledger),
            outer: None,
            report: &report,
        };
        let result = step::run(&work).await.map(Arc::new).map_err(Arc::new);
        (at, started.elapsed(), result)
    }

    fn count_end(&self) {
        self.ended_steps.fetch_add(1, Ordering::Relaxed);
        self.report();
    }

    fn report(&self) {
        if let Some(progress) = self.ctx.progress {
            let steps_done = self.ended_steps.load(Ordering::Relaxed);
            progress.report(StepProgress {
                steps_done,
                steps: self.plan.steps.len(),
                effects_done: self.ledger.done(),
            });
        }
    }

    /// Wraps the first failure, however many steps lie between.
    fn because(&self, input: usize, error: &Arc<StepError>) -> StepError {
        match error.as_ref() {
            StepError::Input { step, cause } => StepError::Input { step: step.clone(), cause: cause.clone() },
            StepError::After { step, cause } => StepError::After { step: step.clone(), cause: cause.clone() },
            StepError::Cancelled => StepError::Cancelled,
            _ => StepError::Input { step: step_name(&self.plan.steps, input), cause: error.clone() },
        }
    }

    fn stopped(&self, before: usize, error: &Arc<StepError>) -> StepError {
        match error.as_ref() {
            StepError::After { step, cause } | StepError::Input { step, cause } => {
                StepError::After { step: step.clone(), cause: cause.clone() }
            }
            StepError::Cancelled => StepError::Cancelled,
            _ => StepError::After { step: step_name(&self.plan.steps, before), cause: error.clone() },
        }
    }
}

/// Returns the catalog that a step calls, if the plan says so.
fn catalog_of(step: &Step) -> Option<&base::CatalogId> {
    match &step.kind {
        StepKind::Query { call, .. }
        | StepKind::Get { call, .. }
        | StepKind::QueryPerRow { call, .. }
        | StepKind::Hydrate { call, .. }
        | StepKind::Effect { call, .. } => Some(&call.catalog),
        StepKind::Attach { entity, .. } => Some(&entity.catalog),
        _ => step.of.as_ref().map(|of| &of.catalog),
    }
}

fn is_effect(step: &Step) -> bool {
    matches!(step.kind, StepKind::Effect { .. })
}

/// For each step, the embedded relations to request with its payload, if the API lets the request name them.
fn embedded(ctx: &Ctx<'_>, plan: &Plan) -> Vec<Vec<String>> {
    let mut wanted = vec![Vec::new(); plan.steps.len()];
    for step in &plan.steps {
        let StepKind::Follow { input, relation, .. } = &step.kind else { continue };
        let of = plan.steps.get(*input).and_then(|s| s.of.as_ref());
        let entity = of.and_then(|of| ctx.catalogs.get(&of.catalog)?.entity(&of.entity));
        let via = entity.and_then(|e| e.relations.get(relation.as_str())).map(|r| &r.via);
        if !matches!(via, Some(Via::Embedded { .. })) {
            continue;
        }
        // Walks back to the step that read those rows.
        let mut at = *input;
        while let Some(before) = plan.steps.get(at).filter(|s| !s.kind.calls_api()).and_then(|s| s.kind.input()) {
            at = before;
        }
        if let Some(wanted) = wanted.get_mut(at) {
            wanted.push(relation.to_string());
        }
    }
    wanted
}

fn long_columns(ctx: &Ctx<'_>, step: &Step) -> Vec<String> {
    let entity = step.of.as_ref().and_then(|of| ctx.catalogs.get(&of.catalog)?.entity(&of.entity));
    let fields = entity.into_iter().flat_map(|e| e.fields.values());
    let has = |name: &String| step.columns.iter().any(|c| c.name == *name);
    fields.filter(|f| f.show == Show::Artifact && has(&f.name)).map(|f| f.name.clone()).collect()
}
