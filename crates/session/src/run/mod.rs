//! `plasm_run`: plan, run, store the result, answer.
//! Invariant: the artifact and its row are durable before the answer names them. A run continues when its caller
//! stops waiting, unless the caller cancels it; then it stops before its next effect.

mod gate;
mod lease;
mod operation;
mod page;
mod receipts;
mod recovery;
mod replay;
mod settle;
mod start;
mod store_result;
mod task;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use access::Caller;
use base::RunId;
use lang::plan::{Plan, StepKind};
use ports::store::Key;

use crate::commit::TRIES;
use crate::error::Error;
use crate::live_runs::LiveRun;
use crate::load::{Session, Versioned};
use crate::open_run::{OpenRunRow, open_run_key};
use crate::rows::{Claim, ClaimRow};
use crate::run_result::{RunAnswer, RunRequest};
use crate::service::Service;
use gate::Gate;
pub(crate) use operation::{OperationRow, OperationState};
pub(crate) use recovery::Recovered;
pub use settle::SettledReceipts;
use start::WorkKind;
pub use task::TaskState;

/// The pause before a handle is tried again. Without a handle no caller could ask for the run, so this is repeated as
/// long as its caller is connected.
const HANDLE_AGAIN: Duration = Duration::from_secs(1);

impl Service {
    /// Runs a program of a session.
    pub async fn run(self: &Arc<Self>, caller: &Caller, request: &RunRequest) -> Result<RunAnswer, Error> {
        let session = self.session(caller, &request.session).await?;
        self.run_in(caller, session, request).await
    }

    /// Runs a program in a loaded session. The session in the request is ignored.
    pub(crate) async fn run_in(
        self: &Arc<Self>,
        caller: &Caller,
        session: Session,
        request: &RunRequest,
    ) -> Result<RunAnswer, Error> {
        let place = self.reserve_detached(caller, request)?;
        let turn = self.claim_turn(&session, request).await;
        let ticket = match self.gate(caller, &session, request).await? {
            Gate::AlreadyRan(number) => return self.replay(caller, &session, number).await.map(RunAnswer::Finished),
            Gate::Started(run, claim, key) => {
                drop(turn);
                let started = StartedRun { run, claim: *claim, key };
                return self.answer_for_started(caller, session, started, request.wait).await;
            }
            Gate::Go(ticket) => *ticket,
        };
        if let Some((handle, cancel)) = only_operation(&ticket.planned.plan) {
            drop(turn);
            return self.ask_operation(caller, &session, &handle, cancel).await;
        }
        let session = Arc::new(session);
        let live = self.start(caller, &session, start::RunWork { ticket, kind: WorkKind::First });
        drop(turn);
        let answer = self.follow(caller, &session, &live, request.wait).await;
        // Last, because another task now would let the run begin before it has its handle.
        if let Some(place) = place {
            place.hold_until_end(&live);
        }
        answer
    }

    /// Waits for a run, and detaches it with a handle if it takes too long.
    async fn follow(
        &self,
        caller: &Caller,
        session: &Session,
        live: &LiveRun,
        wait: Option<bool>,
    ) -> Result<RunAnswer, Error> {
        // If the caller leaves before the run has a handle, no caller can ask for it, so it is cancelled.
        let guard = live.stop_on_drop();
        let mut patience = Duration::from_millis(if wait == Some(false) { 0 } else { self.limits.inline_ms });
        loop {
            if !patience.is_zero()
                && let Ok(ended) = tokio::time::timeout(patience, live.wait_for_end()).await
            {
                guard.disarm();
                return ended.map(RunAnswer::Finished);
            }
            match self.detach(caller, session, live).await {
                Ok(answer) => {
                    guard.disarm();
                    if wait != Some(false) {
                        self.enter_detached(caller).hold_until_end(live);
                    }
                    return Ok(answer);
                }
                Err(error) => tracing::warn!(%error, "a run could not get a handle; this is retried"),
            }
            patience = HANDLE_AGAIN;
        }
    }

    /// Returns the answer for a plan commit or request id whose run was started by an earlier call. A run whose process died is
    /// continued here; a run of another process gets a handle.
    async fn answer_for_started(
        self: &Arc<Self>,
        caller: &Caller,
        session: Session,
        StartedRun { run, claim, key: claim_key }: StartedRun,
        wait: Option<bool>,
    ) -> Result<RunAnswer, Error> {
        for _ in 0..TRIES {
            if let Some(live) = self.live_runs.get(run) {
                return match self.detach(caller, &session, &live).await? {
                    RunAnswer::Finished(ran) => {
                        self.replay(caller, &session, ran.number).await.map(RunAnswer::Finished)
                    }
                    running => Ok(running),
                };
            }
            // The run may have ended since it was looked up among the live runs.
            if let Some(number) = self.run_number(caller, &session, run).await? {
                return self.replay(caller, &session, number).await.map(RunAnswer::Finished);
            }
            let key = open_run_key(&caller.tenant, session.id, run);
            let Some(found): Option<Versioned<OpenRunRow>> = self.fetch(&key).await? else {
                // The run has just ended, or an older version of this server started it.
                let now: Option<Versioned<ClaimRow>> = self.fetch(&claim_key).await?;
                if now.is_some_and(|now| now.row.state == Claim::Claimed(run)) {
                    self.adopt_run(caller, &session, recovery::OlderRun::of_claim(run, &claim, &claim_key)).await?;
                }
                continue;
            };
            match self.recover_run(&caller.tenant, session.id, run, found).await? {
                Recovered::Live(live) => return self.follow(caller, &session, &live, wait).await,
                Recovered::Held(found) => {
                    if let Some(running) = self.detach_remote(caller, &session, (run, found)).await? {
                        return Ok(RunAnswer::Running(running));
                    }
                }
                Recovered::Changed => {}
            }
        }
        Err(Error::Busy)
    }
}

/// A run that an earlier call started, with its claim.
struct StartedRun {
    run: RunId,
    claim: ClaimRow,
    key: Key,
}

/// Returns the handle in a program that consists only of `wait(…)` or `cancel(…)`. Such a program is answered like
/// the operation itself.
fn only_operation(plan: &Plan) -> Option<(String, bool)> {
    match plan.steps.as_slice() {
        [step] => match &step.kind {
            StepKind::Operation { handle, cancel } => Some((handle.clone(), *cancel)),
            _ => None,
        },
        _ => None,
    }
}
