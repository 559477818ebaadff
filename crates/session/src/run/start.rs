//! Runs a plan in its own task.
//! Invariant: the run is listed as live from before its first call until its result is stored, and only a durable
//! result is reported.

use std::sync::Arc;

use access::Caller;
use exec::{Ctx, Receipt, ReceiptState};
use tokio::sync::watch;

use super::gate::Ticket;
use super::operation::HandleCalls;
use super::page::restore_columns;
use super::receipts::StoredReceipts;
use crate::error::Error;
use crate::live_runs::{LiveRun, LiveRunGuard, NewRun};
use crate::load::Session;
use crate::run_result::{RunProgress, RunResult};
use crate::service::Service;

/// A run to start.
pub(crate) struct RunWork {
    pub ticket: Ticket,
    /// The operation that is resumed after its process died.
    pub resumed: Option<ResumedOperation>,
    /// An earlier attempt of this run may have left receipts.
    pub again: bool,
}

/// An operation that is resumed.
#[derive(Clone, Copy)]
pub(crate) struct ResumedOperation {
    pub number: u64,
    pub owner: u32,
    /// The run was cancelled before its process died.
    pub cancel: bool,
}

/// Publishes the run's progress to callers that follow it.
struct ProgressSender(watch::Sender<RunProgress>);

impl exec::ProgressSink for ProgressSender {
    fn report(&self, progress: exec::StepProgress) {
        self.0.send_replace(RunProgress::from(progress));
    }
}

impl Service {
    /// Starts a run in its own task.
    pub(super) fn start(self: &Arc<Self>, caller: &Caller, session: &Arc<Session>, work: RunWork) -> LiveRun {
        let Ticket { run, planned, program, claim, .. } = &work.ticket;
        let (live, ending) = LiveRun::new(NewRun {
            run: *run,
            plan: planned.plan.clone(),
            program: program.clone(),
            started: self.now(),
            claim: claim.clone(),
            resumed: work.resumed.map(|r| (r.number, r.owner)),
        });
        if work.resumed.is_some_and(|r| r.cancel) {
            live.cancel.cancel();
        }
        self.live_runs.add(live.clone());
        let (service, caller, session, mine) = (self.clone(), caller.clone(), session.clone(), live.clone());
        let task = async move {
            let listed = LiveRunGuard { lives: &service.live_runs, run: mine.run };
            let beating = service.heartbeat(&caller, &session, &mine);
            let running = service.execute_run(&caller, &session, (work, &mine), ProgressSender(ending.progress));
            let ended = tokio::select! {
                ended = running => ended,
                never = beating => match never {},
            };
            ending.end.send_replace(Some(ended.map(Arc::new).map_err(Arc::new)));
            drop(listed);
        };
        tokio::spawn(tracing::Instrument::in_current_span(task));
        live
    }

    /// Executes the plan and stores its result.
    async fn execute_run(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Session,
        (work, live): (RunWork, &LiveRun),
        telling: ProgressSender,
    ) -> Result<RunResult, Error> {
        let RunWork { ticket: Ticket { planned, run, program, pages, .. }, again, .. } = work;
        let calls = self.call_permits_of(session.id);
        let receipts = StoredReceipts { service: self, caller, session, live };
        let asks = HandleCalls { service: self, caller, session };
        let mut ctx = Ctx::new(self.ports.upstream.as_ref(), &caller.tenant, &session.catalogs, &self.limits, &calls)
            .with_effects(run, &receipts);
        ctx.cancel = live.cancel.clone();
        ctx.progress = Some(&telling);
        let unread = pages.iter().map(|(handle, page)| (handle.clone(), page.from.clone())).collect();
        ctx.pages = Some(&unread);
        ctx.operations = Some(&asks);
        let mut outcome = exec::run(&ctx, &planned.plan).await;
        restore_columns(&pages, &planned.plan, &mut outcome);
        if again {
            let earlier = self.receipts_of(caller, session.id, run).await?;
            outcome.receipts = merge_earlier_receipts(outcome.receipts, earlier);
        }
        for failed in outcome.returns.iter().filter_map(|r| r.result.as_ref().err()) {
            tracing::warn!(error = %failed, "a step failed");
        }
        let kept = match self.store_result(caller, session, (live, &planned, &outcome)).await {
            Ok(kept) => kept,
            Err(error) if outcome.receipts.is_empty() => return Err(error),
            Err(error) => return Err(Error::NotKept { receipts: outcome.receipts, cause: Box::new(error) }),
        };
        let (number, pages) = (kept.number, kept.pages);
        let (plan, notes) = (planned.plan.digest, planned.notes);
        Ok(RunResult { slot: session.slot, plan, program, notes, outcome, number, run, pages, replayed: false })
    }
}

/// Adds the receipts of an earlier attempt, since its effects belong to the result even if this attempt did not reach
/// them.
fn merge_earlier_receipts(mut receipts: Vec<Receipt>, earlier: Vec<Receipt>) -> Vec<Receipt> {
    for mut receipt in earlier {
        if let Some(mine) = receipts.iter_mut().find(|mine| mine.intent.id == receipt.intent.id) {
            // The old process may have received an answer that this one could not.
            let progress = matches!(receipt.state, ReceiptState::Done | ReceiptState::Failed { .. });
            if progress && matches!(mine.state, ReceiptState::Unknown { .. }) {
                *mine = receipt;
            }
            continue;
        }
        if receipt.state == ReceiptState::Open {
            let why = "the run was interrupted while it was under way".to_owned();
            receipt.state = ReceiptState::Unknown { status: None, why };
        }
        receipts.push(receipt);
    }
    receipts.sort_by_key(|receipt| receipt.intent.id);
    receipts
}
