//! The fast path: a run that finishes or parks in its first short step is stored once.
//! Invariant: no caller learns of a run before it is stored. A run that ends or waits after its first step, in an
//! unchanged session, is stored together with that outcome. Any other run is first accepted, as if it had not
//! started, and continues from there.
//!
//! Accepting and ending a run separately takes two transactions, and most runs take less time than either. A crash on
//! the fast path loses only a run that no caller knew of and that had no effect, since calls are made after a run is
//! stored.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use base::ExecutionId;
use durable::Lease;
use ports::scripts::{self, HostCall, Outcome, Stepped};
use ports::store::{self, Batch, Expect};
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::accept::{input, queue_name};
use super::drive::{AGAIN, FirstStep, ScriptRun, Start};
use super::end::{EndOutcome, EndRequest, tenant_caller};
use super::ended;
use super::park::{ParkedRun, PlanPolicy};
use crate::commit::unchanged;
use crate::engine::LiveScript;
use crate::engine::rows::{self as js_rows, ExecutionRow, JsSessionRow};
use crate::engine::view::{ExecutionState, UncaughtError};
use crate::error::{Error, JsError};
use crate::js::heaps::INLINE_BYTES;
use crate::js::output::piece_writes;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;

/// A run that takes longer is stored while it continues. The next run of its session waits until then.
pub(super) const FAST_PATH_LIMIT: Duration = Duration::from_millis(100);

/// How often the stored row is looked up after a lost answer.
const LOOKS: usize = 3;

/// A run that is not stored yet.
pub(super) struct FastPath {
    /// Its session, if it has one.
    pub began: Option<SessionAtStart>,
    /// Receives the outcome of storing the run.
    pub told: StoredSender,
}

/// A session as it was when the run started without a place in the queue.
pub(super) struct SessionAtStart {
    /// While this guard is held, no other run of the session starts or ends in this process.
    pub turn: OwnedMutexGuard<()>,
    pub session: Versioned<JsSessionRow>,
}

/// Whether a run could start without a place in the queue.
pub(super) enum FastStart {
    /// The run is stored.
    Stored(LiveScript),
    /// The run must queue. Carries the turn of its session if that was free.
    Queue(Option<OwnedMutexGuard<()>>),
}

impl Service {
    /// Starts a run that has no predecessor and returns when it is stored. It never waits for another run: a run that
    /// cannot start at once joins the queue, which is bounded and visible.
    pub(super) async fn try_fast_path(
        self: &Arc<Self>,
        caller: &Caller,
        id: ExecutionId,
        row: &ExecutionRow,
    ) -> Result<FastStart, Error> {
        let mut began = None;
        if let Some(name) = &row.session {
            let Some(turn) = self.try_turn(&queue_name(caller, name)) else { return Ok(FastStart::Queue(None)) };
            let session = self.js_session_for_new_run(caller, name).await?;
            if !session.row.waiting.is_empty() {
                return Ok(FastStart::Queue(Some(turn)));
            }
            began = Some(SessionAtStart { turn, session });
        }
        let head = began.as_ref().and_then(|began| began.session.row.head);
        let (told, stored) = oneshot::channel();
        let row = ExecutionRow {
            state: ExecutionState::Running,
            started: Some(self.now()),
            input_heap: input(row.from, head),
            ..row.clone()
        };
        let at = Versioned { row, version: 0 };
        let Some(live) = self.spawn_driver(&caller.tenant, id, at, Start::FastPath(FastPath { began, told }))? else {
            return Ok(FastStart::Queue(None));
        };
        match stored.await {
            Ok(stored) => stored.map(|()| FastStart::Stored(live)),
            Err(gone) => Err(JsError::Engine(scripts::Error::Engine(gone.into())).into()),
        }
    }
}

impl ScriptRun {
    pub(super) fn is_cancelled(&self) -> bool {
        self.live.leave.is_cancelled()
    }

