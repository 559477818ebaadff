//! A run whose first step is short, stored once: as it ended, or as it waits.
//! Invariant: nobody hears of a run before it is stored. One that ends or waits after its first step, in a session that nobody
//! changed meanwhile, is stored with that; any other is accepted first, as if it had not begun, and goes on from there.
//!
//! A run that is accepted and then ended is two transactions, and most runs take less time than either. What a kill loses is
//! a run of which nobody was told and that did nothing outside: calls are made after a run is stored.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use base::ExecutionId;
use ports::scripts::{self, HostCall, Input, Outcome, Stepped, Stop};
use ports::store::{self, Batch, Expect};
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::accept::{input, queue_name};
use super::drive::{AGAIN, Run, Start};
use super::end::{Ended, Ending, of_tenant};
use super::ended;
use super::park::{Plans, Waiting};
use crate::commit::unchanged;
use crate::engine::Live;
use crate::engine::rows::{self as js_rows, ExecutionRow, JsSessionRow};
use crate::engine::view::{State, Uncaught};
use crate::error::{Error, JsError};
use crate::js::heaps::INLINE_BYTES;
use crate::js::output::piece_writes;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;
use access::Caller;

/// A run that takes longer is stored while it goes on. The next one of its session waits for that to be stored.
pub(super) const BRIEF: Duration = Duration::from_millis(100);

/// How often it is tried to look whether a run is stored.
const LOOKS: usize = 3;

/// A run that is not stored yet.
pub(super) struct Brief {
    /// Of the session, where it is in one.
    began: Option<Began>,
    /// Told when it is stored, or cannot be.
    told: oneshot::Sender<Result<(), Error>>,
}

/// A session as a run found it that began without a place in its queue.
pub(super) struct Began {
    /// While it is held, no other run of the session starts or ends in this process.
    pub turn: OwnedMutexGuard<()>,
    pub session: Versioned<JsSessionRow>,
}

/// What came of the first step of such a run. It is over; or it is stored now, and goes on with what that step came to, or, where
/// that is nothing, as it is stored: with the calls it waits for, or from its beginning, because it stands on another heap or waits
/// for others.
pub(super) type First = ControlFlow<Result<(), Error>, Option<Result<Stepped, Error>>>;

enum Begun {
    Ended(Result<Stepped, Error>),
    GivenUp,
    /// It took long.
    Stored(Box<Versioned<ExecutionRow>>, Then),
    Refused(Error),
}

/// What came of the first step of a run that was stored while it went on.
enum Then {
    Stepped(Box<Result<Stepped, Error>>),
    /// It was a step of another heap, or before its turn.
    Void,
    /// The run is not ours any more.
    Lost,
}

/// Whether a run could begin without a place in the queue.
pub(super) enum AtOnce {
    /// It is stored.
    Begun(Live),
    /// Others are before it; the turn of its session, where that was free.
    No(Option<OwnedMutexGuard<()>>),
}

impl Service {
    /// Begins a run that nothing is before, and comes back when it is stored. Waits for nobody: who does not begin at once is
    /// given its place in the queue, which is bounded and in which it can be seen.
    pub(super) async fn begin_briefly(
        self: &Arc<Self>,
        caller: &Caller,
        id: ExecutionId,
        row: &ExecutionRow,
    ) -> Result<AtOnce, Error> {
        let mut began = None;
        if let Some(name) = &row.session {
            let Some(turn) = self.free_turn(&queue_name(caller, name)) else { return Ok(AtOnce::No(None)) };
            let session = self.js_session_to_run_in(caller, name).await?;
            if !session.row.waiting.is_empty() {
                return Ok(AtOnce::No(Some(turn)));
            }
            began = Some(Began { turn, session });
        }
        let head = began.as_ref().and_then(|began| began.session.row.head);
        let (told, stored) = oneshot::channel();
        let row = ExecutionRow {
            state: State::Running,
            started: Some(self.now()),
            input_heap: input(row.from, head),
            ..row.clone()
        };
        let at = Versioned { row, version: 0 };
        let Some(live) = self.begin(&caller.tenant, id, at, Start::Brief(Brief { began, told }))? else {
            return Ok(AtOnce::No(None));
        };
        match stored.await {
            Ok(stored) => stored.map(|()| AtOnce::Begun(live)),
            Err(gone) => Err(JsError::Engine(scripts::Error::Engine(gone.into())).into()),
        }
    }
}

