//! One run from its start to its end: a step, its continuation stored, the calls it owes, the next step.
//! Invariant: nothing that a step asked for is done before the heap it left is stored; a step whose heap was not stored has
//! done nothing.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::{ExecutionId, TenantId, Timestamp};
use ports::scripts::{self, Heap, Input, Limits, Outcome, Step, Stepped, Stop, Surroundings, Turns};
use ports::store::{Batch, Expect};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::brief::{Brief, First};
use super::calls::Heard;
use super::end::{Ended, Ending};
use super::ended;
use crate::engine::rows::{Answer, ExecutionRow, SessionName, execution_key};
use crate::engine::view::{State, Uncaught};
use crate::engine::{BRINGING, Js, Live, Place};
use crate::error::Error;
use crate::error::JsError;
use crate::js::heaps::of_engine;
use crate::js::output::piece_writes;
use crate::load::Versioned;
use crate::rows;
use crate::service::Service;
use crate::shared::lock;

/// How often something is tried again while the storage fails, and how long between two tries.
const TRIES: usize = 5;
pub(super) const AGAIN: Duration = Duration::from_millis(300);
/// While the engine has no room.
const ENGINE_AGAIN: Duration = Duration::from_millis(10);
/// How often a run looks whether it is still its own.
const LOOK: Duration = Duration::from_secs(1);

/// How a run comes to who drives it.
pub(super) enum Start {
    /// It is stored, and ours.
    Ours,
    /// It is not stored yet.
    Brief(Brief),
    /// It is stored, and its process died. The row says that it is ours; the stored one does not yet.
    Found,
}

pub(super) struct Run {
    pub service: Arc<Service>,
    pub tenant: TenantId,
    pub id: ExecutionId,
    pub at: Versioned<ExecutionRow>,
    pub live: Live,
    tell: watch::Sender<Arc<ExecutionRow>>,
    /// The last piece of its output.
    tail: Option<String>,
    /// Calls under way, and which they are.
    pub calls: JoinSet<(u64, Answer)>,
    pub asked: HashSet<u64>,
    /// Calls that were first owed to this process: no other one can have begun them.
    pub ours: HashSet<u64>,
    /// What makes something ready for its next step.
    pub ready: Mutex<Option<AbortOnDropHandle<()>>>,
    /// How long its steps have waited for others to leave the processors: not its own time.
    waited_ms: AtomicU64,
}

impl Run {
    pub fn new(service: Arc<Service>, tenant: TenantId, id: ExecutionId, at: Versioned<ExecutionRow>) -> (Self, Live) {
        let (tell, seen) = watch::channel(Arc::new(at.row.clone()));
        let (stop, leave) = (Stop::default(), CancellationToken::new());
        let live = Live { id, tenant: tenant.clone(), stop, leave, seen };
        let (calls, asked, ours) = (JoinSet::new(), HashSet::new(), HashSet::new());
        let (tail, waited_ms) = (None, AtomicU64::new(0));
        let ready = Mutex::default();
        (Self { service, tenant, id, at, live: live.clone(), tell, tail, calls, asked, ours, ready, waited_ms }, live)
    }

    /// For as long as someone has it, who waits for the run goes on waiting.
    pub fn voice(&self) -> watch::Sender<Arc<ExecutionRow>> {
        self.tell.clone()
    }

