//! Operations: runs that outlive the call that started them.
//! Invariant: an operation has one owner, which says that it lives every few seconds; who takes one over from a dead owner
//! runs the same plan under the same run, so that effects which have a receipt are not done again.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{RunId, Timestamp};
use exec::{OperationError, Rowset};
use lang::plan::Plan;
use ports::store::{Batch, Expect, Key, Table};
use serde::{Deserialize, Serialize};

use super::gate::Ticket;
use super::page::{Handle, own};
use super::start::{Resumed, Work};
use super::task::TaskId;
use crate::commit::{TRIES, unchanged};
use crate::error::Error;
use crate::live::Live;
use crate::load::{Session, Versioned};
use crate::program::Planned;
use crate::ran::{Operation, Ran, RunAnswer, Told};
use crate::rows::{self, ClaimRow, LogicalRow};
use crate::service::Service;
use access::Caller;

const BEAT: Duration = Duration::from_secs(5);
const DEAD_AFTER_MS: i64 = Operation::DEAD_AFTER as i64 * 1000;
/// How long `wait(…)` waits before it answers that the run still goes on.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OperationRow {
    pub run: RunId,
    pub plan: Plan,
    pub program: String,
    pub state: OperationState,
    /// Someone wants it to stop, perhaps from another process.
    pub cancel: bool,
    pub told: Told,
    /// How often it was taken over: whoever took it over last has it.
    #[serde(default)]
    pub owner: u32,
    #[serde(default)]
    pub claim: Option<ClaimAt>,
    /// When it was given its handle.
    #[serde(default)]
    pub started: Option<Timestamp>,
}

/// What is wanted of an operation.
#[derive(Clone, Copy)]
pub(super) struct Asked {
    pub number: u64,
    /// It shall stop.
    pub cancel: bool,
    /// How long to wait for its end.
    pub patience: Duration,
}

/// The commit or the request id that a run was asked for with.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ClaimAt {
    table: Table,
    id: String,
    row: ClaimRow,
}

