//! Operations: runs that outlive the call that started them.
//! Invariant: an operation names a run, whose lease says who executes it (`lease.rs`). Its row shows the progress to other
//! processes, and where the result is once the run has ended.

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

use super::lease::UnderLease;
use super::page::{HandleName, check_slot};
use super::recovery::{OlderRun, Recovered};
use super::task::TaskId;
use crate::commit::{TRIES, unchanged};
use crate::error::Error;
use crate::live_runs::LiveRun;
use crate::load::{Session, Versioned};
use crate::open_run::{AfterCrash, ClaimPlace, OpenRunRow, open_run_key};
use crate::rows::{self, LogicalRow};
use crate::run_result::{DetachedRun, RunAnswer, RunProgress, RunResult};
use crate::service::Service;

/// How often the lease of an active run is read and the progress of an operation is stored.
const LOOK: Duration = Duration::from_secs(5);
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
    /// The claim of the run. Only rows of older versions have it here; the lease names it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<ClaimPlace>,
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

/// Whether an operation is active or has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OperationState {
    /// The run is active; its owner last wrote its progress at `beat`.
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
                claim: None,
                started: Some(self.now()),
            };
            let at = Key::new(&caller.tenant, Table::LogicalSession, session.id.to_string());
            let mut lease = live.lease.lock().await;
            if live.is_lost() {
                return Err(Error::TakenOver(None));
            }
            let lease_row =
                OpenRunRow { after_crash: AfterCrash::Continue, operation: Some(number), ..lease.row.clone() };
            let batch = Batch::default()
                .put(at, rows::write(&next), unchanged(logical.version))
                .put(operation_key(caller, session, number), rows::write(&row), Expect::Absent)
                .put(lease.key.clone(), rows::write(&lease_row), unchanged(lease.version));
            if self.try_commit(batch).await?.is_some() {
                (lease.row, lease.version) = (lease_row, lease.version + 1);
                live.set_operation(Some(number));
                tracing::info!(run = %live.run, operation = number, "a run continues without its caller");
                return Ok(RunAnswer::Running(detached_here(session, number, live)));
            }
            let is_stored = lease.version > 0;
            drop(lease);
            if is_stored {
                self.refresh_lease(live).await?;
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

    /// Answers for an operation by its number, continuing its run if the owner is dead. `None` if the session has no such
    /// operation.
    pub(super) async fn ask_operation_number(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Session,
        OperationRequest { number, cancel, patience }: OperationRequest,
    ) -> Result<Option<RunAnswer>, Error> {
        let key = operation_key(caller, session, number);
        let mut tries = 0;
        let live = loop {
            let Some(mut found): Option<Versioned<OperationRow>> = self.fetch(&key).await? else { return Ok(None) };
            if cancel && !found.row.cancel && matches!(found.row.state, OperationState::Running { .. }) {
                found = self.request_cancel(caller, session, &key, found).await?;
            }
            if let OperationState::Ended { number } = found.row.state {
                let ran = self.replay(caller, session, number).await?;
                return Ok(Some(RunAnswer::Finished(without_replay_mark(ran))));
            }
            let run = found.row.run;
            if let Some(live) = self.live_runs.get(run) {
                break live;
            }
            let lease: Option<Versioned<OpenRunRow>> =
                self.fetch(&open_run_key(&caller.tenant, session.id, run)).await?;
            let recovered = match lease {
                Some(lease) => self.recover_run(&caller.tenant, session.id, run, lease).await?,
                // The run ended after its operation was read, or an older version of this server started it.
                None => {
                    let now: Option<Versioned<OperationRow>> = self.fetch(&key).await?;
                    if let Some(now) = now.filter(|now| matches!(now.row.state, OperationState::Running { .. })) {
                        self.adopt_run(caller, session, OlderRun::of_operation(number, &now.row)).await?;
                    }
                    Recovered::Changed
                }
            };
            match recovered {
                Recovered::Live(live) => break live,
                Recovered::Held(_) => {
                    let running = detached_elsewhere(session, number, &found.row, self.now());
                    return Ok(Some(RunAnswer::Running(running)));
                }
                Recovered::Changed if tries == TRIES => return Err(Error::Busy),
                Recovered::Changed => tries += 1,
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

    /// Gives a run of another process a handle. `None` if the run has changed since its lease was read.
    pub(super) async fn detach_remote(
        &self,
        caller: &Caller,
        session: &Session,
        (run, lease): (RunId, Versioned<OpenRunRow>),
    ) -> Result<Option<DetachedRun>, Error> {
        if let Some(number) = lease.row.operation {
            return self.peek_operation(caller, session, number).await;
        }
        let Ok(planned) = self.plan_in(session, &lease.row.program, lease.row.planned) else { return Ok(None) };
        let logical =
            self.logical(caller, session.id).await?.ok_or_else(|| Error::NoSession(session.id.to_string()))?;
        let number = logical.row.operations + 1;
        let row = OperationRow {
            run,
            plan: planned.plan,
            program: lease.row.program.clone(),
            state: OperationState::Running { beat: self.now() },
            cancel: lease.row.cancelled,
            progress: RunProgress::default(),
            claim: None,
            started: Some(self.now()),
        };
        let next = LogicalRow { operations: number, ..logical.row };
        let lease_row = OpenRunRow { after_crash: AfterCrash::Continue, operation: Some(number), ..lease.row };
        let at = Key::new(&caller.tenant, Table::LogicalSession, session.id.to_string());
        let batch = Batch::default()
            .put(at, rows::write(&next), unchanged(logical.version))
            .put(operation_key(caller, session, number), rows::write(&row), Expect::Absent)
            .put(
                open_run_key(&caller.tenant, session.id, run),
                rows::write(&lease_row),
                Expect::Version(lease.version),
            );
        let committed = self.try_commit(batch).await?;
        Ok(committed.map(|()| detached_elsewhere(session, number, &row, self.now())))
    }

    /// Cancels the run for its owner, perhaps another process. The lease carries the cancellation, so that no further effect of
    /// the run can leave.
    async fn request_cancel(
        &self,
        caller: &Caller,
        session: &Session,
        key: &Key,
        mut found: Versioned<OperationRow>,
    ) -> Result<Versioned<OperationRow>, Error> {
        let lease_key = open_run_key(&caller.tenant, session.id, found.row.run);
        for _ in 0..TRIES {
            found.row.cancel = true;
            let mut batch = Batch::default().put(key.clone(), rows::write(&found.row), Expect::Version(found.version));
            let lease: Option<Versioned<OpenRunRow>> = self.fetch(&lease_key).await?;
            if let Some(lease) = lease {
                let row = OpenRunRow { cancelled: true, ..lease.row };
                batch = batch.put(lease_key.clone(), rows::write(&row), Expect::Version(lease.version));
            }
            if self.try_commit(batch).await?.is_some() {
                tracing::info!(run = %found.row.run, "a run was cancelled");
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

    /// Watches the lease of a run while it executes: learns of a cancellation or a takeover by another process, stores a
    /// cancellation by this one, and shows the progress of an operation.
    pub(super) async fn watch_lease(&self, caller: &Caller, session: &Session, live: &LiveRun) -> Infallible {
        let mut is_cancel_stored = false;
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = live.cancel.cancelled(), if !is_cancel_stored => {}
            }
            if live.cancel.is_cancelled() && !is_cancel_stored {
                match self.store_cancel(live).await {
                    Ok(()) => is_cancel_stored = true,
                    Err(error) => {
                        tracing::warn!(run = %live.run, %error, "a cancellation could not be stored and is retried");
                        tokio::time::sleep(LOOK).await;
                    }
                }
                continue;
            }
            if live.lease.lock().await.version == 0 {
                continue;
            }
            // A failure of the store is met again by the next look, and by the next effect.
            if !matches!(self.refresh_lease(live).await, Ok(UnderLease::Written)) {
                continue;
            }
            let Some(number) = live.operation() else { continue };
            let key = operation_key(caller, session, number);
            let found: Result<Option<Versioned<OperationRow>>, Error> = self.fetch(&key).await;
            let Ok(Some(found)) = found else { continue };
            if matches!(found.row.state, OperationState::Running { .. }) {
                let (state, progress) = (OperationState::Running { beat: self.now() }, *live.progress.borrow());
                let row = OperationRow { state, progress, ..found.row };
                let batch = Batch::default().put(key, rows::write(&row), Expect::Version(found.version));
                // The next look makes up for a lost race or a failure of the store.
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
