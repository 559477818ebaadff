//! Operations: runs that outlive the call that started them.
//! Invariant: an operation has one owner, which renews its heartbeat every few seconds. A takeover from a dead owner
//! runs the same plan under the same run id, so that effects with a receipt are not repeated.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use async_trait::async_trait;
use base::{RunId, Timestamp};
use exec::{OperationError, Rowset};
use lang::plan::Plan;
use ports::store::{Batch, Expect, Key, Table};
use serde::{Deserialize, Serialize};

use super::gate::Ticket;
use super::page::{HandleName, check_slot};
use super::start::{ResumedOperation, RunWork};
use super::task::TaskId;
use crate::commit::{TRIES, unchanged};
use crate::error::Error;
use crate::live_runs::LiveRun;
use crate::load::{Session, Versioned};
use crate::program::PlannedProgram;
use crate::rows::{self, ClaimRow, LogicalRow};
use crate::run_result::{DetachedRun, RunAnswer, RunProgress, RunResult};
use crate::service::Service;

/// How often an owner renews its heartbeat.
const BEAT: Duration = Duration::from_secs(5);
/// How old a heartbeat may be before its owner counts as dead. Four heartbeats may be lost to a slow store.
const DEAD_AFTER_MS: i64 = DetachedRun::DEAD_AFTER as i64 * 1000;
/// How long `wait(…)` waits before it answers that the run still continues.
const PATIENCE: Duration = Duration::from_secs(5);

/// A run that outlives its call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OperationRow {
    pub run: RunId,
    pub plan: Plan,
    pub program: String,
    pub state: OperationState,
    /// A caller cancelled the run, perhaps in another process.
    pub cancel: bool,
    #[serde(rename = "told")]
    pub progress: RunProgress,
    /// How often the run was taken over. The process that wrote the current number owns it.
    #[serde(default)]
    pub owner: u32,
    #[serde(default)]
    pub claim: Option<ClaimRecord>,
    /// When the run got its handle.
    #[serde(default)]
    pub started: Option<Timestamp>,
}

/// A question about an operation.
#[derive(Clone, Copy)]
pub(super) struct OperationRequest {
    pub number: u64,
    /// Cancel the run.
    pub cancel: bool,
    /// How long to wait for its end.
    pub patience: Duration,
}

/// The claim of the run, which its new owner needs after a takeover.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ClaimRecord {
    table: Table,
    id: String,
    row: ClaimRow,
}

impl OperationRow {
    /// Whether this process still owns the run.
    pub fn is_of(&self, live: &LiveRun) -> bool {
        self.run == live.run && self.owner == live.owner && matches!(self.state, OperationState::Running { .. })
    }
}

/// Whether an operation is active or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OperationState {
    /// The run is active; its owner last wrote at `beat`.
    Running { beat: Timestamp },
    /// The run has ended; its result has this number.
    Ended { number: u64 },
}

pub(super) fn operation_key(caller: &Caller, session: &Session, number: u64) -> Key {
    Key::new(&caller.tenant, Table::Operation, format!("{}/{number:010}", session.id))
}

impl Service {
    /// Gives an active run a handle, by which every caller of the session can ask for it.
    pub(super) async fn detach(&self, caller: &Caller, session: &Session, live: &LiveRun) -> Result<RunAnswer, Error> {
        let turn = self.turn(&session.id.to_string()).await;
        for _ in 0..TRIES {
            if live.has_ended() {
                drop(turn);
                return live.wait_for_end().await.map(RunAnswer::Finished);
            }
            if let Some(number) = live.operation() {
                return Ok(RunAnswer::Running(detached_here(session, number, live)));
            }
            let logical =
                self.logical(caller, session.id).await?.ok_or_else(|| Error::NoSession(session.id.to_string()))?;
            let number = logical.row.operations + 1;
            let next = LogicalRow { operations: number, ..logical.row };
            let row = OperationRow {
                run: live.run,
                plan: live.plan.as_ref().clone(),
                program: live.program.clone(),
                state: OperationState::Running { beat: self.now() },
                cancel: false,
                progress: *live.progress.borrow(),
                owner: live.owner,
                claim: live.claim.clone().map(|(key, row)| ClaimRecord { table: key.table, id: key.id, row }),
                started: Some(self.now()),
            };
            let at = Key::new(&caller.tenant, Table::LogicalSession, session.id.to_string());
            let mut batch = Batch::default().put(at, rows::write(&next), unchanged(logical.version)).put(
                operation_key(caller, session, number),
                rows::write(&row),
                Expect::Absent,
            );
            if let Some((key, claimed)) = &live.claim {
                let claimed = ClaimRow { operation: Some(number), ..claimed.clone() };
                batch = batch.put(key.clone(), rows::write(&claimed), Expect::Any);
            }
            if self.try_commit(batch).await?.is_some() {
                live.set_operation(number);
                return Ok(RunAnswer::Running(detached_here(session, number, live)));
            }
        }
        Err(Error::Busy)
    }

