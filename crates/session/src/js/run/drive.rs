//! Drives one run from its start to its end: run a step, store its continuation, make its calls, run the next step.
//! Invariant: no call of a step is made before the step's heap is stored; a step whose heap was not stored had no
//! effect.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::{ExecutionId, TenantId, Timestamp};
use ports::scripts::{self, Heap, Input, Limits, Outcome, Step, Stepped, Stop, Surroundings, Turns};
use ports::store::{Batch, Expect, Write};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::calls::{CallEvents, FinishedCall};
use super::end::{EndOutcome, EndRequest};
use super::ended;
use super::fast_path::{FAST_PATH_LIMIT, FastPath, SessionAtStart, StoredSender, beside, same_input_heap, tell};
use crate::engine::rows::{ExecutionRow, SessionName, execution_key};
use crate::engine::view::{ExecutionState, UncaughtError};
use crate::engine::{HEAP_LOADS, Js, LiveScript, LiveScriptGuard, StepPermit};
use crate::error::Error;
use crate::error::JsError;
use crate::js::heaps::engine_error;
use crate::js::output::piece_writes;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;
use crate::sync::lock;

/// How often a write is retried while the storage fails, and the pause between two attempts.
const TRIES: usize = 5;
pub(super) const AGAIN: Duration = Duration::from_millis(300);
/// The pause while the engine has no room.
const ENGINE_AGAIN: Duration = Duration::from_millis(10);
/// How often a run checks that this process still owns it.
const LOOK: Duration = Duration::from_secs(1);

/// Where the driver got this run from.
pub(super) enum Start {
    /// The run is stored and owned by this process.
    Accepted,
    /// The run is not stored yet.
    FastPath(FastPath),
    /// The run is stored, and its process died. `at` already names this process as owner; the stored row does not
    /// yet.
    TakenOver,
}

/// The outcome of a run's first step. `Break`: the run is over. `Continue`: the run is stored and goes on with the
/// given step, or without one from its stored row, because it waits for calls or because its input heap or its place
/// in the queue changed.
pub(super) type FirstStep = ControlFlow<Result<(), Error>, Option<Result<Stepped, Error>>>;

/// How a first step ended on the fast path.
enum FirstStepResult {
    Ended(Result<Stepped, Error>),
    Cancelled,
    /// The step was long, so the run was stored while it continued.
    Stored(Box<Versioned<ExecutionRow>>, AfterStored),
    Refused(Error),
}

/// The outcome of a first step whose run was stored meanwhile.
enum AfterStored {
    Stepped(Box<Result<Stepped, Error>>),
    /// The step ran on another heap than the stored one, or before its turn.
    OtherHeap,
    /// Another process owns the run now.
    Lost,
}

/// A run that this process drives.
pub(super) struct ScriptRun {
    pub service: Arc<Service>,
    pub tenant: TenantId,
    pub id: ExecutionId,
    /// The stored row, as last read or written.
    pub at: Versioned<ExecutionRow>,
    pub live: LiveScript,
    tell: watch::Sender<Arc<ExecutionRow>>,
    /// The last piece of the output.
    tail: Option<String>,
    /// Calls in progress.
    pub calls: JoinSet<FinishedCall>,
    /// Calls that were started, so that each is started once.
    pub asked: HashSet<u64>,
    /// Calls with an effect that an earlier owner has, or may have, sent without storing their answers.
    pub interrupted: HashSet<u64>,
    /// The stored row of the lease does not name this process yet.
    pub is_claim_due: bool,
    /// This process has started a call with an effect.
    pub has_sent_effects: bool,
    /// The task that prepares an instance for the next step.
    pub ready: Mutex<Option<AbortOnDropHandle<()>>>,
    /// How long the run's steps waited for processors. This time does not count against the run's limit.
    waited_ms: AtomicU64,
}

