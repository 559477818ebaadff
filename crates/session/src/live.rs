//! Runs under way in this process.
//! Invariant: a run is in the list from before its first call until its result is kept; what it came to is told to everyone
//! who waits, and only a result that is durable is told.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base::{RunId, Timestamp};
use lang::plan::Plan;
use ports::store::Key;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::ran::{Ran, Told};
use crate::rows::ClaimRow;
use crate::shared::lock;

pub(crate) type End = Result<Arc<Ran>, Arc<Error>>;

/// One run under way.
#[derive(Clone)]
pub(crate) struct Live {
    pub run: RunId,
    pub cancel: CancellationToken,
    pub told: watch::Receiver<Told>,
    pub plan: Arc<Plan>,
    pub program: String,
    pub started: Timestamp,
    /// What is marked as done when it ends.
    pub claim: Option<(Key, ClaimRow)>,
    /// How often the run was taken over before: an operation's row that says another number has another owner.
    pub owner: u32,
    end: watch::Receiver<Option<End>>,
    kept: Arc<AtomicBool>,
    /// The number of the operation that speaks for it, once somebody stopped waiting for it.
    operation: Arc<Mutex<Option<u64>>>,
}

/// What a run is begun with.
pub(crate) struct Begun {
    pub run: RunId,
    pub plan: Plan,
    pub program: String,
    pub started: Timestamp,
    pub claim: Option<(Key, ClaimRow)>,
    /// The number of the operation that is taken up again, and its owner.
    pub resumed: Option<(u64, u32)>,
}

#[derive(Default)]
pub(crate) struct Lives(Mutex<HashMap<RunId, Live>>);

impl Lives {
    pub fn add(&self, live: Live) {
        lock(&self.0).insert(live.run, live);
    }

    fn remove(&self, run: RunId) {
        lock(&self.0).remove(&run);
    }

    pub fn count(&self) -> usize {
        lock(&self.0).len()
    }

    pub fn get(&self, run: RunId) -> Option<Live> {
        lock(&self.0).get(&run).cloned()
    }
}

/// Takes a run off the list however its task ends, also when that panics.
pub(crate) struct Listed<'a> {
    pub lives: &'a Lives,
    pub run: RunId,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.lives.remove(self.run);
    }
}

/// The run's own end of it.
pub(crate) struct Ending {
    pub told: watch::Sender<Told>,
    pub end: watch::Sender<Option<End>>,
}

impl Live {
    pub fn new(begun: Begun) -> (Self, Ending) {
        let (told_to, told) = watch::channel(Told::default());
        let (end_to, end) = watch::channel(None);
        let Begun { run, plan, program, started, claim, resumed } = begun;
        let live = Self {
            run,
            cancel: CancellationToken::new(),
            told,
            plan: Arc::new(plan),
            program,
            started,
            claim,
            owner: resumed.map_or(0, |(_, owner)| owner),
            end,
            kept: Arc::default(),
            operation: Arc::new(Mutex::new(resumed.map(|(number, _)| number))),
        };
        (live, Ending { told: told_to, end: end_to })
    }

    pub async fn ended(&self) -> Result<Arc<Ran>, Error> {
        let mut end = self.end.clone();
        let found = end.wait_for(Option::is_some).await.map(|found| found.clone());
        match found {
            Ok(Some(Ok(ran))) => Ok(ran),
            Ok(Some(Err(error))) => Err(Error::Shared(error)),
            // The task ended without a word: a defect of ours. Its receipts are in the store.
            Ok(None) | Err(_) => Err(Error::Lost),
        }
    }

    /// Its result is kept, or there will be none: from here on it needs nobody to speak for it.
    pub fn has_ended(&self) -> bool {
        self.kept.load(Ordering::Acquire) || self.end.borrow().is_some()
    }

    /// Said by whoever kept the result, in the same turn of the session.
    pub fn is_kept(&self) {
        self.kept.store(true, Ordering::Release);
    }

    pub fn operation(&self) -> Option<u64> {
        *lock(&self.operation)
    }

    pub fn speak_as(&self, number: u64) {
        *lock(&self.operation) = Some(number);
    }

    pub fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop { live: self.clone(), armed: true }
    }
}

/// Stops a run whose caller has gone, unless someone else was given a handle for it.
pub(crate) struct StopOnDrop {
    live: Live,
    armed: bool,
}

impl StopOnDrop {
    pub fn disarm(mut self) {
        self.armed = false;
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if self.armed && self.live.operation().is_none() {
            self.live.cancel.cancel();
        }
    }
}