    /// `wait(s0_o1)` and `cancel(s0_o1)`.
    pub(crate) async fn ask_operation(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Session,
        handle: &str,
        cancel: bool,
    ) -> Result<RunAnswer, Error> {
        let unknown = || Error::NoHandle(base::printable(handle, 60));
        let parsed = HandleName::parse(handle, "o").ok_or_else(unknown)?;
        check_slot(session, parsed.slot, handle)?;
        let asked = OperationRequest { number: parsed.number, cancel, patience: PATIENCE };
        if let Some(answer) = self.ask_operation_number(caller, session, asked).await? {
            return Ok(answer);
        }
        let operations = self.logical(caller, session.id).await?.map_or(0, |row| row.row.operations);
        let was_there = (1..=operations).contains(&parsed.number);
        Err(if was_there { self.expired_error(handle) } else { unknown() })
    }

    /// Answers for an operation by its number, taking it over if its owner is dead. `None` if the session has no such
    /// operation.
    pub(super) async fn ask_operation_number(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Session,
        OperationRequest { number, cancel, patience }: OperationRequest,
    ) -> Result<Option<RunAnswer>, Error> {
        let key = operation_key(caller, session, number);
        let live = loop {
            let Some(mut found): Option<Versioned<OperationRow>> = self.fetch(&key).await? else { return Ok(None) };
            if cancel && !found.row.cancel && matches!(found.row.state, OperationState::Running { .. }) {
                found = self.request_stop(&key, found).await?;
            }
            let beat = match found.row.state {
                OperationState::Ended { number } => {
                    let ran = self.replay(caller, session, number).await?;
                    return Ok(Some(RunAnswer::Finished(without_replay_mark(ran))));
                }
                OperationState::Running { beat } => beat,
            };
            if let Some(live) = self.live_runs.get(found.row.run) {
                break live;
            }
            if self.now().0.saturating_sub(beat.0) < DEAD_AFTER_MS {
                // Another process drives the run.
                return Ok(Some(RunAnswer::Running(detached_elsewhere(session, number, &found.row, self.now()))));
            }
            // After a lost race the loop reads the row again, which then shows a living owner.
            if let Some(live) = self.take_over_operation(caller, session, (number, &key, found)).await? {
                break live;
            }
        };
        if cancel {
            live.cancel.cancel();
        }
        match tokio::time::timeout(patience, live.wait_for_end()).await {
            Ok(ended) => ended.map(|ran| Some(RunAnswer::Finished(ran))),
            Err(_) => Ok(Some(RunAnswer::Running(detached_here(session, number, &live)))),
        }
    }

    /// Returns the state of an operation, without waiting and without taking it over.
    pub(super) async fn peek_operation(
        &self,
        caller: &Caller,
        session: &Session,
        number: u64,
    ) -> Result<Option<DetachedRun>, Error> {
        let found: Option<Versioned<OperationRow>> = self.fetch(&operation_key(caller, session, number)).await?;
        let running = found.filter(|found| matches!(found.row.state, OperationState::Running { .. }));
        Ok(running.map(|found| detached_elsewhere(session, number, &found.row, self.now())))
    }

    /// Asks the owner, perhaps another process, to cancel the run.
    async fn request_stop(
        &self,
        key: &Key,
        mut found: Versioned<OperationRow>,
    ) -> Result<Versioned<OperationRow>, Error> {
        for _ in 0..TRIES {
            found.row.cancel = true;
            let batch = Batch::default().put(key.clone(), rows::write(&found.row), Expect::Version(found.version));
            if self.try_commit(batch).await?.is_some() {
                found.version += 1;
                return Ok(found);
            }
            found = self.fetch(key).await?.ok_or(Error::Busy)?;
            if matches!(found.row.state, OperationState::Ended { .. }) {
                return Ok(found);
            }
        }
        Err(Error::Busy)
    }