impl Run {
    pub(super) async fn first_step(&mut self, Brief { mut began, told }: Brief) -> First {
        let mut told = Some(told);
        match self.begun(&mut began, &mut told).await {
            Begun::Ended(stepped) if !self.is_given_up() => self.ended_briefly(stepped, began, told).await,
            Begun::Ended(_) | Begun::GivenUp => self.stored_cancelled(began, told).await,
            Begun::Stored(at, then) => {
                self.now(*at);
                if self.is_given_up() {
                    return First::Break(self.finish(State::Cancelled, None, None).await);
                }
                match then {
                    Then::Stepped(stepped) => First::Continue(Some(*stepped)),
                    Then::Void => First::Continue(None),
                    Then::Lost => First::Break(self.refresh().await),
                }
            }
            Begun::Refused(error) => {
                tell(&mut told, Err(error));
                First::Break(Ok(()))
            }
        }
    }

    async fn begun(&self, began: &mut Option<Began>, told: &mut Option<Told>) -> Begun {
        // Of this step alone: the run may be begun again.
        let stop = Stop::default();
        let step = self.step_until(Input::Evaluate { code: self.at.row.code.clone() }, &stop);
        tokio::pin!(step);
        tokio::select! {
            biased;
            stepped = &mut step => return Begun::Ended(stepped),
            () = self.live.leave.cancelled() => {
                stop.stop();
                return Begun::GivenUp;
            }
            () = self.service.ports.clock.sleep(BRIEF) => {}
        }
        let begun = {
            let (stepped, accepted) = beside(step.as_mut(), self.accepted(began.take())).await;
            match accepted {
                Err(error) => Begun::Refused(error),
                Ok(at) => {
                    self.show(&at.row);
                    tell(told, Ok(()));
                    let then = match stepped {
                        _ if !stands_alike(&at.row, &self.at.row) => Then::Void,
                        Some(stepped) => Then::Stepped(stepped.into()),
                        None => tokio::select! {
                            biased;
                            stepped = &mut step => Then::Stepped(stepped.into()),
                            () = self.lost() => Then::Lost,
                        },
                    };
                    Begun::Stored(at.into(), then)
                }
            }
        };
        stop.stop();
        begun
    }

    fn is_given_up(&self) -> bool {
        self.live.leave.is_cancelled()
    }

    /// A run that its caller gave up before it was stored. What its step came to is nobody's.
    async fn stored_cancelled(&mut self, began: Option<Began>, mut told: Option<Told>) -> First {
        let next = ended(&self.at.row, State::Cancelled, self.moment());
        let (tenant, id, at) = (&self.tenant, self.id, &self.at);
        let ending = Ending { tenant, id, at, next, heap: None, pieces: Vec::new(), began };
        let stored = match self.service.end(ending).await {
            Ok(Ended::Done(now) | Ended::Changed(now)) => {
                self.now(now);
                Ok(())
            }
            Ok(Ended::Moved) => Ok(()),
            Err(error) => Err(error),
        };
        tell(&mut told, stored);
        First::Break(Ok(()))
    }

    async fn ended_briefly(
        &mut self,
        stepped: Result<Stepped, Error>,
        mut began: Option<Began>,
        mut told: Option<Told>,
    ) -> First {
        if let Ok(stepped) = &stepped {
            match self.stored_at_once(stepped, &mut began).await {
                Ok(true) => {
                    tell(&mut told, Ok(()));
                    return if self.at.row.state.is_final() { First::Break(Ok(())) } else { First::Continue(None) };
                }
                Ok(false) => {}
                // It is accepted, if that can be stored, and this is tried again.
                Err(error) => {
                    tracing::warn!(execution = %self.id, %error, "what a first step came to could not be kept at once")
                }
            }
            self.forget_output();
        }
        let at = match self.accepted(began).await {
            Ok(at) => at,
            Err(error) => {
                tell(&mut told, Err(error));
                return First::Break(Ok(()));
            }
        };
        let same = stands_alike(&at.row, &self.at.row);
        self.now(at);
        tell(&mut told, Ok(()));
        match same {
            // Its end was stored, or that it waits, though that was not heard.
            _ if self.at.row.state.is_final() => First::Break(Ok(())),
            _ if self.at.row.parked.is_some() => First::Continue(None),
            true => First::Continue(Some(stepped)),
            false => First::Continue(None),
        }
    }