impl Service {
    /// Drives a run in its own task. `None` if this process drives it already.
    pub(super) fn spawn_driver(
        self: &Arc<Self>,
        tenant: &TenantId,
        id: ExecutionId,
        at: Versioned<ExecutionRow>,
        start: Start,
    ) -> Result<Option<LiveScript>, Error> {
        let (run, live) = ScriptRun::new(self.clone(), tenant.clone(), id, at);
        if !self.js()?.lives.add(live.clone()) {
            return Ok(None);
        }
        let service = self.clone();
        let task = async move {
            let Some(js) = service.js.as_ref() else { return };
            let _listed = LiveScriptGuard(&js.lives, id);
            // Kept until the stall reason is recorded, so that waiting callers are woken with it.
            let _voice = run.voice();
            let driven = run.drive(start).await;
            js.set_stall_reason(id, driven.as_ref().err().map(|error| format!("{}: {error}", error.code())));
            if let Err(error) = driven {
                // The next pass over unended runs takes it over again.
                tracing::error!(execution = %id, error = &error as &dyn std::error::Error, "a script run was left unended and will be resumed");
            }
        };
        tokio::spawn(tracing::Instrument::in_current_span(task));
        Ok(Some(live))
    }
}

impl ScriptRun {
    pub fn new(
        service: Arc<Service>,
        tenant: TenantId,
        id: ExecutionId,
        at: Versioned<ExecutionRow>,
    ) -> (Self, LiveScript) {
        let (tell, seen) = watch::channel(Arc::new(at.row.clone()));
        let (stop, leave) = (Stop::default(), CancellationToken::new());
        let live = LiveScript { id, tenant: tenant.clone(), stop, leave, seen };
        let (calls, asked, interrupted) = (JoinSet::new(), HashSet::new(), HashSet::new());
        let (tail, waited_ms) = (None, AtomicU64::new(0));
        let ready = Mutex::default();
        let is_claim_due = false;
        let run = Self {
            service,
            tenant,
            id,
            at,
            live: live.clone(),
            tell,
            tail,
            calls,
            asked,
            interrupted,
            is_claim_due,
            has_sent_effects: false,
            ready,
            waited_ms,
        };
        (run, live)
    }

    /// While a sender exists, callers that wait for the run continue to wait.
    pub fn voice(&self) -> watch::Sender<Arc<ExecutionRow>> {
        self.tell.clone()
    }

    /// Drives the run to its end. Branches that a short run does not take are boxed: their futures are larger than
    /// all that a short run needs, and every run is a task of this size.
    pub async fn drive(mut self, start: Start) -> Result<(), Error> {
        let driven = self.drive_to_end(start).await;
        self.close_receipts_later();
        driven
    }

    async fn drive_to_end(&mut self, start: Start) -> Result<(), Error> {
        let mut first = match start {
            Start::Accepted => None,
            Start::FastPath(brief) => match self.first_step(brief).await {
                FirstStep::Continue(stepped) => stepped,
                FirstStep::Break(over) => return over,
            },
            Start::TakenOver => {
                self.is_claim_due = true;
                match Box::pin(self.step_before_claim()).await? {
                    Some(stepped) => stepped,
                    None => return Ok(()),
                }
            }
        };
        if self.at.row.state == ExecutionState::Queued && !Box::pin(self.take_turn()).await? {
            return Ok(());
        }
        loop {
            let stepped = match first.take() {
                Some(stepped) => stepped,
                None => match Box::pin(self.next_step()).await? {
                    Some(stepped) => stepped,
                    None => return Ok(()),
                },
            };
            match stepped {
                Ok(stepped) => match &stepped.outcome {
                    Outcome::Completed(_) => {
                        return Box::pin(self.finish(ExecutionState::Completed, None, Some(&stepped))).await;
                    }
                    Outcome::Threw(thrown) => {
                        let error = UncaughtError::from(thrown.clone());
                        return Box::pin(self.finish(ExecutionState::Failed, Some(error), Some(&stepped))).await;
                    }
                    Outcome::Waiting { owed } if owed.is_empty() => {
                        let message = "the run awaits a promise that nothing will settle".to_owned();
                        let error = UncaughtError { name: "Error".to_owned(), message, stack: String::new() };
                        return Box::pin(self.finish(ExecutionState::Failed, Some(error), Some(&stepped))).await;
                    }
                    Outcome::Waiting { owed } => {
                        if !Box::pin(self.park(&stepped, owed)).await? {
                            return Ok(());
                        }
                    }
                },
                Err(error) => return Box::pin(self.failed(error)).await,
            }
        }
    }