    /// Carries it on to its end. What only runs that are not short do is in boxes: each of these futures is larger than all that a
    /// short one needs, and every run is a task of this size.
    pub async fn drive(mut self, start: Start) -> Result<(), Error> {
        let mut first = match start {
            Start::Ours => None,
            Start::Brief(brief) => match self.first_step(brief).await {
                First::Continue(stepped) => stepped,
                First::Break(over) => return over,
            },
            Start::Found => match Box::pin(self.first_step_here()).await? {
                Some(stepped) => stepped,
                None => return Ok(()),
            },
        };
        if self.at.row.state == State::Queued && !Box::pin(self.take_turn()).await? {
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
                        return Box::pin(self.finish(State::Completed, None, Some(&stepped))).await;
                    }
                    Outcome::Threw(thrown) => {
                        let error = Uncaught::from(thrown.clone());
                        return Box::pin(self.finish(State::Failed, Some(error), Some(&stepped))).await;
                    }
                    Outcome::Waiting { owed } if owed.is_empty() => {
                        let message = "the run awaits a promise that nothing will settle".to_owned();
                        let error = Uncaught { name: "Error".to_owned(), message, stack: String::new() };
                        return Box::pin(self.finish(State::Failed, Some(error), Some(&stepped))).await;
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

    /// `None` where it is over, or not ours any more.
    async fn next_step(&mut self) -> Result<Option<Result<Stepped, Error>>, Error> {
        let input = match &self.at.row.parked {
            None => Input::Evaluate { code: self.at.row.code.clone() },
            Some(_) => match self.answers().await? {
                Heard::Answers(answers) => Input::Settle { answers },
                Heard::TimedOut => {
                    self.finish(State::TimedOut, Some(self.too_long()), None).await?;
                    return Ok(None);
                }
                Heard::Left => {
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

    /// Milliseconds until it has run for as long as it may.
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
            // What went wrong there goes wrong again here.
            let _ = ready.await;
        }
        // What is known to be missing is brought before it is asked for.
        let mut missing = heap.filter(|heap| !js.scripts.is_here(*heap));
        let (mut objects, mut tried) = (Arc::default(), 0);
        loop {
            // Also where the storage fails at every try.
            if self.left_ms() == 0 {
                return Err(JsError::Engine(scripts::Error::Deadline(row.timeout_ms)).into());
            }
            // However slow the storage is, nobody's place is kept meanwhile.
            let mut bringing = None;
            if let (Some(heap), Some(key)) = (heap, missing.take()) {
                let asked = self.service.now();
                let of_tenant = js.bringing.of(&self.tenant, || Semaphore::new(BRINGING));
                bringing = of_tenant.acquire_owned().await.ok();
                self.waited(asked);
                // What it stands on was there a moment ago, where that is missing.
                let is_here = |at| key == heap && js.scripts.is_here(at);
                objects = Arc::new(self.service.chain(&self.tenant, heap, is_here).await?);
            }
            let asked = self.service.now();
            let place = self.place(js).await?;
            self.waited(asked);
            drop(bringing);
            let deadline_ms = self.left_ms();
            if deadline_ms == 0 {
                return Err(JsError::Engine(scripts::Error::Deadline(row.timeout_ms)).into());
            }
            let limits = Limits { memory_bytes: row.memory_bytes, deadline_ms, output_bytes };
            let (surroundings, stop, turns) =
                (surroundings.clone(), stop.clone(), Some(place.clone() as Arc<dyn Turns>));
            let step = Step { heap, input: input.clone(), limits, surroundings, stop, turns };
            let stepped = js.scripts.step_from(objects.clone(), step).await;
            self.waited_ms.fetch_add(place.away_ms(), Ordering::Relaxed);
            drop(place);
            match stepped {
                Err(scripts::Error::Absent(key)) if tried < TRIES => (missing, tried) = (Some(key), tried + 1),
                Err(scripts::Error::NoEngine { heap, engine }) if tried < TRIES => {
                    self.service.bring_engine(&self.tenant, heap, engine).await?;
                    tried += 1;
                }
                Err(scripts::Error::Busy) => {
                    let asked = self.service.now();
                    self.service.ports.clock.sleep(ENGINE_AGAIN).await;
                    self.waited(asked);
                }
                stepped => return stepped.map_err(|error| of_engine(error).into()),
            }
        }
    }

    /// Its place among the steps. One that gets none for as long as any run may take has had its time.
    async fn place(&self, js: &Js) -> Result<Arc<Place>, Error> {
        let most = Duration::from_millis(js.settings.most_timeout_ms);
        tokio::select! {
            biased;
            place = js.fair.place(&self.tenant, self.at.row.memory_bytes) => Ok(place),
            () = self.service.ports.clock.sleep(most) => {
                Err(JsError::Engine(scripts::Error::Deadline(self.at.row.timeout_ms)).into())
            }
        }
    }

    /// A run that could not be carried on: ended with the reason, or left to whoever ended it.
    async fn failed(&mut self, error: Error) -> Result<(), Error> {
        match error {
            Error::Js(JsError::Engine(scripts::Error::Stopped)) => self.refresh().await,
            Error::Js(JsError::Engine(scripts::Error::Deadline(_))) => {
                let error = self.too_long();
                self.finish(State::TimedOut, Some(error), None).await
            }
            // Not the run's fault, and perhaps over soon: it stays as it is and is taken up again.
            error @ (Error::Store(_) | Error::Blobs(_)) => Err(error),
            error => {
                let name = match &error {
                    Error::Js(JsError::Engine(scripts::Error::Memory(_))) => "RangeError".to_owned(),
                    other => {
                        tracing::warn!(execution = %self.id, error = other as &dyn std::error::Error, "a run failed");
                        other.code().to_owned()
                    }
                };
                let message = match &error {
                    Error::Js(JsError::Engine(cause)) => cause.to_string(),
                    other => other.to_string(),
                };
                self.finish(State::Failed, Some(Uncaught { name, message, stack: String::new() }), None).await
            }
        }
    }

    fn too_long(&self) -> Uncaught {
        let why = self.service.js.as_ref().and_then(|js| js.held(self.id));
        let why = why.map(|why| format!("; it could not be stored ({why})")).unwrap_or_default();
        let message = format!("the run took longer than {} ms{why}", self.at.row.timeout_ms);
        Uncaught { name: "TimeoutError".to_owned(), message, stack: String::new() }
    }

    /// The end, unless someone else was faster.
    pub(super) async fn finish(
        &mut self,
        state: State,
        error: Option<Uncaught>,
        stepped: Option<&Stepped>,
    ) -> Result<(), Error> {
        let (next, pieces) = self.last(state, error, stepped).await?;
        let heap = stepped.filter(|_| state == State::Completed).map(|stepped| &stepped.heap);
        let mut tried = 1;
        let ended = loop {
            let ending = Ending {
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
                    tracing::warn!(%error, tried, "the end of a run could not be kept, trying again");
                    self.service.ports.clock.sleep(AGAIN).await;
                    tried += 1;
                }
                ended => break ended?,
            }
        };
        match ended {
            Ended::Done(now) | Ended::Changed(now) => self.now(now),
            Ended::Moved => {}
        }
        if let Some(key) = heap.map(|heap| heap.key) {
            self.shorten_later(key);
        }
        Ok(())
    }

    /// The row that ends it, and the pieces of its output that changed.
    pub(super) async fn last(
        &mut self,
        state: State,
        error: Option<Uncaught>,
        stepped: Option<&Stepped>,
    ) -> Result<(ExecutionRow, Vec<(usize, String)>), Error> {
        let mut next = ExecutionRow { error, ..ended(&self.at.row, state, self.service.now()) };
        let Some(stepped) = stepped else { return Ok((next, Vec::new())) };
        if let (State::Completed, Outcome::Completed(result)) = (state, &stepped.outcome) {
            (next.heap, next.result) = (Some(stepped.heap.key), Some(result.clone()));
        }
        let pieces = self.printed(&mut next, stepped).await?;
        Ok((next, pieces))
    }

    /// What a step printed that is made again.
    pub(super) fn forget_output(&mut self) {
        self.tail = None;
    }

    pub(super) fn shorten_later(&self, key: base::Digest) {
        if self.service.is_short(&self.tenant, key) {
            return;
        }
        let (service, tenant) = (self.service.clone(), self.tenant.clone());
        tokio::spawn(async move {
            if let Err(error) = service.shorten(&tenant, key).await {
                tracing::warn!(heap = key.short(), %error, "a chain of heaps stays as long as it is");
            }
        });
    }

    /// Adds what a step printed to the row; the pieces that changed.
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

    /// Stores the run as it is now, with the heap it stands on. False where it is not ours any more.
    pub async fn commit(
        &mut self,
        next: ExecutionRow,
        heap: Option<&Heap>,
        pieces: Vec<(usize, String)>,
    ) -> Result<bool, Error> {
        let (key, value) = (execution_key(&self.tenant, self.id), rows::write(&next));
        let others = piece_writes(&self.tenant, self.id, pieces);
        let mut tried = 1;
        loop {
            let mut batch = Batch::default();
            let mut stored = None;
            if let Some(heap) = heap {
                let from = self.at.row.input_heap;
                self.service.keep_guest_of(&self.tenant, &self.at.row).await?;
                let new = self.service.heap_write(&self.tenant, (heap, from), tried > 1).await?;
                stored = Some(new.of(heap.key));
                batch.writes.extend(new.write);
            }
            batch.writes.extend(others.iter().cloned());
            let batch = batch.put(key.clone(), value.clone(), Expect::Version(self.at.version));
            let error = match self.service.try_commit(batch).await {
                Ok(Some(())) => {
                    if let Some(stored) = stored {
                        self.service.heap_is_stored(&self.tenant, &stored)?;
                    }
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

    /// Tells whoever waits for it.
    pub(super) fn now(&mut self, at: Versioned<ExecutionRow>) {
        self.show(&at.row);
        self.at = at;
    }

    pub(super) fn show(&self, row: &ExecutionRow) {
        self.tell.send_replace(Arc::new(row.clone()));
    }

    /// Reads what someone else has made of it.
    pub async fn refresh(&mut self) -> Result<(), Error> {
        let found: Option<Versioned<ExecutionRow>> = self.service.fetch(&execution_key(&self.tenant, self.id)).await?;
        if let Some(found) = found {
            self.now(found);
        }
        Ok(())
    }

    /// Comes back when the run is not ours any more: it was ended, here or by another process, or taken over.
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
        // Where no origin is allowed, it says so and how to allow one.
        fetch: true,
    }
}

impl From<scripts::Thrown> for Uncaught {
    fn from(thrown: scripts::Thrown) -> Self {
        Self { name: thrown.name, message: thrown.message, stack: thrown.stack }
    }
}