    /// False where the run is to be accepted first.
    async fn stored_at_once(&mut self, stepped: &Stepped, began: &mut Option<Began>) -> Result<bool, Error> {
        // One with a heap that takes a while to store is told of before that, and its session's turn is free meanwhile.
        let large =
            stepped.heap.object.len() >= INLINE_BYTES || !self.service.guest_is_kept(&self.tenant, &self.at.row)?;
        match &stepped.outcome {
            Outcome::Completed(_) | Outcome::Waiting { .. } if large => Ok(false),
            Outcome::Completed(_) => self.stored_ended(stepped, (State::Completed, None), began.take()).await,
            Outcome::Threw(thrown) => {
                let error = Some(Uncaught::from(thrown.clone()));
                self.stored_ended(stepped, (State::Failed, error), began.take()).await
            }
            // One that nothing will settle has failed.
            Outcome::Waiting { owed } if owed.is_empty() => Ok(false),
            Outcome::Waiting { owed } => Box::pin(self.stored_waiting(stepped, owed, began.as_ref())).await,
        }
    }

    /// False where the session is not as it was when the run began.
    async fn stored_ended(
        &mut self,
        stepped: &Stepped,
        (state, error): (State, Option<Uncaught>),
        began: Option<Began>,
    ) -> Result<bool, Error> {
        let (next, pieces) = self.last(state, error, Some(stepped)).await?;
        let heap = Some(&stepped.heap).filter(|_| state == State::Completed);
        let (tenant, id, at) = (&self.tenant, self.id, &self.at);
        match self.service.end(Ending { tenant, id, at, next, heap, pieces, began }).await? {
            Ended::Done(now) => {
                self.now(now);
                if let Some(heap) = heap {
                    self.shorten_later(heap.key);
                }
                Ok(true)
            }
            Ended::Changed(_) | Ended::Moved => Ok(false),
        }
    }

    /// A run whose first step waits for something, with its place in the queue. False where its session is not as it was, or a
    /// write waits for a review.
    async fn stored_waiting(
        &mut self,
        stepped: &Stepped,
        owed: &[HostCall],
        began: Option<&Began>,
    ) -> Result<bool, Error> {
        let Some(Waiting { next, pieces }) = self.waiting(stepped, owed, Plans::Refused).await? else {
            return Ok(false);
        };
        let (tenant, id) = (&self.tenant, self.id);
        let mut batch = Batch::default()
            .put(js_rows::execution_key(tenant, id), rows::write(&next), Expect::Absent)
            .put(js_rows::open_key(tenant, id), Vec::new(), Expect::Absent);
        batch.writes.extend(piece_writes(tenant, id, pieces));
        if let Some(Began { session: Versioned { row, version }, .. }) = began {
            let mut row = row.clone();
            row.waiting.push(id);
            row.used = self.moment();
            batch = batch.put(js_rows::session_key(tenant, &row.name), rows::write(&row), unchanged(*version));
        }
        let heap_key = js_rows::heap_key(tenant, stepped.heap.key);
        // The same heap may be in storage, which is looked for when that is in the way.
        for look in [false, true] {
            let heap = self.service.heap_write(tenant, (&stepped.heap, next.input_heap), look).await?;
            let (mut all, stored) = (batch.clone(), heap.of(stepped.heap.key));
            all.writes.extend(heap.write);
            match self.service.ports.store.commit(all).await {
                Ok(()) => {}
                Err(store::Error::Conflict(key)) if key == heap_key => continue,
                Err(store::Error::Conflict(_)) => return Ok(false),
                Err(error) if self.is_stored(&next).await => {
                    tracing::warn!(execution = %self.id, %error, "a run is stored, though the store did not say so");
                }
                Err(error) => return Err(error.into()),
            }
            self.service.heap_is_stored(tenant, &stored)?;
            self.now(Versioned { row: next, version: 1 });
            return Ok(true);
        }
        Ok(false)
    }

    /// Whether this is what the store has, after its answer was lost. Nobody else has heard of the run: where it is another's by then,
    /// or has ended, it was seen in a list.
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

    async fn accepted(&self, began: Option<Began>) -> Result<Versioned<ExecutionRow>, Error> {
        let turn = began.map(|began| began.turn);
        self.service.take(&of_tenant(&self.tenant), self.id, self.at.row.clone(), turn).await
    }
}

/// Stores while a step goes on, and says what came of the step if that ended before. Who has ended gives its place to others,
/// however long the storage takes.
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

type Told = oneshot::Sender<Result<(), Error>>;

fn tell(told: &mut Option<Told>, what: Result<(), Error>) {
    if let Some(told) = told.take() {
        // Who asked may have gone.
        let _ = told.send(what);
    }
}

/// Whether a step that one of them made is a step of the other.
fn stands_alike(one: &ExecutionRow, other: &ExecutionRow) -> bool {
    one.state == State::Running && one.input_heap == other.input_heap
}