    async fn first_step(&mut self, FastPath { mut began, told }: FastPath) -> FirstStep {
        let mut told = Some(told);
        match self.run_first_step(&mut began, &mut told).await {
            FirstStepResult::Ended(stepped) if !self.is_cancelled() => {
                self.store_finished_step(stepped, began, told).await
            }
            FirstStepResult::Ended(_) | FirstStepResult::Cancelled => self.store_cancelled(began, told).await,
            FirstStepResult::Stored(at, then) => {
                self.now(*at);
                if self.is_cancelled() {
                    return FirstStep::Break(self.finish(ExecutionState::Cancelled, None, None).await);
                }
                match then {
                    AfterStored::Stepped(stepped) => FirstStep::Continue(Some(*stepped)),
                    AfterStored::OtherHeap => FirstStep::Continue(None),
                    AfterStored::Lost => FirstStep::Break(self.refresh().await),
                }
            }
            FirstStepResult::Refused(error) => {
                tell(&mut told, Err(error));
                FirstStep::Break(Ok(()))
            }
        }
    }

    async fn run_first_step(
        &self,
        began: &mut Option<SessionAtStart>,
        told: &mut Option<StoredSender>,
    ) -> FirstStepResult {
        // Belongs to this step alone, because the run may be started again.
        let stop = Stop::default();
        let step = self.step_until(Input::Evaluate { code: self.at.row.code.clone() }, &stop);
        tokio::pin!(step);
        tokio::select! {
            biased;
            stepped = &mut step => return FirstStepResult::Ended(stepped),
            () = self.live.leave.cancelled() => {
                stop.stop();
                return FirstStepResult::Cancelled;
            }
            () = self.service.ports.clock.sleep(FAST_PATH_LIMIT) => {}
        }
        let begun = {
            let (stepped, accepted) = beside(step.as_mut(), self.accepted(began.take())).await;
            match accepted {
                Err(error) => FirstStepResult::Refused(error),
                Ok(at) => {
                    self.show(&at.row);
                    tell(told, Ok(()));
                    let then = match stepped {
                        _ if !same_input_heap(&at.row, &self.at.row) => AfterStored::OtherHeap,
                        Some(stepped) => AfterStored::Stepped(stepped.into()),
                        None => tokio::select! {
                            biased;
                            stepped = &mut step => AfterStored::Stepped(stepped.into()),
                            () = self.lost() => AfterStored::Lost,
                        },
                    };
                    FirstStepResult::Stored(at.into(), then)
                }
            }
        };
        stop.stop();
        begun
    }

    /// Runs the next step. `None` if the run has ended or this process lost it.
    async fn next_step(&mut self) -> Result<Option<Result<Stepped, Error>>, Error> {
        let input = match &self.at.row.parked {
            None => Input::Evaluate { code: self.at.row.code.clone() },
            Some(_) => match self.answers().await? {
                CallEvents::Answers(answers) => Input::Settle { answers },
                CallEvents::TimedOut => {
                    self.finish(ExecutionState::TimedOut, Some(self.too_long()), None).await?;
                    return Ok(None);
                }
                CallEvents::Left => {
                    self.refresh().await?;
                    return Ok(None);
                }
            },
        };
        tokio::select! {
            biased;
            stepped = self.step(input) => return Ok(Some(stepped)),
            () = self.lost() => {}
        }
        self.live.stop.stop();
        self.refresh().await?;
        Ok(None)
    }

    /// Returns the milliseconds left of the run's time limit.
    pub fn left_ms(&self) -> u64 {
        let started = self.at.row.started.unwrap_or(self.at.row.accepted);
        let most_ms = self.at.row.timeout_ms.saturating_add(self.waited_ms.load(Ordering::Relaxed));
        let end = started.plus_ms(i64::try_from(most_ms).unwrap_or(i64::MAX));
        u64::try_from(end.0.saturating_sub(self.service.now().0)).unwrap_or(0)
    }

    fn waited(&self, since: Timestamp) {
        let ms = u64::try_from(self.service.now().0.saturating_sub(since.0)).unwrap_or(0);
        self.waited_ms.fetch_add(ms, Ordering::Relaxed);
    }

    pub(super) async fn step(&self, input: Input) -> Result<Stepped, Error> {
        self.step_until(input, &self.live.stop).await
    }