    /// Stores a run as cancelled that its caller left before it was stored. The result of its step is dropped.
    pub(super) async fn store_cancelled(
        &mut self,
        began: Option<SessionAtStart>,
        mut told: Option<StoredSender>,
    ) -> FirstStep {
        let next = ended(&self.at.row, ExecutionState::Cancelled, self.moment());
        let (tenant, id, at) = (&self.tenant, self.id, &self.at);
        let ending = EndRequest { tenant, id, at, next, heap: None, pieces: Vec::new(), began };
        let stored = match self.service.end(ending).await {
            Ok(EndOutcome::Done(now) | EndOutcome::Changed(now)) => {
                self.now(now);
                Ok(())
            }
            Ok(EndOutcome::Moved) => Ok(()),
            Err(error) => Err(error),
        };
        tell(&mut told, stored);
        FirstStep::Break(Ok(()))
    }

    pub(super) async fn store_finished_step(
        &mut self,
        stepped: Result<Stepped, Error>,
        mut began: Option<SessionAtStart>,
        mut told: Option<StoredSender>,
    ) -> FirstStep {
        if let Ok(stepped) = &stepped {
            match self.try_store_first_step(stepped, &mut began).await {
                Ok(true) => {
                    tell(&mut told, Ok(()));
                    return if self.at.row.state.is_final() {
                        FirstStep::Break(Ok(()))
                    } else {
                        FirstStep::Continue(None)
                    };
                }
                Ok(false) => {}
                // The run is accepted instead, if the storage allows, and its end is retried.
                Err(error) => {
                    tracing::warn!(execution = %self.id, %error, "the result of a first step could not be stored, so the run is accepted first")
                }
            }
            self.forget_output();
        }
        let at = match self.accepted(began).await {
            Ok(at) => at,
            Err(error) => {
                tell(&mut told, Err(error));
                return FirstStep::Break(Ok(()));
            }
        };
        let same = same_input_heap(&at.row, &self.at.row);
        self.now(at);
        tell(&mut told, Ok(()));
        match same {
            // The end or the parked state was stored, although the store's answer was lost.
            _ if self.at.row.state.is_final() => FirstStep::Break(Ok(())),
            _ if self.at.row.parked.is_some() => FirstStep::Continue(None),
            true => FirstStep::Continue(Some(stepped)),
            false => FirstStep::Continue(None),
        }
    }

    /// Returns false if the run must be accepted first.
    async fn try_store_first_step(
        &mut self,
        stepped: &Stepped,
        began: &mut Option<SessionAtStart>,
    ) -> Result<bool, Error> {
        // A heap that takes long to store would delay the answer and hold the session's turn, so the run is accepted
        // first.
        let large = stepped.heap.object.len() >= INLINE_BYTES
            || !self.service.engine_is_stored_for(&self.tenant, &self.at.row)?;
        match &stepped.outcome {
            Outcome::Completed(_) | Outcome::Waiting { .. } if large => Ok(false),
            Outcome::Completed(_) => self.store_ended(stepped, (ExecutionState::Completed, None), began.take()).await,
            Outcome::Threw(thrown) => {
                let error = Some(UncaughtError::from(thrown.clone()));
                self.store_ended(stepped, (ExecutionState::Failed, error), began.take()).await
            }
            // The run waits for a promise that no call will settle. The driver ends it as failed.
            Outcome::Waiting { owed } if owed.is_empty() => Ok(false),
            Outcome::Waiting { owed } => Box::pin(self.store_waiting(stepped, owed, began.as_ref())).await,
        }
    }

    /// Returns false if the session has changed since the run started.
    async fn store_ended(
        &mut self,
        stepped: &Stepped,
        (state, error): (ExecutionState, Option<UncaughtError>),
        began: Option<SessionAtStart>,
    ) -> Result<bool, Error> {
        let (next, pieces) = self.last(state, error, Some(stepped)).await?;
        let heap = Some(&stepped.heap).filter(|_| state == ExecutionState::Completed);
        let (tenant, id, at) = (&self.tenant, self.id, &self.at);
        match self.service.end(EndRequest { tenant, id, at, next, heap, pieces, began }).await? {
            EndOutcome::Done(now) => {
                self.now(now);
                if let Some(heap) = heap {
                    self.merge_chain_later(heap.key);
                }
                Ok(true)
            }
            EndOutcome::Changed(_) | EndOutcome::Moved => Ok(false),
        }
    }

