//! The program runs of this process.
//! Invariant: a run is listed from before its first call until its result is stored. Every waiting caller gets its
//! outcome, and only a durable result is reported.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base::{RunId, TenantId, Timestamp};
use lang::plan::Plan;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::open_run::HeldLease;
use crate::run_result::{RunProgress, RunResult};
use crate::sync::lock;

/// The outcome of a run, shared by all callers that wait for it.
pub(crate) type RunEnd = Result<Arc<RunResult>, Arc<Error>>;

/// A handle on one run of this process.
#[derive(Clone)]
pub(crate) struct LiveRun {
    pub run: RunId,
    /// Cancels the run before its next call or effect.
    pub cancel: CancellationToken,
    /// The progress, as last reported.
    pub progress: watch::Receiver<RunProgress>,
    /// The plan that runs. An operation's row stores it, so that another process can continue the run.
    pub plan: Arc<Plan>,
    /// The text of the program, for the rows of the operation and of the result.
    pub program: String,
    /// When the run began, or began again after a takeover.
    pub started: Timestamp,
    /// The lease of this process on the run, with the version that its next write requires. Locked while the stored row is
    /// changed, so that a handle and a first receipt do not both create it.
    pub lease: Arc<tokio::sync::Mutex<HeldLease>>,
    /// Another process owns the run now, so this one stores nothing more.
    lost: Arc<AtomicBool>,
    /// The outcome, once the run's task has reported it.
    end: watch::Receiver<Option<RunEnd>>,
    /// The result is durable, although `end` may not be set yet. Separate from `end`, because it is set under the
    /// session's turn.
    stored: Arc<AtomicBool>,
    /// The number of the operation through which callers ask for the run, once it is detached.
    operation: Arc<Mutex<Option<u64>>>,
}

/// The data of a new live run.
pub(crate) struct NewRun {
    pub run: RunId,
    pub plan: Plan,
    pub program: String,
    pub started: Timestamp,
    pub lease: HeldLease,
}

/// The program runs of this process, by id.
#[derive(Default)]
pub(crate) struct LiveRuns {
    runs: Mutex<HashMap<RunId, LiveRun>>,
    /// Runs that this process is about to own: their leases may be stored already, and they are not listed yet.
    starting: Arc<Mutex<HashSet<RunId>>>,
}

/// The intention of one task to start a run. While it exists, no other task of this process takes the run for one that lost its
/// driver.
#[derive(Debug)]
pub(crate) struct Starting {
    run: RunId,
    starting: Arc<Mutex<HashSet<RunId>>>,
}

impl Drop for Starting {
    fn drop(&mut self) {
        lock(&self.starting).remove(&self.run);
    }
}

impl LiveRuns {
    /// Adds a run. Returns false if it is already listed.
    pub fn add(&self, live: LiveRun) -> bool {
        let mut runs = lock(&self.runs);
        if runs.contains_key(&live.run) {
            return false;
        }
        runs.insert(live.run, live);
        true
    }

    fn remove(&self, run: RunId) {
        lock(&self.runs).remove(&run);
    }

    pub fn count(&self) -> usize {
        lock(&self.runs).len()
    }

    pub fn get(&self, run: RunId) -> Option<LiveRun> {
        lock(&self.runs).get(&run).cloned()
    }

    /// Announces that the caller will own and add a run. `None` if another task of this process does so already.
    pub fn begin(&self, run: RunId) -> Option<Starting> {
        lock(&self.starting).insert(run).then(|| Starting { run, starting: self.starting.clone() })
    }
}

/// Removes a run from the list when dropped, even if its task panics.
pub(crate) struct LiveRunGuard<'a> {
    /// The list that has the run.
    pub lives: &'a LiveRuns,
    pub run: RunId,
}

impl Drop for LiveRunGuard<'_> {
    fn drop(&mut self) {
        self.lives.remove(self.run);
    }
}

/// The sending halves that the run's task keeps.
pub(crate) struct RunSenders {
    /// Reports the progress to callers that watch the run.
    pub progress: watch::Sender<RunProgress>,
    /// Reports the outcome, once. If the task dies without reporting, dropping the sender wakes the waiting callers.
    pub end: watch::Sender<Option<RunEnd>>,
}