    pub(super) async fn step_until(&self, input: Input, stop: &Stop) -> Result<Stepped, Error> {
        let js = self.service.js()?;
        let row = &self.at.row;
        let surroundings = Arc::new(surroundings(row));
        let heap = row.parked.as_ref().map_or(row.input_heap, |parked| Some(parked.heap));
        let output_bytes = js.settings.output_bytes.saturating_sub(row.output.bytes);
        let ready = lock(&self.ready).take();
        if let Some(ready) = ready {
            // A failed preparation is ignored, because the step meets the same error.
            let _ = ready.await;
        }
        // A heap that is known to be missing is loaded without asking the engine first.
        let mut missing = heap.filter(|heap| !js.scripts.is_in_memory(*heap));
        let (mut objects, mut tried) = (Arc::default(), 0);
        loop {
            // The limit must also end a run whose storage fails at every attempt.
            if self.left_ms() == 0 {
                return Err(JsError::Engine(scripts::Error::Deadline(row.timeout_ms)).into());
            }
            // Heaps are loaded before a processor is requested, so that slow storage never blocks a processor.
            let mut bringing = None;
            if let (Some(heap), Some(key)) = (heap, missing.take()) {
                let asked = self.service.now();
                let of_tenant = js.heap_loads.get_or_create(&self.tenant, || Semaphore::new(HEAP_LOADS));
                bringing = of_tenant.acquire_owned().await.ok();
                self.waited(asked);
                // If an ancestor is missing, it was evicted a moment ago, and the whole chain is loaded.
                let is_here = |at| key == heap && js.scripts.is_in_memory(at);
                objects = Arc::new(self.service.heap_chain(&self.tenant, heap, is_here).await?);
            }
            let asked = self.service.now();
            let permit = self.step_permit(js).await?;
            self.waited(asked);
            drop(bringing);
            let deadline_ms = self.left_ms();
            if deadline_ms == 0 {
                return Err(JsError::Engine(scripts::Error::Deadline(row.timeout_ms)).into());
            }
            let limits = Limits { memory_bytes: row.memory_bytes, deadline_ms, output_bytes };
            let (surroundings, stop, turns) =
                (surroundings.clone(), stop.clone(), Some(permit.clone() as Arc<dyn Turns>));
            let step = Step { heap, input: input.clone(), limits, surroundings, stop, turns };
            let stepped = js.scripts.step_from(objects.clone(), step).await;
            self.waited_ms.fetch_add(permit.away_ms(), Ordering::Relaxed);
            drop(permit);
            match stepped {
                Err(scripts::Error::Absent(key)) if tried < TRIES => (missing, tried) = (Some(key), tried + 1),
                Err(scripts::Error::NoEngine { heap, engine }) if tried < TRIES => {
                    self.service.load_engine(&self.tenant, heap, engine).await?;
                    tried += 1;
                }
                Err(scripts::Error::Busy) => {
                    let asked = self.service.now();
                    self.service.ports.clock.sleep(ENGINE_AGAIN).await;
                    self.waited(asked);
                }
                stepped => return stepped.map_err(|error| engine_error(error).into()),
            }
        }
    }

    /// Waits for a processor. A run that gets none within the longest possible time limit has timed out.
    async fn step_permit(&self, js: &Js) -> Result<Arc<StepPermit>, Error> {
        let most = Duration::from_millis(js.settings.most_timeout_ms);
        tokio::select! {
            biased;
            permit = js.scheduler.permit(&self.tenant, self.at.row.memory_bytes) => Ok(permit),
            () = self.service.ports.clock.sleep(most) => {
                Err(JsError::Engine(scripts::Error::Deadline(self.at.row.timeout_ms)).into())
            }
        }
    }