impl OperationRow {
    /// Whether this process still has it.
    pub fn is_of(&self, live: &Live) -> bool {
        self.run == live.run && self.owner == live.owner && matches!(self.state, OperationState::Running { .. })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OperationState {
    Running { beat: Timestamp },
    Ended { number: u64 },
}

pub(super) fn operation_key(caller: &Caller, session: &Session, number: u64) -> Key {
    Key::new(&caller.tenant, Table::Operation, format!("{}/{number:010}", session.id))
}

impl Service {
    /// Gives a run under way a handle, under which anyone of the session can ask for it.
    pub(super) async fn detach(&self, caller: &Caller, session: &Session, live: &Live) -> Result<RunAnswer, Error> {
        let turn = self.turn(&session.id.to_string()).await;
        for _ in 0..TRIES {
            if live.has_ended() {
                drop(turn);
                return live.ended().await.map(RunAnswer::Finished);
            }
            if let Some(number) = live.operation() {
                return Ok(RunAnswer::Running(operation(session, number, live)));
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
                told: *live.told.borrow(),
                owner: live.owner,
                claim: live.claim.clone().map(|(key, row)| ClaimAt { table: key.table, id: key.id, row }),
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
                live.speak_as(number);
                return Ok(RunAnswer::Running(operation(session, number, live)));
            }
        }
        Err(Error::Busy)
    }

    /// `wait(s0_o1)` and `cancel(s0_o1)`.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Session,
        handle: &str,
        cancel: bool,
    ) -> Result<RunAnswer, Error> {
        let unknown = || Error::NoHandle(base::printable(handle, 60));
        let parsed = Handle::parse(handle, "o").ok_or_else(unknown)?;
        own(session, parsed.slot, handle)?;
        let asked = Asked { number: parsed.number, cancel, patience: PATIENCE };
        if let Some(answer) = self.ask_for(caller, session, asked).await? {
            return Ok(answer);
        }
        let operations = self.logical(caller, session.id).await?.map_or(0, |row| row.row.operations);
        let was_there = (1..=operations).contains(&parsed.number);
        Err(if was_there { self.gone(handle) } else { unknown() })
    }

    /// `None`: the session has no such operation.
    pub(super) async fn ask_for(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Session,
        Asked { number, cancel, patience }: Asked,
    ) -> Result<Option<RunAnswer>, Error> {
        let key = operation_key(caller, session, number);
        let live = loop {
            let Some(mut found): Option<Versioned<OperationRow>> = self.fetch(&key).await? else { return Ok(None) };
            if cancel && !found.row.cancel && matches!(found.row.state, OperationState::Running { .. }) {
                found = self.want_stop(&key, found).await?;
            }
            let beat = match found.row.state {
                OperationState::Ended { number } => {
                    let ran = self.replay(caller, session, number).await?;
                    return Ok(Some(RunAnswer::Finished(unmarked(ran))));
                }
                OperationState::Running { beat } => beat,
            };
            if let Some(live) = self.lives.get(found.row.run) {
                break live;
            }
            if self.now().0.saturating_sub(beat.0) < DEAD_AFTER_MS {
                // Another process has it.
                return Ok(Some(RunAnswer::Running(elsewhere(session, number, &found.row, self.now()))));
            }
            // Whoever loses the race for it looks again, and finds that it lives.
            if let Some(live) = self.take_over(caller, session, (number, &key, found)).await? {
                break live;
            }
        };
        if cancel {
            live.cancel.cancel();
        }
        match tokio::time::timeout(patience, live.ended()).await {
            Ok(ended) => ended.map(|ran| Some(RunAnswer::Finished(ran))),
            Err(_) => Ok(Some(RunAnswer::Running(operation(session, number, &live)))),
        }
    }

    /// What is known of an operation, without doing anything about it.
    pub(super) async fn look(
        &self,
        caller: &Caller,
        session: &Session,
        number: u64,
    ) -> Result<Option<Operation>, Error> {
        let found: Option<Versioned<OperationRow>> = self.fetch(&operation_key(caller, session, number)).await?;
        let running = found.filter(|found| matches!(found.row.state, OperationState::Running { .. }));
        Ok(running.map(|found| elsewhere(session, number, &found.row, self.now())))
    }

    async fn want_stop(&self, key: &Key, mut found: Versioned<OperationRow>) -> Result<Versioned<OperationRow>, Error> {
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

    /// The owner is dead: the same plan goes on here, under the same run. One of several that try gets it.
    async fn take_over(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Session,
        (number, key, found): (u64, &Key, Versioned<OperationRow>),
    ) -> Result<Option<Live>, Error> {
        // All that can fail comes first: once it is ours, it runs.
        let pages = self.pages_of(caller, session, &found.row.plan).await?;
        let session = Arc::new(self.session_in(caller, session.id, session.slot).await?);
        let (state, owner) = (OperationState::Running { beat: self.now() }, found.row.owner + 1);
        let row = OperationRow { state, owner, ..found.row };
        let batch = Batch::default().put(key.clone(), rows::write(&row), Expect::Version(found.version));
        if self.try_commit(batch).await?.is_none() {
            return Ok(None);
        }
        tracing::info!(run = %row.run, "an operation whose process died goes on here");
        let resumed = Resumed { number, owner, cancel: row.cancel };
        let planned = Planned::resumed(session.slot, row.plan);
        let claim = row.claim.map(|at| (Key::new(&caller.tenant, at.table, at.id), at.row));
        let ticket = Ticket { planned, run: row.run, program: row.program, pages, claim };
        Ok(Some(self.start(caller, &session, Work { ticket, resumed: Some(resumed), again: true })))
    }

    /// Says every few seconds that the operation lives, how far it is, and hears whether it shall stop.
    pub(super) async fn beat(&self, caller: &Caller, session: &Session, live: &Live) -> Infallible {
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
                let (state, told) = (OperationState::Running { beat: self.now() }, *live.told.borrow());
                let row = OperationRow { state, told, ..found.row };
                let batch = Batch::default().put(key, rows::write(&row), Expect::Version(found.version));
                // A lost race or a fault of the store is made good by the next beat.
                let _ = self.try_commit(batch).await;
            }
        }
    }
}

fn operation(session: &Session, number: u64, live: &Live) -> Operation {
    Operation {
        slot: session.slot,
        handle: format!("{}_o{number}", session.slot),
        task: TaskId { session: session.id, number }.to_string(),
        told: *live.told.borrow(),
        stopping: live.cancel.is_cancelled(),
        silent: None,
    }
}

/// What the row says of a run that this process does not have, whoever asks for it and by what.
fn elsewhere(session: &Session, number: u64, row: &OperationRow, now: Timestamp) -> Operation {
    let handle = format!("{}_o{number}", session.slot);
    let silent = match row.state {
        OperationState::Running { beat } => u64::try_from(now.0.saturating_sub(beat.0) / 1000).ok(),
        OperationState::Ended { .. } => None,
    };
    let task = TaskId { session: session.id, number }.to_string();
    Operation { slot: session.slot, handle, task, told: row.told, stopping: row.cancel, silent }
}

/// The result of an operation is not a replay: its caller has not had it yet.
fn unmarked(ran: Arc<Ran>) -> Arc<Ran> {
    match Arc::try_unwrap(ran) {
        Ok(ran) => Arc::new(Ran { replayed: false, ..ran }),
        Err(shared) => shared,
    }
}

/// Operations as a program's values: `wait(s0_o1)` among other steps.
pub(super) struct Asks<'a> {
    pub service: &'a Arc<Service>,
    pub caller: &'a Caller,
    pub session: &'a Session,
}

#[async_trait]
impl exec::Operations for Asks<'_> {
    async fn ask(&self, handle: &str, cancel: bool) -> Result<Rowset, OperationError> {
        let failed = |why: String| OperationError::Failed { handle: handle.to_owned(), why };
        match Box::pin(self.service.ask(self.caller, self.session, handle, cancel)).await {
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