impl LiveRun {
    pub fn new(new_run: NewRun) -> (Self, RunSenders) {
        let (progress_sender, progress) = watch::channel(RunProgress::default());
        let (end_sender, end) = watch::channel(None);
        let NewRun { run, plan, program, started, lease } = new_run;
        let live = Self {
            run,
            cancel: CancellationToken::new(),
            progress,
            plan: Arc::new(plan),
            program,
            started,
            operation: Arc::new(Mutex::new(lease.row.operation)),
            lease: Arc::new(tokio::sync::Mutex::new(lease)),
            lost: Arc::default(),
            end,
            stored: Arc::default(),
        };
        (live, RunSenders { progress: progress_sender, end: end_sender })
    }

    /// Waits for the run's outcome.
    pub async fn wait_for_end(&self) -> Result<Arc<RunResult>, Error> {
        let mut end = self.end.clone();
        let outcome = end.wait_for(Option::is_some).await.map(|outcome| outcome.clone());
        match outcome {
            Ok(Some(Ok(result))) => Ok(result),
            Ok(Some(Err(error))) => Err(Error::Shared(error)),
            // The task ended without a result: a defect of ours. Its receipts are in the store.
            Ok(None) | Err(_) => Err(Error::Lost),
        }
    }

    /// Returns whether the result is stored, or there will be none. From then on the run needs no operation.
    pub fn has_ended(&self) -> bool {
        // Pairs with the release in `mark_stored`: a caller that sees the mark also sees the stored result.
        self.stored.load(Ordering::Acquire) || self.end.borrow().is_some()
    }

    /// Marks the result as stored. Called under the session's turn, so that a detaching caller sees either the
    /// operation or the result.
    pub fn mark_stored(&self) {
        self.stored.store(true, Ordering::Release);
    }

    /// Returns the number of the run's operation, if a caller has a handle for it.
    pub fn operation(&self) -> Option<u64> {
        *lock(&self.operation)
    }

    /// Records the operation under which the run is detached.
    pub fn set_operation(&self, number: Option<u64>) {
        *lock(&self.operation) = number;
    }

    /// Records that another process owns the run, and stops it here.
    pub fn lose(&self) {
        self.lost.store(true, Ordering::Release);
        self.cancel.cancel();
    }

    /// Returns whether another process owns the run.
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Returns a guard that cancels the run if its caller's future is dropped.
    pub fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop { live: self.clone(), armed: true }
    }
}

/// Cancels a run whose caller is gone, unless another caller has a handle for it.
pub(crate) struct StopOnDrop {
    live: LiveRun,
    /// Cleared once the caller has its answer.
    armed: bool,
}

impl StopOnDrop {
    /// Lets the run go on without this caller.
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

/// The number of detached runs of each tenant. A tenant without one has no entry.
#[derive(Default)]
pub(crate) struct DetachedRuns(Mutex<HashMap<TenantId, usize>>);

/// The place of one detached run. Dropping it frees the place.
pub(crate) struct DetachedPlace {
    runs: Arc<DetachedRuns>,
    tenant: TenantId,
}

impl DetachedRuns {
    /// Counts one more run.
    pub fn enter(self: &Arc<Self>, tenant: &TenantId) -> DetachedPlace {
        *lock(&self.0).entry(tenant.clone()).or_default() += 1;
        DetachedPlace { runs: self.clone(), tenant: tenant.clone() }
    }

    /// Counts one more run, unless the tenant or all tenants together have as many as they may have.
    pub fn try_enter(
        self: &Arc<Self>,
        tenant: &TenantId,
        of_tenant: usize,
        of_all: usize,
    ) -> Result<DetachedPlace, Error> {
        let mut counts = lock(&self.0);
        if counts.get(tenant).is_some_and(|count| *count >= of_tenant) {
            return Err(Error::TooManyDetached { what: "this tenant has", most: of_tenant });
        }
        if counts.values().sum::<usize>() >= of_all {
            return Err(Error::TooManyDetached { what: "this server has", most: of_all });
        }
        *counts.entry(tenant.clone()).or_default() += 1;
        Ok(DetachedPlace { runs: self.clone(), tenant: tenant.clone() })
    }
}

impl Drop for DetachedPlace {
    fn drop(&mut self) {
        let mut counts = lock(&self.runs.0);
        let left = counts.get(&self.tenant).map_or(0, |count| count.saturating_sub(1));
        match left {
            0 => counts.remove(&self.tenant),
            left => counts.insert(self.tenant.clone(), left),
        };
    }
}

impl DetachedPlace {
    /// Keeps the place until the run has ended.
    pub fn hold_until_end(self, live: &LiveRun) {
        let live = live.clone();
        tokio::spawn(async move {
            // The outcome is for the callers that ask for it.
            drop(live.wait_for_end().await);
            drop(self);
        });
    }
}
