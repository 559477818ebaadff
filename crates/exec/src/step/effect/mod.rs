//! The effect step: one effect, or one effect for each row in row order.
//! Invariant: all values of all rows are computed before the first effect is sent. The receipt of an effect is stored as open
//! before the effect is sent. The first effect that does not succeed stops all later effects.

mod departure;
mod perform;
mod probe;
mod verdict;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catalog::{Args, Capability, Catalog, Idempotency, Row};
use futures::{FutureExt, StreamExt, stream};
use lang::plan::{Bounds, Step};
use ports::receipts::Receipt;

use crate::budget::Budget;
use crate::call::{ReadContext, Target};
use crate::ctx::Ctx;
use crate::error::StepError;
use crate::outcome::Rowset;

/// The finding of a later look for an effect whose answer was lost. Each variant has the name of the probe.
#[derive(Debug, Clone, PartialEq)]
pub enum Sighting {
    /// The effect happened. The rows prove it; there is none for a delete.
    Happened { probe: String, rows: Vec<Row> },
    /// The effect has not happened until now.
    NotFound { probe: String },
}

/// Looks again for an effect whose answer was lost, by its probe. `None` if the look decides nothing.
pub async fn look_again(ctx: &Ctx<'_>, catalog: &Catalog, capability: &Capability, args: &Args) -> Option<Sighting> {
    let bounds = Bounds::default();
    let budget = Budget::new(ctx, &bounds);
    let (probe, finding) = probe::run(ctx, &budget, Target { catalog, capability }, args).await?;
    Some(match finding {
        probe::ProbeFinding::Happened(rows) => Sighting::Happened { probe, rows },
        probe::ProbeFinding::DidNotHappen => Sighting::NotFound { probe },
    })
}

/// The receipts and the number of effects of one run. All effect steps of the run share the log.
#[derive(Default)]
pub struct EffectLog {
    /// The receipts of all effects, in plan order and row order.
    receipts: Mutex<Vec<Receipt>>,
    /// The number of effects that succeeded, for progress reports.
    done: AtomicUsize,
}

impl EffectLog {
    /// Returns the number of effects that succeeded.
    pub fn effects_done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    fn add(&self, receipts: Vec<Receipt>) {
        self.receipts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(receipts);
    }

    /// Returns all receipts at the end of the run.
    pub fn into_receipts(self) -> Vec<Receipt> {
        self.receipts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The context in which one step performs its effects.
pub struct EffectStep<'a> {
    pub reads: ReadContext<'a>,
    pub budget: &'a Budget<'a>,
    pub effect_log: &'a EffectLog,
    /// Reports progress after each effect.
    pub report: &'a (dyn Fn() + Sync),
    /// The index of the step in the plan. It is a part of each effect's id.
    pub index: usize,
    pub step: &'a Step,
    pub target: Target<'a>,
}

impl EffectStep<'_> {
    /// Returns the properties of the effect that the catalog declares.
    fn effect(&self) -> Option<&catalog::EffectProperties> {
        self.target.capability.effect.as_ref()
    }

    /// Returns whether the API accepts an idempotency key. The API uses the key to recognise a repeated request.
    fn has_idempotency_key(&self) -> bool {
        self.effect().and_then(|e| e.idempotency.as_ref()).is_some_and(|i| *i != Idempotency::Natural)
    }

    /// Returns whether sending the effect twice has the same result as sending it once.
    fn is_repeatable(&self) -> bool {
        self.effect().is_some_and(|e| e.idempotency.is_some())
    }
}

/// Performs one effect for each element of `args_per_effect`. `input` is the row set from which the arguments were made; its
/// coverage is added to the result.
pub async fn apply(
    effect_step: &EffectStep<'_>,
    args_per_effect: Vec<Args>,
    input: &Rowset,
) -> Result<Rowset, StepError> {
    let count = args_per_effect.len();
    if count > effect_step.step.effects {
        return Err(StepError::Bound { what: "effects", bound: effect_step.step.effects });
    }
    // All requests are bound before the first effect is sent. A value that cannot be sent must be reported before any row is
    // changed.
    for args in &args_per_effect {
        catalog::bind(effect_step.target.catalog, effect_step.target.capability, &catalog::BindInput::new(args))?;
    }
    let is_concurrent = effect_step.effect().is_some_and(|e| e.concurrent);
    let concurrency = if is_concurrent { effect_step.reads.ctx.limits.calls_per_origin.max(1) } else { 1 };
    let is_stopped = &AtomicBool::new(false);
    let perform_one = |(row, args): (usize, Args)| async move {
        if is_stopped.load(Ordering::Acquire) {
            return None;
        }
        let effect = perform::perform(effect_step, row, &args).await;
        match &effect.result {
            Ok(_) => drop(effect_step.effect_log.done.fetch_add(1, Ordering::Relaxed)),
            Err(_) => is_stopped.store(true, Ordering::Release),
        }
        (effect_step.report)();
        Some((row, effect))
    };
    let effects: Vec<_> = args_per_effect.into_iter().enumerate().map(|pair| perform_one(pair).boxed()).collect();
    // When an effect fails, the effects that are already running are awaited, so that every sent effect gets a closed receipt.
    let results: Vec<_> = stream::iter(effects).buffered(concurrency).collect().await;
    let rows = collect(effect_step, results.into_iter().flatten(), count)?;
    Ok(Rowset::complete(rows).with_coverage(&input.coverage))
}

/// Merges the results of all effects in row order. The failure with the lowest row becomes the error. `count` is the number of
/// planned effects.
fn collect(
    effect_step: &EffectStep<'_>,
    results: impl Iterator<Item = (usize, perform::EffectResult)>,
    count: usize,
) -> Result<Vec<Row>, StepError> {
    let mut rows = Vec::new();
    let mut receipts = Vec::new();
    let mut done = 0;
    let mut first_failure = None;
    for (row, perform::EffectResult { receipt, result }) in results {
        receipts.extend(receipt);
        match result {
            Ok(answer_rows) => {
                done += 1;
                rows.extend(answer_rows);
            }
            Err(cause) if first_failure.is_none() => first_failure = Some((row, cause)),
            Err(_) => {}
        }
    }
    effect_step.effect_log.add(receipts);
    match first_failure {
        None => Ok(rows),
        Some((_, cause)) if count == 1 => Err(cause),
        Some((row, cause)) => Err(StepError::Effect { row, of: count, done, cause: Box::new(cause) }),
    }
}
