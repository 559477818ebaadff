//! The run of a plan: each step starts when its inputs are ready, until all steps have ended.
//! Invariant: a step runs at most once and does not wait for steps that it does not depend on. Effects run one after another in
//! plan order. An effect that did not succeed stops all later effects.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use catalog::{Show, Via};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use lang::plan::{Plan, PlanResult, Shape, Step, StepKind};

use crate::budget::{Allowance, Budget};
use crate::ctx::{Ctx, StepProgress};
use crate::error::StepError;
use crate::outcome::{Outcome, ReturnResult, Rowset, StepTime};
use crate::step::effect::EffectLog;
use crate::step::{self, StepWork};
use crate::value::{Inputs, step_name};

/// The result of a step, shared by all steps that use it.
type StepResult = Result<Arc<Rowset>, Arc<StepError>>;

/// Runs a plan to its end. Failures of steps are part of the outcome.
pub async fn run(ctx: &Ctx<'_>, plan: &Plan) -> Outcome {
    let budget = Budget::new(ctx, &plan.bounds);
    let effect_log = EffectLog::default();
    let embedded = embedded_relations(ctx, plan);
    let ended_steps = AtomicUsize::new(0);
    let inputs = plan.steps.iter().map(|step| step.kind.inputs()).collect();
    let plan_run = PlanRun {
        ctx,
        plan,
        budget: &budget,
        effect_log: &effect_log,
        embedded: &embedded,
        ended_steps: &ended_steps,
        inputs,
    };
    let (results, step_times) = plan_run.run_steps().await;
    let returns = plan.returns.iter().map(|returned| return_result(ctx, plan, returned, &results)).collect();
    let was_cancelled = |r: &Option<StepResult>| matches!(r, Some(Err(error)) if error.is_cancelled());
    Outcome { returns, cancelled: results.iter().any(was_cancelled), receipts: effect_log.into_receipts(), step_times }
}

fn return_result(ctx: &Ctx<'_>, plan: &Plan, returned: &PlanResult, results: &[Option<StepResult>]) -> ReturnResult {
    let step = plan.steps.get(returned.step);
    let missing = || Err(Arc::new(StepError::NeverRun(returned.label.clone())));
    let result: StepResult = results.get(returned.step).cloned().flatten().unwrap_or_else(missing);
    let mut columns: Vec<String> =
        step.map(|s| s.columns.iter().map(|c| c.name.to_string()).collect()).unwrap_or_default();
    // The plan has no columns for a list that continues an earlier run, so the columns are taken from the first row.
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
}

/// The data of one run that the futures of all steps share.
struct PlanRun<'a> {
    ctx: &'a Ctx<'a>,
    plan: &'a Plan,
    budget: &'a Budget<'a>,
    effect_log: &'a EffectLog,
    /// For each step, the embedded relations that its answer must include.
    embedded: &'a [Vec<String>],
    /// The number of ended steps, for progress reports.
    ended_steps: &'a AtomicUsize,
    /// For each step, the indexes of the steps whose rows it needs.
    inputs: Vec<Vec<usize>>,
}

/// The scheduler's decision about a step that has not started.
enum StepDecision {
    /// The step waits, because an input or an earlier effect has not ended.
    Wait,
    /// The step starts, because all inputs are ready.
    Start(Inputs),
    /// The step fails without running, because an earlier step failed or the run was cancelled.
    Fail(StepError),
}

