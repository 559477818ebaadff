//! Runs under way in this process.
//! Invariant: a run is in the list from before its first call until its result is kept; what it came to is told to everyone
//! who waits, and only a result that is durable is told.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::RunId;
use exec::{Continuation, Ctx};
use lang::plan::Plan;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::Ran;
use super::gate::Ticket;
use super::operation::{Asks, Told};
use super::receipts::StoredReceipts;
use crate::caller::Caller;
use crate::error::Error;
use crate::load::Session;
use crate::service::Service;

type End = Result<Arc<Ran>, Arc<Error>>;

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

pub(crate) struct Work {
    pub ticket: Ticket,
    pub pages: BTreeMap<String, Continuation>,
    /// The operation that is taken up again after a restart.
    pub operation: Option<u64>,
}

impl Work {
    pub fn new(ticket: Ticket, pages: BTreeMap<String, Continuation>) -> Self {
        Self { ticket, pages, operation: None }
    }
}

impl Lives {
    pub fn get(&self, run: RunId) -> Option<Live> {
        lock(&self.0).get(&run).cloned()
    }
}

impl Live {
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

/// Hands what a run says of its progress to whoever asks.
struct Telling(watch::Sender<Told>);

impl exec::Progress for Telling {
    fn tell(&self, told: exec::Told) {
        self.0.send_replace(Told::from(told));
    }
}

impl Service {
    /// Starts a run in a task of its own.
    pub(super) fn start(self: &Arc<Self>, caller: &Caller, session: &Arc<Session>, work: Work) -> Live {
        let (told_to, told) = watch::channel(Told::default());
        let (end_to, end) = watch::channel(None);
        let live = Live {
            run: work.ticket.run,
            cancel: CancellationToken::new(),
            told,
            plan: Arc::new(work.ticket.planned.plan.clone()),
            program: work.ticket.program.clone(),
            end,
            operation: Arc::new(Mutex::new(work.operation)),
        };
        lock(&self.lives.0).insert(live.run, live.clone());
        let (service, caller, session, mine) = (self.clone(), caller.clone(), session.clone(), live.clone());
        let task = async move {
            let beating = service.beat(&caller, &session, &mine);
            let running = service.execute_run(&caller, &session, (work, &mine), Telling(told_to));
            let ended = tokio::select! {
                ended = running => ended,
                never = beating => match never {},
            };
            end_to.send_replace(Some(ended.map(Arc::new).map_err(Arc::new)));
            lock(&service.lives.0).remove(&mine.run);
        };
        tokio::spawn(tracing::Instrument::in_current_span(task));
        live
    }

    async fn execute_run(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Session,
        (work, live): (Work, &Live),
        telling: Telling,
    ) -> Result<Ran, Error> {
        let Work { ticket: Ticket { planned, run, program, claim }, pages, .. } = work;
        let calls = self.calls_of(session.id);
        let receipts = StoredReceipts { store: self.ports.store.as_ref(), tenant: &caller.tenant, session: session.id };
        let asks = Asks { service: self, caller, session };
        let mut ctx = Ctx::new(self.ports.upstream.as_ref(), &caller.tenant, &session.catalogs, &self.limits, &calls)
            .with_effects(run, &receipts);
        ctx.cancel = live.cancel.clone();
        ctx.progress = Some(&telling);
        ctx.pages = Some(&pages);
        ctx.operations = Some(&asks);
        let outcome = exec::run(&ctx, &planned.plan).await;
        for failed in outcome.returns.iter().filter_map(|r| r.result.as_ref().err()) {
            tracing::warn!(error = %failed, "a step failed");
        }
        let kept = self.keep(caller, session, (live, &planned, &outcome), claim).await?;
        let (number, pages) = (kept.number, kept.pages);
        let (plan, notes) = (planned.plan.digest, planned.notes);
        Ok(Ran { slot: session.slot, plan, program, notes, outcome, number, run, pages, replayed: false })
    }
}

/// A panic while holding one of these locks leaves a list, never half a fact.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
