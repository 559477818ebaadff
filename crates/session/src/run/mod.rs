//! `plasm_run`: plan, run, keep the result, answer.
//! Invariant: the artifact is in the blobs and its row is committed before the answer names it; a run goes on when its caller
//! stops waiting, unless the caller says that it shall stop, and then it stops before the next effect.

mod again;
mod gate;
mod keep;
mod operation;
mod page;
mod receipts;
mod replay;
mod start;
mod task;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use base::RunId;
use lang::plan::{Plan, StepKind};
use ports::receipts::Receipt;

use crate::error::Error;
use crate::live::Live;
use crate::load::Session;
use crate::ran::{RunAnswer, RunRequest};
use crate::service::Service;
use access::Caller;
use gate::Gate;
pub(crate) use gate::request_key;
pub(crate) use operation::{OperationRow, OperationState};
pub use task::TaskState;

/// Without a handle nobody could ask for the run, so it is tried again for as long as its caller is there.
const HANDLE_AGAIN: Duration = Duration::from_secs(1);

impl Service {
    pub async fn run(self: &Arc<Self>, caller: &Caller, request: &RunRequest) -> Result<RunAnswer, Error> {
        let session = self.session(caller, &request.session).await?;
        self.run_in(caller, session, request).await
    }

    /// In a session that is known already; what the request says of it is not looked at.
    pub(crate) async fn run_in(
        self: &Arc<Self>,
        caller: &Caller,
        session: Session,
        request: &RunRequest,
    ) -> Result<RunAnswer, Error> {
        let turn = self.claim_turn(&session, request).await;
        let ticket = match self.gate(caller, &session, request).await? {
            Gate::Ran(number) => return self.replay(caller, &session, number).await.map(RunAnswer::Finished),
            Gate::Started(run, operation) => {
                drop(turn);
                return self.started(caller, &session, (run, operation)).await;
            }
            Gate::Go(ticket) => *ticket,
        };
        if let Some((handle, cancel)) = only_operation(&ticket.planned.plan) {
            drop(turn);
            return self.ask(caller, &session, &handle, cancel).await;
        }
        let session = Arc::new(session);
        let live = self.start(caller, &session, start::Work { ticket, resumed: None, again: false });
        drop(turn);
        self.follow(caller, &session, &live, request.wait).await
    }

    /// Waits for a run, and gives it a handle when that takes too long.
    async fn follow(
        &self,
        caller: &Caller,
        session: &Session,
        live: &Live,
        wait: Option<bool>,
    ) -> Result<RunAnswer, Error> {
        // Whoever stops waiting for a run that nobody else can ask about wants it to stop.
        let guard = live.stop_on_drop();
        let mut patience = Duration::from_millis(if wait == Some(false) { 0 } else { self.limits.inline_ms });
        loop {
            if !patience.is_zero()
                && let Ok(ended) = tokio::time::timeout(patience, live.ended()).await
            {
                guard.disarm();
                return ended.map(RunAnswer::Finished);
            }
            match self.detach(caller, session, live).await {
                Ok(answer) => {
                    guard.disarm();
                    return Ok(answer);
                }
                Err(error) => tracing::warn!(%error, "a run could not be given a handle, trying again"),
            }
            patience = HANDLE_AGAIN;
        }
    }

    /// A commit or a request id that someone used before, whose run has no result yet.
    pub(crate) async fn started(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Session,
        (run, operation): (RunId, Option<u64>),
    ) -> Result<RunAnswer, Error> {
        if let Some(live) = self.lives.get(run) {
            return match self.detach(caller, session, &live).await? {
                RunAnswer::Finished(ran) => self.replay(caller, session, ran.number).await.map(RunAnswer::Finished),
                running => Ok(running),
            };
        }
        // It may have ended between the two looks.
        if let Some(number) = self.number_of(caller, session, run).await? {
            return self.replay(caller, session, number).await.map(RunAnswer::Finished);
        }
        if let Some(number) = operation
            && let Some(running) = self.look(caller, session, number).await?
        {
            return Ok(RunAnswer::Running(running));
        }
        let receipts: Vec<Receipt> = self.receipts_of(caller, session.id, run).await?;
        Err(Error::Interrupted { receipts })
    }
}

/// A program that is nothing but `wait(…)` or `cancel(…)` answers what the operation itself would.
fn only_operation(plan: &Plan) -> Option<(String, bool)> {
    match plan.steps.as_slice() {
        [step] => match &step.kind {
            StepKind::Operation { handle, cancel } => Some((handle.clone(), *cancel)),
            _ => None,
        },
        _ => None,
    }
}
