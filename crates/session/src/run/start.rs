//! A run in a task of its own.
//! Invariant: it is in the list of runs under way from before its first call until its result is kept, and only a result that is
//! durable is told.

use std::sync::Arc;

use exec::{Ctx, Receipt, ReceiptState};
use tokio::sync::watch;

use super::gate::Ticket;
use super::operation::Asks;
use super::page::as_before;
use super::receipts::StoredReceipts;
use crate::error::Error;
use crate::live::{Begun, Listed, Live};
use crate::load::Session;
use crate::ran::{Ran, Told};
use crate::service::Service;
use access::Caller;

pub(crate) struct Work {
    pub ticket: Ticket,
    /// The operation that goes on here after its process died.
    pub resumed: Option<Resumed>,
    /// It may have left receipts before.
    pub again: bool,
}

/// An operation that is taken up again.
#[derive(Clone, Copy)]
pub(crate) struct Resumed {
    pub number: u64,
    pub owner: u32,
    /// It was told to stop before its process died.
    pub cancel: bool,
}

/// Hands what a run says of its progress to whoever asks.
struct Telling(watch::Sender<Told>);

impl exec::Progress for Telling {
    fn tell(&self, told: exec::Told) {
        self.0.send_replace(Told::from(told));
    }
}

impl Service {
    /// Starts a run in a task of its own.
    pub(super) fn start(self: &Arc<Self>, caller: &Caller, session: &Arc<Session>, work: Work) -> Live {
        let Ticket { run, planned, program, claim, .. } = &work.ticket;
        let (live, ending) = Live::new(Begun {
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
        self.lives.add(live.clone());
        let (service, caller, session, mine) = (self.clone(), caller.clone(), session.clone(), live.clone());
        let task = async move {
            let listed = Listed { lives: &service.lives, run: mine.run };
            let beating = service.beat(&caller, &session, &mine);
            let running = service.execute_run(&caller, &session, (work, &mine), Telling(ending.told));
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

    async fn execute_run(
        self: &Arc<Self>,
        caller: &Caller,
        session: &Session,
        (work, live): (Work, &Live),
        telling: Telling,
    ) -> Result<Ran, Error> {
        let Work { ticket: Ticket { planned, run, program, pages, .. }, again, .. } = work;
        let calls = self.calls_of(session.id);
        let receipts = StoredReceipts { service: self, caller, session, live };
        let asks = Asks { service: self, caller, session };
        let mut ctx = Ctx::new(self.ports.upstream.as_ref(), &caller.tenant, &session.catalogs, &self.limits, &calls)
            .with_effects(run, &receipts);
        ctx.cancel = live.cancel.clone();
        ctx.progress = Some(&telling);
        let unread = pages.iter().map(|(handle, page)| (handle.clone(), page.from.clone())).collect();
        ctx.pages = Some(&unread);
        ctx.operations = Some(&asks);
        let mut outcome = exec::run(&ctx, &planned.plan).await;
        as_before(&pages, &planned.plan, &mut outcome);
        if again {
            let earlier = self.receipts_of(caller, session.id, run).await?;
            outcome.receipts = with_earlier(outcome.receipts, earlier);
        }
        for failed in outcome.returns.iter().filter_map(|r| r.result.as_ref().err()) {
            tracing::warn!(error = %failed, "a step failed");
        }
        let kept = match self.keep(caller, session, (live, &planned, &outcome)).await {
            Ok(kept) => kept,
            Err(error) if outcome.receipts.is_empty() => return Err(error),
            Err(error) => return Err(Error::NotKept { receipts: outcome.receipts, cause: Box::new(error) }),
        };
        let (number, pages) = (kept.number, kept.pages);
        let (plan, notes) = (planned.plan.digest, planned.notes);
        Ok(Ran { slot: session.slot, plan, program, notes, outcome, number, run, pages, replayed: false })
    }
}

/// What a run did before its process died belongs to its result, also where this time it did not come so far.
fn with_earlier(mut receipts: Vec<Receipt>, earlier: Vec<Receipt>) -> Vec<Receipt> {
    for mut receipt in earlier {
        if let Some(mine) = receipts.iter_mut().find(|mine| mine.intent.id == receipt.intent.id) {
            // The old process may have lived long enough to hear what this one could not.
            let told = matches!(receipt.state, ReceiptState::Done | ReceiptState::Failed { .. });
            if told && matches!(mine.state, ReceiptState::Unknown { .. }) {
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
