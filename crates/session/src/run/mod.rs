//! `plasm_run`: plan, run, keep the result, answer.
//! Invariant: the artifact is in the blobs and its row is committed before the answer names it; a run goes on when its caller
//! stops waiting, unless the caller says that it shall stop, and then it stops before the next effect.

mod gate;
mod keep;
mod operation;
mod page;
mod receipts;
mod replay;
mod start;

use std::sync::Arc;
use std::time::Duration;

use base::RunId;
use lang::plan::{Plan, StepKind};
use ports::receipts::Receipt;

use crate::caller::Caller;
use crate::error::Error;
use crate::load::Session;
use crate::ran::{RunAnswer, RunRequest};
use crate::service::Service;
use gate::{Gate, Ticket};

impl Service {
    pub async fn run(self: &Arc<Self>, caller: &Caller, request: &RunRequest) -> Result<RunAnswer, Error> {
        let session = self.session(caller, &request.session).await?;
        match self.gate(caller, &session, request).await? {
            Gate::Ran(number) => self.replay(caller, &session, number).await.map(RunAnswer::Finished),
            Gate::Started(run) => self.started(caller, &session, run).await,
            Gate::Go(ticket) => match only_operation(&ticket.planned.plan) {
                Some((handle, cancel)) => self.ask(caller, &session, &handle, cancel).await,
                None => self.go(caller, session, *ticket, request.wait).await,
            },
        }
    }

    async fn go(
        self: &Arc<Self>,
        caller: &Caller,
        session: Session,
        ticket: Ticket,
        wait: Option<bool>,
    ) -> Result<RunAnswer, Error> {
        let pages = self.pages_of(caller, &session, &ticket.planned.plan).await?;
        let session = Arc::new(session);
        let live = self.start(caller, &session, start::Work::new(ticket, pages));
        if wait == Some(false) {
            return self.detach(caller, &session, &live).await;
        }
        // Whoever stops waiting for a run that nobody else can ask about wants it to stop.
        let guard = live.stop_on_drop();
        match tokio::time::timeout(Duration::from_millis(self.limits.inline_ms), live.ended()).await {
            Ok(ended) => {
                guard.disarm();
                ended.map(RunAnswer::Finished)
            }
            Err(_) => {
                let answer = self.detach(caller, &session, &live).await;
                guard.disarm();
                answer
            }
        }
    }

    /// A commit or a request id that someone used before, whose run has no result yet.
    async fn started(self: &Arc<Self>, caller: &Caller, session: &Session, run: RunId) -> Result<RunAnswer, Error> {
        if let Some(live) = self.lives.get(run) {
            return self.detach(caller, session, &live).await;
        }
        // It may have ended between the two looks.
        if let Some(number) = self.number_of(caller, session, run).await? {
            return self.replay(caller, session, number).await.map(RunAnswer::Finished);
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
