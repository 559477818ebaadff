//! Effects: one, or one for each row, in row order.
//! Invariant: all values of all rows are known before the first effect leaves; each effect has an open receipt before
//! it leaves; the first effect that does not succeed stops all later ones.

mod one;
mod probe;
mod verdict;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catalog::{Args, Idempotency, Row};
use futures::{FutureExt, StreamExt, stream};
use lang::plan::Step;
use ports::receipts::Receipt;

use crate::budget::Budget;
use crate::call::{Reads, Target};
use crate::error::StepError;
use crate::outcome::Rowset;

/// The receipts and the count of effects of one run, shared by its effect steps.
#[derive(Default)]
pub struct Ledger {
    /// Receipts in the order of the effects.
    receipts: Mutex<Vec<Receipt>>,
    /// Effects that succeeded, for the progress.
    done: AtomicUsize,
}

impl Ledger {
    pub fn done(&self) -> usize {
        self.done.load(Ordering::Relaxed)
    }

    fn add(&self, receipts: Vec<Receipt>) {
        self.receipts.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(receipts);
    }

    pub fn into_receipts(self) -> Vec<Receipt> {
        self.receipts.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The context of one step's effects.
pub struct EffectStep<'a> {
    pub reads: Reads<'a>,
    pub budget: &'a Budget<'a>,
    pub ledger: &'a Ledger,
    /// Called after each effect.
    pub report: &'a (dyn Fn() + Sync),
    pub at: usize,
    pub step: &'a Step,
    pub target: Target<'a>,
}

impl EffectStep<'_> {
    fn effect(&self) -> Option<&catalog::EffectProperties> {
        self.target.capability.effect.as_ref()
    }

    /// Whether the API takes an idempotency key, by which it recognises a repetition.
    fn keyed(&self) -> bool {
        self.effect().and_then(|e| e.idempotency.as_ref()).is_some_and(|i| *i != Idempotency::Natural)
    }

    /// Whether doing the effect twice has the same result as doing it once.
    fn repeatable(&self) -> bool {
        self.effect().is_some_and(|e| e.idempotency.is_some())
    }
}

/// Performs one effect for each set of arguments. `input` is the row set from which they were made.
pub async fn apply(doing: &EffectStep<'_>, each: Vec<Args>, input: &Rowset) -> Result<Rowset, StepError> {
    if each.len() > doing.step.effects {
        return Err(StepError::Bound { what: "effects", bound: doing.step.effects });
    }
    // A value that cannot be sent is reported before the first effect leaves, not after some rows were changed.
    for args in &each {
        catalog::bind(doing.target.catalog, doing.target.capability, &catalog::BindInput::new(args))?;
    }
    let (of, stopped) = (each.len(), AtomicBool::new(false));
    let concurrent = doing.effect().is_some_and(|e| e.concurrent);
    let at_once = if concurrent { doing.reads.ctx.limits.calls_per_origin.max(1) } else { 1 };
    let stopped = &stopped;
    let begin = |(row, args): (usize, Args)| async move {
        if stopped.load(Ordering::Acquire) {
            return None;
        }
        let effect = one::perform(doing, row, &args).await;
        match &effect.result {
            Ok(_) => drop(doing.ledger.done.fetch_add(1, Ordering::Relaxed)),
            Err(_) => stopped.store(true, Ordering::Release),
        }
        (doing.report)();
        Some((row, effect))
    };
    let work: Vec<_> = each.into_iter().enumerate().map(|pair| begin(pair).boxed()).collect();
    // Effects that are already running when one fails are awaited, so that every one that left gets a closed receipt.
    let results: Vec<_> = stream::iter(work).buffered(at_once).collect().await;
    collect(doing, results.into_iter().flatten(), of).map(|rows| Rowset::complete(rows).with_coverage(&input.coverage))
}

/// Merges the results in row order. The first failure by row becomes the error.
fn collect(
    doing: &EffectStep<'_>,
    results: impl Iterator<Item = (usize, one::EffectResult)>,
    of: usize,
) -> Result<Vec<Row>, StepError> {
    let (mut rows, mut receipts, mut done, mut failed) = (Vec::new(), Vec::new(), 0, None);
    for (row, one::EffectResult { receipt, result }) in results {
        receipts.extend(receipt);
        match result {
            Ok(answered) => {
                done += 1;
                rows.extend(answered);
            }
            Err(cause) if failed.is_none() => failed = Some((row, cause)),
            Err(_) => {}
        }
    }
    doing.ledger.add(receipts);
    match failed {
        None => Ok(rows),
        Some((_, cause)) if of == 1 => Err(cause),
        Some((row, cause)) => Err(StepError::Effect { row, of, done, cause: Box::new(cause) }),
    }
}