    /// Ends a run that cannot go on, or leaves it as it is if the failure may be temporary or another process ended
    /// it.
    async fn failed(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Js(JsError::Engine(scripts::Error::Stopped)) => self.refresh().await,
            Error::Js(JsError::Engine(scripts::Error::Deadline(_))) => {
                let error = self.too_long();
                self.finish(ExecutionState::TimedOut, Some(error), None).await
            }
            // A storage failure is not the run's fault and may be temporary. The run keeps its state and is resumed
            // later.
            error @ (Error::Store(_) | Error::Blobs(_)) => Err(error),
            error => {
                let name = match &error {
                    Error::Js(JsError::Engine(scripts::Error::Memory(_))) => "RangeError".to_owned(),
                    other => {
                        tracing::warn!(execution = %self.id, error = other as &dyn std::error::Error, "a script run failed");
                        other.code().to_owned()
                    }
                };
                let message = match &error {
                    Error::Js(JsError::Engine(cause)) => cause.to_string(),
                    other => other.to_string(),
                };
                self.finish(ExecutionState::Failed, Some(UncaughtError { name, message, stack: String::new() }), None)
                    .await
            }
        }
    }

    fn too_long(&self) -> UncaughtError {
        let why = self.service.js.as_ref().and_then(|js| js.stall_reason(self.id));
        let why = why.map(|why| format!("; it could not be stored ({why})")).unwrap_or_default();
        let message = format!("the run took longer than {} ms{why}", self.at.row.timeout_ms);
        UncaughtError { name: "TimeoutError".to_owned(), message, stack: String::new() }
    }

    /// Stores the end, unless the run was ended elsewhere.
    pub(super) async fn finish(
        &mut self,
        state: ExecutionState,
        error: Option<UncaughtError>,
        stepped: Option<&Stepped>,
    ) -> Result<(), Error> {
        let (next, pieces) = self.last(state, error, stepped).await?;
        let heap = stepped.filter(|_| state == ExecutionState::Completed).map(|stepped| &stepped.heap);
        let mut tried = 1;
        let ended = loop {
            let ending = EndRequest {
                tenant: &self.tenant,
                id: self.id,
                at: &self.at,
                next: next.clone(),
                heap,
                pieces: pieces.clone(),
                began: None,
            };
            match self.service.end(ending).await {
                Err(error @ (Error::Store(_) | Error::Blobs(_))) if tried < TRIES => {
                    tracing::warn!(%error, tried, "the end of a script run could not be stored and is retried");
                    self.service.ports.clock.sleep(AGAIN).await;
                    tried += 1;
                }
                ended => break ended?,
            }
        };
        match ended {
            EndOutcome::Done(now) | EndOutcome::Changed(now) => self.now(now),
            EndOutcome::Moved => {}
        }
        if let Some(key) = heap.map(|heap| heap.key) {
            self.merge_chain_later(key);
        }
        Ok(())
    }

    /// Returns the final row, and the output pieces that changed.
    pub(super) async fn last(
        &mut self,
        state: ExecutionState,
        error: Option<UncaughtError>,
        stepped: Option<&Stepped>,
    ) -> Result<(ExecutionRow, Vec<(usize, String)>), Error> {
        let mut next = ExecutionRow { error, ..ended(&self.at.row, state, self.service.now()) };
        let Some(stepped) = stepped else { return Ok((next, Vec::new())) };
        if let (ExecutionState::Completed, Outcome::Completed(result)) = (state, &stepped.outcome) {
            (next.heap, next.result) = (Some(stepped.heap.key), Some(result.clone()));
        }
        let pieces = self.printed(&mut next, stepped).await?;
        Ok((next, pieces))
    }

    /// Forgets the output of a step that will be repeated.
    pub(super) fn forget_output(&mut self) {
        self.tail = None;
    }

    pub(super) fn merge_chain_later(&self, key: base::Digest) {
        if self.service.chain_is_short(&self.tenant, key) {
            return;
        }
        let (service, tenant) = (self.service.clone(), self.tenant.clone());
        tokio::spawn(async move {
            if let Err(error) = service.merge_chain(&tenant, key).await {
                tracing::warn!(heap = key.short(), %error, "a chain of heaps could not be merged");
            }
        });
    }

    /// Adds a step's output to the row. Returns the pieces that changed.
    pub async fn printed(&mut self, next: &mut ExecutionRow, stepped: &Stepped) -> Result<Vec<(usize, String)>, Error> {
        if self.tail.is_none() {
            self.tail = Some(self.service.output_tail(&self.tenant, self.id, &next.output).await?);
        }
        next.output.dropped += stepped.console_dropped;
        let mut tail = self.tail.clone().unwrap_or_default();
        let changed = next.output.append(&mut tail, &stepped.console);
        self.tail = Some(tail);
        Ok(changed)
    }

    /// Stores the current state of the run with its heap. Returns false if this process no longer owns the run.
    pub async fn commit(
        &mut self,
        next: ExecutionRow,
        heap: Option<&Heap>,
        pieces: Vec<(usize, String)>,
    ) -> Result<bool, Error> {
        self.commit_with(next, heap, piece_writes(&self.tenant, self.id, pieces)).await
    }

    /// Does the same together with other writes.
    pub(super) async fn commit_with(
        &mut self,
        next: ExecutionRow,
        heap: Option<&Heap>,
        mut others: Vec<Write>,
    ) -> Result<bool, Error> {
        let (key, value) = (execution_key(&self.tenant, self.id), rows::write(&next));
        others.extend(self.lease_write());
        let mut tried = 1;
        loop {
            let mut batch = Batch::default();
            let mut stored = None;
            if let Some(heap) = heap {
                let from = self.at.row.input_heap;
                self.service.store_engine_for_run(&self.tenant, &self.at.row).await?;
                let new = self.service.heap_write(&self.tenant, heap, from, tried > 1).await?;
                stored = Some(new.committed(heap.key));
                batch.writes.extend(new.write);
            }
            batch.writes.extend(others.iter().cloned());
            let batch = batch.put(key.clone(), value.clone(), Expect::Version(self.at.version));
            let error = match self.service.try_commit(batch).await {
                Ok(Some(())) => {
                    if let Some(stored) = stored {
                        self.service.record_stored_heap(&self.tenant, &stored)?;
                    }
                    self.is_claim_due = false;
                    self.now(Versioned { row: next, version: self.at.version + 1 });
                    return Ok(true);
                }
                Ok(None) => None,
                Err(error) => Some(error),
            };
            let found = self.service.fetch::<ExecutionRow>(&key).await;
            if let Ok(Some(found)) = found
                && found.version != self.at.version
            {
                let mine = found.version == self.at.version + 1 && rows::write(&found.row) == value;
                self.now(found);
                return Ok(mine);
            }
            match error {
                Some(error) if tried >= TRIES => return Err(error),
                Some(_) => self.service.ports.clock.sleep(AGAIN).await,
                None => {}
            }
            tried += 1;
        }
    }

    /// Replaces the known row and publishes it.
    pub(super) fn now(&mut self, at: Versioned<ExecutionRow>) {
        self.show(&at.row);
        self.at = at;
    }

    pub(super) fn show(&self, row: &ExecutionRow) {
        self.tell.send_replace(Arc::new(row.clone()));
    }

    /// Reads the row, which another task or process has changed.
    pub async fn refresh(&mut self) -> Result<(), Error> {
        let found: Option<Versioned<ExecutionRow>> = self.service.fetch(&execution_key(&self.tenant, self.id)).await?;
        if let Some(found) = found {
            self.now(found);
        }
        Ok(())
    }

    /// Returns when this process no longer owns the run: it was ended, here or elsewhere, or taken over.
    pub async fn lost(&self) {
        let (key, clock) = (execution_key(&self.tenant, self.id), &self.service.ports.clock);
        loop {
            tokio::select! {
                () = self.live.leave.cancelled() => return,
                () = clock.sleep(LOOK) => {}
            }
            let found: Result<Option<Versioned<ExecutionRow>>, Error> = self.service.fetch(&key).await;
            if let Ok(Some(found)) = found
                && (found.row.state.is_final() || found.row.owner != self.at.row.owner)
            {
                return;
            }
        }
    }

    pub fn moment(&self) -> Timestamp {
        self.service.now()
    }
}

fn surroundings(row: &ExecutionRow) -> Surroundings {
    Surroundings {
        headers: row.headers.clone(),
        programs: matches!(row.session, Some(SessionName::Logical(_))),
        // `fetch` is always defined. If no origin is allowed, its error says how to allow one.
        fetch: true,
    }
}

impl From<scripts::Thrown> for UncaughtError {
    fn from(thrown: scripts::Thrown) -> Self {
        Self { name: thrown.name, message: thrown.message, stack: thrown.stack }
    }
}