    /// Takes over a run from a dead owner: the same plan under the same run id. Of several processes that try, one
    /// succeeds.
    async fn take_over_operation(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Session,
        (number, key, found): (u64, &Key, Versioned<OperationRow>),
    ) -> Result<Option<LiveRun>, Error> {
        // Everything that can fail comes before the claim, since this process must run what it owns.
        let pages = self.pages_of(caller, session, &found.row.plan).await?;
        let session = Arc::new(self.session_in(caller, session.id, session.slot).await?);
        let (state, owner) = (OperationState::Running { beat: self.now() }, found.row.owner + 1);
        let row = OperationRow { state, owner, ..found.row };
        let batch = Batch::default().put(key.clone(), rows::write(&row), Expect::Version(found.version));
        if self.try_commit(batch).await?.is_none() {
            return Ok(None);
        }
        tracing::info!(run = %row.run, "took over an operation whose process died");
        let resumed = ResumedOperation { number, owner, cancel: row.cancel };
        let planned = PlannedProgram::resumed(session.slot, row.plan);
        let claim = row.claim.map(|at| (Key::new(&caller.tenant, at.table, at.id), at.row));
        let ticket = Ticket { planned, run: row.run, program: row.program, pages, claim };
        Ok(Some(self.start(caller, &session, RunWork { ticket, resumed: Some(resumed), again: true })))
    }

    /// Renews the heartbeat with the current progress every few seconds, and learns whether the run was cancelled.
    pub(super) async fn heartbeat(&self, caller: &Caller, session: &Session, live: &LiveRun) -> Infallible {
        loop {
            tokio::time::sleep(BEAT).await;
            let Some(number) = live.operation() else { continue };
            let key = operation_key(caller, session, number);
            let found: Result<Option<Versioned<OperationRow>>, Error> = self.fetch(&key).await;
            let Ok(Some(found)) = found else { continue };
            if found.row.cancel || !found.row.is_of(live) {
                live.cancel.cancel();
            }
            if found.row.is_of(live) {
                let (state, progress) = (OperationState::Running { beat: self.now() }, *live.progress.borrow());
                let row = OperationRow { state, progress, ..found.row };
                let batch = Batch::default().put(key, rows::write(&row), Expect::Version(found.version));
                // The next heartbeat makes up for a lost race or a failure of the store.
                let _ = self.try_commit(batch).await;
            }
        }
    }
}

/// Returns the state of a run that this process drives.
fn detached_here(session: &Session, number: u64, live: &LiveRun) -> DetachedRun {
    DetachedRun {
        slot: session.slot,
        handle: format!("{}_o{number}", session.slot),
        task: TaskId { session: session.id, number }.to_string(),
        progress: *live.progress.borrow(),
        stopping: live.cancel.is_cancelled(),
        silent_seconds: None,
    }
}

/// Returns the state of a run that another process drives, as its row tells.
fn detached_elsewhere(session: &Session, number: u64, row: &OperationRow, now: Timestamp) -> DetachedRun {
    let handle = format!("{}_o{number}", session.slot);
    let silent_seconds = match row.state {
        OperationState::Running { beat } => u64::try_from(now.0.saturating_sub(beat.0) / 1000).ok(),
        OperationState::Ended { .. } => None,
    };
    let task = TaskId { session: session.id, number }.to_string();
    DetachedRun { slot: session.slot, handle, task, progress: row.progress, stopping: row.cancel, silent_seconds }
}

/// The result of an operation is new to its caller, so it is not marked as a replay.
fn without_replay_mark(ran: Arc<RunResult>) -> Arc<RunResult> {
    match Arc::try_unwrap(ran) {
        Ok(ran) => Arc::new(RunResult { replayed: false, ..ran }),
        Err(shared) => shared,
    }
}

/// Lets a program use operations as values: `wait(s0_o1)` among other steps.
pub(super) struct HandleCalls<'a> {
    pub service: &'a Arc<Service>,
    pub caller: &'a Caller,
    pub session: &'a Session,
}

#[async_trait]
impl exec::Operations for HandleCalls<'_> {
    async fn answer(&self, handle: &str, cancel: bool) -> Result<Rowset, OperationError> {
        let failed = |why: String| OperationError::Failed { handle: handle.to_owned(), why };
        match Box::pin(self.service.ask_operation(self.caller, self.session, handle, cancel)).await {
            Ok(RunAnswer::Finished(ran)) => match ran.outcome.returns.first().map(|r| &r.result) {
                Some(Ok(rowset)) => Ok(rowset.as_ref().clone()),
                Some(Err(error)) => Err(failed(error.to_string())),
                None => Ok(Rowset::default()),
            },
            Ok(RunAnswer::Running(operation)) => Err(failed(format!("{} still runs; ask again", operation.handle))),
            Err(Error::NoHandle(_)) => Err(OperationError::NotThere(handle.to_owned())),
            Err(error) => Err(failed(error.to_string())),
        }
    }
}
