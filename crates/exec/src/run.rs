//! A plan, from its first ready step to its last.
//! Invariant: a step starts as soon as its input is there, whatever else is still running; it runs at most once.

use std::sync::Arc;

use catalog::Show;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use lang::plan::{Plan, Step};

use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::{Finished, Outcome, Rowset};
use crate::step;

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
                Some(Some(Err(error))) => done[at] = Some(Err(Arc::new(not_run(plan, step, error)))),
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
        let missing = || Err(Arc::new(StepError::NeverRun(returned.label.clone())));
        Finished {
            long_columns: step.map(|s| long_columns(ctx, s)).unwrap_or_default(),
            label: returned.label.clone(),
            entity: step.and_then(|s| s.of.as_ref()).map(|of| of.entity.clone()).unwrap_or_default(),
            columns: step.map(|s| s.columns.iter().map(|c| c.name.clone()).collect()).unwrap_or_default(),
            result: done.get(returned.step).cloned().flatten().unwrap_or_else(missing),
        }
    };
    Outcome { returns: plan.returns.iter().map(finished).collect() }
}

fn input_known(plan: &Plan, done: &[Option<StepResult>], at: usize) -> bool {
    plan.steps[at].kind.input().is_none_or(|input| done[input].is_some())
}

fn not_run(plan: &Plan, step: &Step, error: &Arc<StepError>) -> StepError {
    if let StepError::Input { step, cause } = error.as_ref() {
        return StepError::Input { step: step.clone(), cause: cause.clone() };
    }
    let input = step.kind.input().unwrap_or(0);
    let label = plan.steps.get(input).and_then(|s| s.label.as_ref()).map(|label| format!("`{label}`"));
    StepError::Input { step: label.unwrap_or_else(|| format!("step {:02}", input + 1)), cause: error.clone() }
}

fn long_columns(ctx: &Ctx<'_>, step: &Step) -> Vec<String> {
    let entity = step.of.as_ref().and_then(|of| ctx.catalogs.get(&of.catalog)?.entity(&of.entity));
    let fields = entity.into_iter().flat_map(|e| e.fields.values());
    let has = |name: &String| step.columns.iter().any(|c| &c.name == name);
    fields.filter(|f| f.show == Show::Artifact && has(&f.name)).map(|f| f.name.clone()).collect()
}

async fn numbered(at: usize, work: impl Future<Output = StepResult>) -> (usize, StepResult) {
    (at, work.await)
}

async fn run_step(ctx: &Ctx<'_>, plan: &Plan, step: &Step, input: Option<Arc<Rowset>>) -> StepResult {
    let input = input.unwrap_or_default();
    step::run(ctx, plan, step, &input).await.map(Arc::new).map_err(Arc::new)
}