impl PlanRun<'_> {
    /// Runs all steps. Returns the result of each step and the durations of the started steps.
    async fn run_steps(&self) -> (Vec<Option<StepResult>>, Vec<StepTime>) {
        let steps = &self.plan.steps;
        let mut results: Vec<Option<StepResult>> = vec![None; steps.len()];
        let mut is_decided = vec![false; steps.len()];
        let mut step_times = Vec::with_capacity(steps.len());
        let mut running = FuturesUnordered::new();
        loop {
            // A failure can make further steps fail without running, so all undecided steps are checked again.
            let mut has_failure = true;
            while has_failure {
                has_failure = false;
                for step in 0..steps.len() {
                    if is_decided[step] {
                        continue;
                    }
                    match self.decide_step(step, &results) {
                        StepDecision::Wait => continue,
                        StepDecision::Start(inputs) => running.push(self.run_step(step, inputs)),
                        StepDecision::Fail(error) => {
                            results[step] = Some(Err(Arc::new(error)));
                            has_failure = true;
                            self.count_end();
                        }
                    }
                    is_decided[step] = true;
                }
            }
            let Some((step, time, result)) = running.next().await else { break };
            let rows = result.as_ref().ok().map(|rows: &Arc<Rowset>| rows.rows.len());
            step_times.push(StepTime { name: step_name(steps, step), time, rows });
            results[step] = Some(result);
            self.count_end();
        }
        (results, step_times)
    }

    fn decide_step(&self, index: usize, results: &[Option<StepResult>]) -> StepDecision {
        let step = &self.plan.steps[index];
        let has_ended = |other: &usize| results.get(*other).is_some_and(Option::is_some);
        if !self.inputs[index].iter().all(has_ended) || !step.after.iter().all(has_ended) {
            return StepDecision::Wait;
        }
        let mut inputs = Inputs::new();
        for input in &self.inputs[index] {
            match results.get(*input).and_then(Option::as_ref) {
                Some(Ok(rows)) => drop(inputs.insert(*input, rows.clone())),
                Some(Err(error)) => return StepDecision::Fail(self.input_failed(*input, error)),
                None => return StepDecision::Wait,
            }
        }
        if let StepKind::Effect { call, .. } = &step.kind {
            // A read that precedes an effect in the program must not see the effect. The effect therefore waits for all earlier
            // reads of its catalog, and for earlier reads of an unknown catalog.
            let may_see = |s: &Step| s.kind.calls_api() && called_catalog(s).is_none_or(|id| *id == call.catalog);
            let mut reads = self.plan.steps[..index].iter().zip(results).filter(|(s, _)| may_see(s));
            if reads.any(|(_, result)| result.is_none()) {
                return StepDecision::Wait;
            }
            for (other, other_step) in self.plan.steps.iter().enumerate() {
                let is_before = other < index || step.after == Some(other);
                if !is_before || !is_effect(other_step) {
                    continue;
                }
                match &results[other] {
                    None => return StepDecision::Wait,
                    Some(Err(cause)) => return StepDecision::Fail(self.earlier_effect_failed(other, cause)),
                    Some(Ok(_)) => {}
                }
            }
        }
        if self.ctx.cancel.is_cancelled() && step.kind.calls_api() {
            return StepDecision::Fail(StepError::Cancelled);
        }
        StepDecision::Start(inputs)
    }

    async fn run_step(&self, index: usize, inputs: Inputs) -> (usize, Duration, StepResult) {
        let started = Instant::now();
        let embedded = self.embedded.get(index).map_or(&[][..], Vec::as_slice);
        let allowance = Allowance::of(self.budget, &self.plan.steps[index], embedded);
        let report = || self.report();
        let work = StepWork {
            ctx: self.ctx,
            steps: &self.plan.steps,
            index,
            inputs: &inputs,
            allowance: &allowance,
            effect_log: Some(self.effect_log),
            outer: None,
            report: &report,
        };
        let result = step::run(&work).await.map(Arc::new).map_err(Arc::new);
        (index, started.elapsed(), result)
    }

    fn count_end(&self) {
        self.ended_steps.fetch_add(1, Ordering::Relaxed);
        self.report();
    }

    fn report(&self) {
        if let Some(progress) = self.ctx.progress {
            progress.report(StepProgress {
                steps_done: self.ended_steps.load(Ordering::Relaxed),
                steps: self.plan.steps.len(),
                effects_done: self.effect_log.effects_done(),
            });
        }
    }

    /// Returns the error of a step whose input failed. The error names the first failed step in the chain of inputs.
    fn input_failed(&self, input: usize, error: &Arc<StepError>) -> StepError {
        match error.as_ref() {
            StepError::Input { step, cause } => StepError::Input { step: step.clone(), cause: cause.clone() },
            StepError::After { step, cause } => StepError::After { step: step.clone(), cause: cause.clone() },
            StepError::Cancelled => StepError::Cancelled,
            _ => StepError::Input { step: step_name(&self.plan.steps, input), cause: error.clone() },
        }
    }

    /// Returns the error of an effect that did not start because an earlier effect failed.
    fn earlier_effect_failed(&self, effect: usize, error: &Arc<StepError>) -> StepError {
        match error.as_ref() {
            StepError::After { step, cause } | StepError::Input { step, cause } => {
                StepError::After { step: step.clone(), cause: cause.clone() }
            }
            StepError::Cancelled => StepError::Cancelled,
            _ => StepError::After { step: step_name(&self.plan.steps, effect), cause: error.clone() },
        }
    }
}

/// Returns the catalog that a step calls; `None` if the plan does not record it.
fn called_catalog(step: &Step) -> Option<&base::CatalogId> {
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

/// Returns, for each step, the embedded relations that its answer must include because a later step follows them.
fn embedded_relations(ctx: &Ctx<'_>, plan: &Plan) -> Vec<Vec<String>> {
    let mut embedded = vec![Vec::new(); plan.steps.len()];
    for step in &plan.steps {
        let StepKind::Follow { input, relation, .. } = &step.kind else { continue };
        let of = plan.steps.get(*input).and_then(|s| s.of.as_ref());
        let entity = of.and_then(|of| ctx.catalogs.get(&of.catalog)?.entity(&of.entity));
        let via = entity.and_then(|e| e.relations.get(relation.as_str())).map(|r| &r.via);
        if !matches!(via, Some(Via::Embedded { .. })) {
            continue;
        }
        // The input may be a pure step, so the chain of inputs is followed back to the step that read the rows.
        let mut reader = *input;
        while let Some(before) = plan.steps.get(reader).filter(|s| !s.kind.calls_api()).and_then(|s| s.kind.input()) {
            reader = before;
        }
        if let Some(relations) = embedded.get_mut(reader) {
            relations.push(relation.to_string());
        }
    }
    embedded
}

/// Returns the columns that the catalog marks with `show: artifact`.
fn long_columns(ctx: &Ctx<'_>, step: &Step) -> Vec<String> {
    let entity = step.of.as_ref().and_then(|of| ctx.catalogs.get(&of.catalog)?.entity(&of.entity));
    let fields = entity.into_iter().flat_map(|e| e.fields.values());
    let has_column = |name: &String| step.columns.iter().any(|c| c.name == *name);
    fields.filter(|f| f.show == Show::Artifact && has_column(&f.name)).map(|f| f.name.clone()).collect()
}