    /// Stores a run that waits after its first step, with its place in the queue. Returns false if the session has
    /// changed, or if a write needs a review.
    async fn store_waiting(
        &mut self,
        stepped: &Stepped,
        owed: &[HostCall],
        began: Option<&SessionAtStart>,
    ) -> Result<bool, Error> {
        let Some(ParkedRun { next, pieces }) = self.waiting(stepped, owed, PlanPolicy::Refused).await? else {
            return Ok(false);
        };
        let (tenant, id) = (&self.tenant, self.id);
        let mut batch = Batch::default()
            .put(js_rows::execution_key(tenant, id), rows::write(&next), Expect::Absent)
            .put(js_rows::open_key(tenant, id), rows::write(&Lease::first(next.owner)), Expect::Absent);
        batch.writes.extend(piece_writes(tenant, id, pieces));
        if let Some(SessionAtStart { session: Versioned { row, version }, .. }) = began {
            let mut row = row.clone();
            row.waiting.push(id);
            row.used = self.moment();
            batch = batch.put(js_rows::session_key(tenant, &row.name), rows::write(&row), unchanged(*version));
        }
        let heap_key = js_rows::heap_key(tenant, stepped.heap.key);
        // The same heap may already be stored. It is looked up only after the write conflicts.
        for look in [false, true] {
            let heap = self.service.heap_write(tenant, &stepped.heap, next.input_heap, look).await?;
            let (mut all, stored) = (batch.clone(), heap.committed(stepped.heap.key));
            all.writes.extend(heap.write);
            match self.service.ports.store.commit(all).await {
                Ok(()) => {}
                Err(store::Error::Conflict(key)) if key == heap_key => continue,
                Err(store::Error::Conflict(_)) => return Ok(false),
                Err(error) if self.is_stored(&next).await => {
                    tracing::warn!(execution = %self.id, %error, "a run was stored, although the answer of the store was lost");
                }
                Err(error) => return Err(error.into()),
            }
            self.service.record_stored_heap(tenant, &stored)?;
            self.now(Versioned { row: next, version: 1 });
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether the store has this row, after its answer was lost. No other process knew of the run, so a differing
    /// row means that the run was found in a list meanwhile.
    async fn is_stored(&self, row: &ExecutionRow) -> bool {
        let key = js_rows::execution_key(&self.tenant, self.id);
        for _ in 0..LOOKS {
            match self.service.fetch::<ExecutionRow>(&key).await {
                Ok(found) => return found.is_some_and(|found| rows::write(&found.row) == rows::write(row)),
                Err(_) => self.service.ports.clock.sleep(AGAIN).await,
            }
        }
        false
    }

    pub(super) async fn accepted(&self, began: Option<SessionAtStart>) -> Result<Versioned<ExecutionRow>, Error> {
        let turn = began.map(|began| began.turn);
        self.service.accept(&tenant_caller(&self.tenant), self.id, self.at.row.clone(), turn).await
    }
}

/// Stores while a step continues, and returns the step's outcome if it ended first. The step is polled meanwhile, so
/// that it gives up its processor as soon as it ends.
pub(super) async fn beside<S, T>(
    mut step: Pin<&mut impl Future<Output = S>>,
    stores: impl Future<Output = T>,
) -> (Option<S>, T) {
    let mut stepped = None;
    tokio::pin!(stores);
    loop {
        tokio::select! {
            biased;
            ended = &mut step, if stepped.is_none() => stepped = Some(ended),
            stored = &mut stores => return (stepped, stored),
        }
    }
}

/// Tells the caller that the run is stored, or why it cannot be.
pub(super) type StoredSender = oneshot::Sender<Result<(), Error>>;

pub(super) fn tell(told: &mut Option<StoredSender>, what: Result<(), Error>) {
    if let Some(told) = told.take() {
        // The receiver may be gone.
        let _ = told.send(what);
    }
}

/// Whether a step that ran for one row is valid for the other: both run, on the same heap.
pub(super) fn same_input_heap(one: &ExecutionRow, other: &ExecutionRow) -> bool {
    one.state == ExecutionState::Running && one.input_heap == other.input_heap
}
