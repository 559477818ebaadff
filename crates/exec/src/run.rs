//! A plan, from its first ready step to its last.
//! Invariant: a step starts as soon as what it needs is there, whatever else is still running, and runs at most once; effects
//! run one after another in their order, and one that did not succeed stops all that come after it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use catalog::{Show, Via};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use lang::plan::{Plan, Shape, Step, StepKind};

use crate::budget::{Allowance, Budget};
use crate::ctx::{Ctx, Told};
use crate::error::StepError;
use crate::outcome::{Finished, Outcome, Rowset, StepTook};
use crate::step::effect::Ledger;
use crate::step::{self, Work};
use crate::value::{Inputs, step_name};

type StepResult = Result<Arc<Rowset>, Arc<StepError>>;

pub async fn run(ctx: &Ctx<'_>, plan: &Plan) -> Outcome {
    let (budget, ledger) = (Budget::new(ctx, &plan.bounds), Ledger::default());
    let embedded = embedded(ctx, plan);
    let ended = AtomicUsize::new(0);
    let needs = plan.steps.iter().map(|step| step.kind.inputs()).collect();
    let running = Running { ctx, plan, budget: &budget, ledger: &ledger, embedded: &embedded, ended: &ended, needs };
    let (done, took) = running.all().await;
    let finished = |returned: &lang::plan::PlanResult| {
        let step = plan.steps.get(returned.step);
        let missing = || Err(Arc::new(StepError::NeverRun(returned.label.clone())));
        let result: StepResult = done.get(returned.step).cloned().flatten().unwrap_or_else(missing);
        let mut columns: Vec<String> =
            step.map(|s| s.columns.iter().map(|c| c.name.to_string()).collect()).unwrap_or_default();
        // Of the rest of an earlier list the plan does not know the columns; its rows do.
        if let (true, Ok(rows)) = (columns.is_empty(), &result) {
            columns = rows.rows.first().map(|row| row.keys().cloned().collect()).unwrap_or_default();
        }
        Finished {
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
    Outcome { returns, cancelled: done.iter().any(stopped), receipts: ledger.into_receipts(), took }
}

struct Running<'a> {
    ctx: &'a Ctx<'a>,
    plan: &'a Plan,
    budget: &'a Budget<'a>,
    ledger: &'a Ledger,
    /// For each step, the relations that its payload must carry.
    embedded: &'a [Vec<String>],
    ended: &'a AtomicUsize,
    /// For each step, the earlier ones that it needs.
    needs: Vec<Vec<usize>>,
}

/// What a step that has not started is to do.
enum Next {
    Wait,
    Start(Inputs),
    Fail(StepError),
}

impl Running<'_> {
    async fn all(&self) -> (Vec<Option<StepResult>>, Vec<StepTook>) {
        let steps = &self.plan.steps;
        let mut done: Vec<Option<StepResult>> = vec![None; steps.len()];
        let mut started = vec![false; steps.len()];
        let mut took = Vec::with_capacity(steps.len());
        let mut running = FuturesUnordered::new();
        loop {
            // Once more for each failure: it is known at once, and may free or stop others.
            let mut changed = true;
            while changed {
                changed = false;
                for at in 0..steps.len() {
                    if started[at] {
                        continue;
                    }
                    match self.next(at, &done) {
                        Next::Wait => continue,
                        Next::Start(inputs) => running.push(self.one(at, inputs)),
                        Next::Fail(error) => {
                            done[at] = Some(Err(Arc::new(error)));
                            changed = true;
                            self.tell_end();
                        }
                    }
                    started[at] = true;
                }
            }
            let Some((at, time, result)) = running.next().await else { break };
            let rows = result.as_ref().ok().map(|rows: &Arc<Rowset>| rows.rows.len());
            took.push(StepTook { name: step_name(steps, at), time, rows });
            done[at] = Some(result);
            self.tell_end();
        }
        (done, took)
    }

    fn next(&self, at: usize, done: &[Option<StepResult>]) -> Next {
        let step = &self.plan.steps[at];
        let needed = &self.needs[at];
        let known = |at: &usize| done.get(*at).is_some_and(Option::is_some);
        if !needed.iter().all(known) || !step.after.iter().all(known) {
            return Next::Wait;
        }
        let mut inputs = Inputs::new();
        for at in needed {
            match done.get(*at).and_then(Option::as_ref) {
                Some(Ok(rows)) => drop(inputs.insert(*at, rows.clone())),
                Some(Err(error)) => return Next::Fail(self.because(*at, error)),
                None => return Next::Wait,
            }
        }
        if let StepKind::Effect { call, .. } = &step.kind {
            // What the program read before, it read before.
            let reads = self.plan.steps[..at].iter().zip(done);
            let reads = reads.filter(|(s, _)| s.kind.calls_api() && catalog_of(s).is_none_or(|id| *id == call.catalog));
            if reads.clone().any(|(_, result)| result.is_none()) {
                return Next::Wait;
            }
            let before = |(other, _): &(usize, &Step)| *other < at || step.after == Some(*other);
            let earlier = self.plan.steps.iter().enumerate().filter(|(_, s)| is_effect(s)).filter(before);
            for (other, _) in earlier {
                match &done[other] {
                    None => return Next::Wait,
                    Some(Err(cause)) => return Next::Fail(self.stopped(other, cause)),
                    Some(Ok(_)) => {}
                }
            }
        }
        if self.ctx.cancel.is_cancelled() && step.kind.calls_api() {
            return Next::Fail(StepError::Cancelled);
        }
        Next::Start(inputs)
    }

    async fn one(&self, at: usize, inputs: Inputs) -> (usize, Duration, StepResult) {
        let started = Instant::now();
        let also = self.embedded.get(at).map_or(&[][..], Vec::as_slice);
        let allowance = Allowance::of(self.budget, &self.plan.steps[at], also);
        let tell = || self.tell();
        let work = Work {
            ctx: self.ctx,
            steps: &self.plan.steps,
            at,
            inputs: &inputs,
            allowance: &allowance,
            ledger: Some(self.ledger),
            outer: None,
            tell: &tell,
        };
        let result = step::run(&work).await.map(Arc::new).map_err(Arc::new);
        (at, started.elapsed(), result)
    }

    fn tell_end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
        self.tell();
    }

    fn tell(&self) {
        if let Some(progress) = self.ctx.progress {
            let steps_done = self.ended.load(Ordering::Relaxed);
            progress.tell(Told { steps_done, steps: self.plan.steps.len(), effects_done: self.ledger.done() });
        }
    }

    /// The cause is the first failure, however many steps lie between.
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

/// The catalog it calls, where the plan says.
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

/// Relations whose rows come with a step's own payload are asked for with it, where the API is told what to send.
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
        // Back to the step that read those rows.
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
