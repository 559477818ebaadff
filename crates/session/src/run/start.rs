//! A run in a task of its own.
//! Invariant: it is in the list of runs under way from before its first call until its result is kept, and only a result that is
//! durable is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use exec::{Continuation, Ctx};
use tokio::sync::watch;

use super::gate::Ticket;
use super::operation::Asks;
use super::receipts::StoredReceipts;
use crate::caller::Caller;
use crate::error::Error;
use crate::live::Live;
use crate::load::Session;
use crate::ran::{Ran, Told};
use crate::service::Service;

pub(crate) struct Work {
    pub ticket: Ticket,
    pub pages: BTreeMap<String, Continuation>,
    /// The operation that is taken up again after a restart.
    pub operation: Option<u64>,
}

impl Work {
    pub fn new(ticket: Ticket, pages: BTreeMap<String, Continuation>) -> Self {
        Self { ticket, pages, operation: None }
    }
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
        let ticket = &work.ticket;
        let (live, ending) = Live::new(ticket.run, ticket.planned.plan.clone(), ticket.program.clone(), work.operation);
        self.lives.add(live.clone());
        let (service, caller, session, mine) = (self.clone(), caller.clone(), session.clone(), live.clone());
        let task = async move {
            let beating = service.beat(&caller, &session, &mine);
            let running = service.execute_run(&caller, &session, (work, &mine), Telling(ending.told));
            let ended = tokio::select! {
                ended = running => ended,
                never = beating => match never {},
            };
            ending.end.send_replace(Some(ended.map(Arc::new).map_err(Arc::new)));
            service.lives.remove(mine.run);
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
        let Work { ticket: Ticket { planned, run, program, claim }, pages, .. } = work;
        let calls = self.calls_of(session.id);
        let receipts = StoredReceipts { store: self.ports.store.as_ref(), tenant: &caller.tenant, session: session.id };
        let asks = Asks { service: self, caller, session };
        let mut ctx = Ctx::new(self.ports.upstream.as_ref(), &caller.tenant, &session.catalogs, &self.limits, &calls)
            .with_effects(run, &receipts);
        ctx.cancel = live.cancel.clone();
        ctx.progress = Some(&telling);
        ctx.pages = Some(&pages);
        ctx.operations = Some(&asks);
        let outcome = exec::run(&ctx, &planned.plan).await;
        for failed in outcome.returns.iter().filter_map(|r| r.result.as_ref().err()) {
            tracing::warn!(error = %failed, "a step failed");
        }
        let kept = self.keep(caller, session, (live, &planned, &outcome), claim).await?;
        let (number, pages) = (kept.number, kept.pages);
        let (plan, notes) = (planned.plan.digest, planned.notes);
        Ok(Ran { slot: session.slot, plan, program, notes, outcome, number, run, pages, replayed: false })
    }
}
