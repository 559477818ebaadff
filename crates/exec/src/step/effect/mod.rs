//! Effects: one, or one for each row, in row order.
//! Invariant: every value of every row is there before the first effect leaves; each effect has an open receipt before it
//! leaves; the first one that does not succeed stops all that come after it.

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

/// What effects of a run have in common.
#[derive(Default)]
pub struct Ledger {
    receipts: Mutex<Vec<Receipt>>,
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

/// The effects of one step.
pub struct Doing<'a> {
    pub reads: Reads<'a>,
    pub budget: &'a Budget<'a>,
    pub ledger: &'a Ledger,
    /// Told after each effect.
    pub tell: &'a (dyn Fn() + Sync),
    pub at: usize,
    pub step: &'a Step,
    pub target: Target<'a>,
}

impl Doing<'_> {
    fn effect(&self) -> Option<&catalog::Effect> {
        self.target.1.effect.as_ref()
    }

    /// Whether the API takes a key by which it recognises a repetition.
    fn keyed(&self) -> bool {
        self.effect().and_then(|e| e.idempotency.as_ref()).is_some_and(|i| *i != Idempotency::Natural)
    }

    /// Whether doing it twice is doing it once.
    fn repeatable(&self) -> bool {
        self.effect().is_some_and(|e| e.idempotency.is_some())
    }
}

/// One effect for each of the arguments; `input` is what they were made from.
pub async fn apply(doing: &Doing<'_>, each: Vec<Args>, input: &Rowset) -> Result<Rowset, StepError> {
    if each.len() > doing.step.effects {
        return Err(StepError::Bound { what: "effects", bound: doing.step.effects });
    }
    // A value that cannot travel is told before anything leaves, not after some of the rows have.
    for args in &each {
        catalog::bind(doing.target.0, doing.target.1, &catalog::Ask::new(args))?;
    }
    let (of, stopped) = (each.len(), AtomicBool::new(false));
    let concurrent = doing.effect().is_some_and(|e| e.concurrent);
    let at_once = if concurrent { doing.reads.ctx.limits.calls_per_origin.max(1) } else { 1 };
    let stopped = &stopped;
    let begin = |(row, args): (usize, Args)| async move {
        if stopped.load(Ordering::Acquire) {
            return None;
        }
        let ended = one::perform(doing, row, &args).await;
        match &ended.result {
            Ok(_) => drop(doing.ledger.done.fetch_add(1, Ordering::Relaxed)),
            Err(_) => stopped.store(true, Ordering::Release),
        }
        (doing.tell)();
        Some((row, ended))
    };
    let work: Vec<_> = each.into_iter().enumerate().map(|pair| begin(pair).boxed()).collect();
    // Those that are under way when one fails are waited for: what has left has a receipt that says how it ended.
    let ended: Vec<_> = stream::iter(work).buffered(at_once).collect().await;
    collect(doing, ended.into_iter().flatten(), of).map(|rows| Rowset::complete(rows).covered(&input.coverage))
}

fn collect(
    doing: &Doing<'_>,
    ended: impl Iterator<Item = (usize, one::Ended)>,
    of: usize,
) -> Result<Vec<Row>, StepError> {
    let (mut rows, mut receipts, mut done, mut failed) = (Vec::new(), Vec::new(), 0, None);
    for (row, one::Ended { receipt, result }) in ended {
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
