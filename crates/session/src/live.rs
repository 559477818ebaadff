//! Runs under way in this process.
//! Invariant: a run is in the list from before its first call until its result is kept; what it came to is told to everyone
//! who waits, and only a result that is durable is told.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::RunId;
use lang::plan::Plan;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::ran::{Ran, Told};

pub(crate) type End = Result<Arc<Ran>, Arc<Error>>;

/// One run under way.
#[derive(Clone)]
pub(crate) struct Live {
    pub run: RunId,
    pub cancel: CancellationToken,
    pub told: watch::Receiver<Told>,
    pub plan: Arc<Plan>,
    pub program: String,
    end: watch::Receiver<Option<End>>,
    /// The number of the operation that speaks for it, once somebody stopped waiting for it.
    operation: Arc<Mutex<Option<u64>>>,
}

#[derive(Default)]
pub(crate) struct Lives(Mutex<HashMap<RunId, Live>>);

impl Lives {
    pub fn add(&self, live: Live) {
        lock(&self.0).insert(live.run, live);
    }

    pub fn remove(&self, run: RunId) {
        lock(&self.0).remove(&run);
    }

    pub fn get(&self, run: RunId) -> Option<Live> {
        lock(&self.0).get(&run).cloned()
    }
}

/// The run's own end of it.
pub(crate) struct Ending {
    pub told: watch::Sender<Told>,
    pub end: watch::Sender<Option<End>>,
}

impl Live {
    pub fn new(run: RunId, plan: Plan, program: String, operation: Option<u64>) -> (Self, Ending) {
        let (told_to, told) = watch::channel(Told::default());
        let (end_to, end) = watch::channel(None);
        let (plan, operation) = (Arc::new(plan), Arc::new(Mutex::new(operation)));
        let live = Self { run, cancel: CancellationToken::new(), told, plan, program, end, operation };
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

    pub fn has_ended(&self) -> bool {
        self.end.borrow().is_some()
    }

    pub fn operation(&self) -> Option<u64> {
        *lock(&self.operation)
    }

    pub fn speak_as(&self, number: u64) {
        *lock(&self.operation) = Some(number);
    }

    pub fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop { cancel: self.cancel.clone(), armed: AtomicBool::new(true) }
    }
}

pub(crate) struct StopOnDrop {
    cancel: CancellationToken,
    armed: AtomicBool,
}

impl StopOnDrop {
    pub fn disarm(self) {
        self.armed.store(false, Ordering::Relaxed);
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if self.armed.load(Ordering::Relaxed) {
            self.cancel.cancel();
        }
    }
}

/// A panic while holding one of these locks leaves a list, never half a fact.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
