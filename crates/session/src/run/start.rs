//! Runs a plan in its own task.
//! Invariant: the run is listed as live from before its first call until its result is stored, and only a durable
//! result is reported.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use access::Caller;
use exec::{Ctx, Outcome, Receipt, ReceiptState, ReturnResult, StepError};
use lang::plan::{Plan, PlanResult};
use tokio::sync::watch;

use super::gate::Ticket;
use super::operation::HandleCalls;
use super::page::{PageRow, restore_columns};
use super::receipts::StoredReceipts;
use crate::error::Error;
use crate::live_runs::{LiveRun, LiveRunGuard, NewRun};
use crate::load::Session;
use crate::program::PlannedProgram;
use crate::run_result::{RunProgress, RunResult};
use crate::service::Service;

/// A run to start.
pub(crate) struct RunWork {
    pub ticket: Ticket,
    pub kind: WorkKind,
}

/// How a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkKind {
    /// Nothing of the run happened before.
    First,
    /// An earlier process executed a part of the run and may have left receipts.
    Continued,
    /// The run is not executed again. Its end and its receipts are stored.
    Interrupted,
}

/// Publishes the run's progress to callers that follow it.
struct ProgressSender(watch::Sender<RunProgress>);

impl exec::ProgressSink for ProgressSender {
    fn report(&self, progress: exec::StepProgress) {
        self.0.send_replace(RunProgress::from(progress));
    }
}

impl Service {
    /// Starts a run in its own task. If this process executes the run already, returns that run.
    pub(super) fn start(self: &Arc<Self>, caller: &Caller, session: &Arc<Session>, work: RunWork) -> LiveRun {
        let RunWork { ticket: Ticket { planned, run, program, pages, lease, starting }, kind } = work;
        let (live, senders) =
            LiveRun::new(NewRun { run, plan: planned.plan.clone(), program, started: lease.row.started, lease });
        if !self.live_runs.add(live.clone()) {
            return self.live_runs.get(run).unwrap_or(live);
        }
        drop(starting);
        let (service, caller, session, mine) = (self.clone(), caller.clone(), session.clone(), live.clone());
        let task = async move {
            let listed = LiveRunGuard { lives: &service.live_runs, run: mine.run };
            let watching = service.watch_lease(&caller, &session, &mine);
            let execution = Execution { caller: &caller, session: &session, live: &mine, planned, pages, kind };
            let running = service.execute_run(execution, ProgressSender(senders.progress));
            let ended = tokio::select! {
                ended = running => ended,
                never = watching => match never {},
            };
            match &ended {
                Ok(result) => tracing::info!(%run, number = result.number, "a run ended"),
                Err(error) => tracing::warn!(%run, %error, "a run ended without a stored result"),
            }
            senders.end.send_replace(Some(ended.map(Arc::new).map_err(Arc::new)));
            drop(listed);
        };
        tokio::spawn(tracing::Instrument::in_current_span(task));
        live
    }

    /// Executes the plan and stores its result.
    async fn execute_run(
        self: &Arc<Self>,
        Execution { caller, session, live, planned, pages, kind }: Execution<'_>,
        progress: ProgressSender,
    ) -> Result<RunResult, Error> {
        let run = live.run;
        let mut outcome = match kind {
            WorkKind::Interrupted => interrupted_outcome(&planned.plan),
            WorkKind::First | WorkKind::Continued => {
                let calls = self.call_permits_of(session.id);
                let is_continued = kind == WorkKind::Continued;
                let receipts =
                    StoredReceipts { service: self, caller, session, live, is_continued, opened: Mutex::default() };
                let handle_calls = HandleCalls { service: self, caller, session };
                let upstream = self.ports.upstream.as_ref();
                let mut ctx = Ctx::new(upstream, &caller.tenant, &session.catalogs, &self.limits, &calls)
                    .with_effects(run, &receipts);
                ctx.cancel = live.cancel.clone();
                ctx.progress = Some(&progress);
                let unread = pages.iter().map(|(handle, page)| (handle.clone(), page.from.clone())).collect();
                ctx.pages = Some(&unread);
                ctx.operations = Some(&handle_calls);
                exec::run(&ctx, &planned.plan).await
            }
        };
        // The data for later looks is stored by now. Without it the result is the same as when it is read again.
        for receipt in &mut outcome.receipts {
            receipt.intent.settlement = None;
        }
        restore_columns(&pages, &planned.plan, &mut outcome);
        if kind != WorkKind::First {
            let earlier = self.receipts_of(caller, session.id, run).await?;
            outcome.receipts = merge_earlier_receipts(outcome.receipts, earlier);
        }
        for failed in outcome.returns.iter().filter_map(|r| r.result.as_ref().err()) {
            tracing::warn!(%run, error = %failed, "a step failed");
        }
        let kept = match self.store_result(caller, session, (live, &planned, &outcome)).await {
            Ok(kept) => kept,
            Err(error @ Error::TakenOver(_)) => return Err(error),
            Err(error) if outcome.receipts.is_empty() => return Err(error),
            Err(error) => return Err(Error::NotKept { receipts: outcome.receipts, cause: Box::new(error) }),
        };
        let (number, pages) = (kept.number, kept.pages);
        let (plan, notes, program) = (planned.plan.digest, planned.notes, live.program.clone());
        Ok(RunResult { slot: session.slot, plan, program, notes, outcome, number, run, pages, replayed: false })
    }
}

/// A run that is being executed.
struct Execution<'a> {
    caller: &'a Caller,
    session: &'a Session,
    live: &'a LiveRun,
    planned: PlannedProgram,
    /// The lists that the plan reads on from, by page handle.
    pages: BTreeMap<String, PageRow>,
    kind: WorkKind,
}

/// Returns the outcome of a run that is not executed again. Its receipts are added by the caller.
fn interrupted_outcome(plan: &Plan) -> Outcome {
    let why = "interrupted: its process died and its caller was cut off, so it was not run again";
    let failed = |result: &PlanResult| ReturnResult {
        label: result.label.clone(),
        entity: String::new(),
        columns: Vec::new(),
        long_columns: Vec::new(),
        effect: false,
        result: Err(Arc::new(StepError::Recorded(why.to_owned()))),
    };
    let returns = plan.returns.iter().map(failed).collect();
    Outcome { returns, receipts: Vec::new(), cancelled: true, step_times: Vec::new() }
}

/// Adds the receipts of an earlier attempt, since its effects belong to the result even if this attempt did not reach
/// them.
fn merge_earlier_receipts(mut receipts: Vec<Receipt>, earlier: Vec<Receipt>) -> Vec<Receipt> {
    for mut receipt in earlier {
        if let Some(mine) = receipts.iter_mut().find(|mine| mine.intent.id == receipt.intent.id) {
            // The old process may have received an answer that this one could not.
            if receipt.state.is_certain() && matches!(mine.state, ReceiptState::Unknown { .. }) {
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
