//! The first step of a run whose process died, in the process that takes it over.
//! Invariant: ownership changes by compare-and-set before any call of the run is made, together with the first thing
//! that is stored. It changes earlier if the step takes long, has much to store, or requests a program that needs a
//! plan.
//!
//! Claiming the run and storing its next step separately would be two transactions, each of which costs more than the
//! step. If an answer for the run is ready, the step comes first and both are one transaction. Otherwise reads are
//! repeated while the run is claimed.

use durable::Lease;
use ports::scripts::{Call, Input, Outcome, Stepped};
use ports::store::{Batch, Expect, Write};
use tokio_util::task::AbortOnDropHandle;

use super::calls::is_effect;
use super::drive::ScriptRun;
use super::fast_path::{FAST_PATH_LIMIT, beside};
use crate::engine::rows::{Parked, PendingCall, execution_key, open_key};
use crate::error::Error;
use crate::js::heaps::INLINE_BYTES;
use crate::rows;
use crate::sync::lock;

/// A timer that is due within this time counts as due soon.
const SOON_MS: i64 = 1_000;

/// The first step, or `None` if no answer was ready for it.
type FirstStep = Option<Result<Stepped, Error>>;

impl ScriptRun {
    /// Returns `None` if another process owns the run by now.
    pub(super) async fn step_before_claim(&mut self) -> Result<Option<FirstStep>, Error> {
        // The receipts of the earlier owner say which effects may have left. They are certain only after the claim, since that
        // owner may be frozen and not dead.
        if self.has_unanswered_effects() {
            let claimed = self.claim().await?;
            let claimed = self.finish_claim(claimed, None).await?;
            if claimed.is_some() {
                self.read_earlier_receipts().await?;
                self.repeat_reads();
            }
            return Ok(claimed);
        }
        let Some(answers) = self.ready_answers() else {
            self.repeat_reads();
            // Lets the reads leave before the claim is written.
            tokio::task::yield_now().await;
            let claimed = self.claim().await?;
            if claimed {
                self.prepare_heap();
            }
            return self.finish_claim(claimed, None).await;
        };
        let (stepped, claimed) = self.step_and_claim(Input::Settle { answers }).await;
        match (claimed, stepped) {
            (None, Some(stepped)) if !self.stores_more(&stepped) => {
                // The next commit makes this process the owner.
                self.log_takeover();
                Ok(Some(Some(stepped)))
            }
            (None, stepped) => {
                let claimed = self.claim().await?;
                self.finish_claim(claimed, stepped).await
            }
            (Some(claimed), stepped) => {
                let claimed = claimed? && stepped.is_some();
                self.finish_claim(claimed, stepped).await
            }
        }
    }

    /// Whether storing the step takes more than one transaction: a plan to store, or a blob.
    fn stores_more(&self, stepped: &Result<Stepped, Error>) -> bool {
        let Ok(stepped) = stepped else { return false };
        let plans = match &stepped.outcome {
            Outcome::Waiting { owed } => owed.iter().any(|owed| matches!(owed.call, Call::Plasm { .. })),
            _ => false,
        };
        plans || stepped.heap.object.len() >= INLINE_BYTES
    }

    fn log_takeover(&self) {
        tracing::info!(execution = %self.id, state = %self.at.row.state, "took over a script run whose process died");
    }

    async fn finish_claim(&mut self, claimed: bool, first: FirstStep) -> Result<Option<FirstStep>, Error> {
        if claimed {
            self.log_takeover();
            self.is_claim_due = false;
            self.at.version += 1;
            return Ok(Some(first));
        }
        self.refresh().await?;
        Ok(None)
    }

    /// Runs a step, and claims the run if the step takes long. The first part is `None` if the run was lost
    /// meanwhile; the second is `None` if the step was short.
    async fn step_and_claim(&self, input: Input) -> (FirstStep, Option<Result<bool, Error>>) {
        let step = self.step(input);
        tokio::pin!(step);
        tokio::select! {
            biased;
            stepped = &mut step => return (Some(stepped), None),
            () = self.service.ports.clock.sleep(FAST_PATH_LIMIT) => {}
        }
        let (mut stepped, claimed) = beside(step.as_mut(), self.claim()).await;
        if stepped.is_none() && matches!(claimed, Ok(true)) {
            tokio::select! {
                biased;
                ended = &mut step => stepped = Some(ended),
                () = self.lost() => self.live.stop.stop(),
            }
        }
        (stepped, Some(claimed))
    }

    /// Returns the write that makes this process the owner in the row of the lease. Every transaction that has it also requires the
    /// version of the run's row, which names the same owner, so no version of the lease is required.
    pub(super) fn lease_write(&self) -> Option<Write> {
        if !self.is_claim_due {
            return None;
        }
        // The version of the run's row only grows, so it is a number of the takeover.
        let lease = Lease { owner: self.at.row.owner, epoch: self.at.version };
        let key = open_key(&self.tenant, self.id);
        Some(Write::Put { key, value: rows::write(&lease), expect: Expect::Any })
    }

    /// Whether an effect of the earlier owner has no stored answer.
    fn has_unanswered_effects(&self) -> bool {
        let owed = self.at.row.parked.iter().flat_map(|parked| &parked.owed);
        owed.into_iter().any(|owed| owed.answer.is_none() && is_effect(&owed.call.call))
    }

    async fn claim(&self) -> Result<bool, Error> {
        let (key, value) = (execution_key(&self.tenant, self.id), rows::write(&self.at.row));
        let mut batch = Batch::default().put(key, value, Expect::Version(self.at.version));
        batch.writes.extend(self.lease_write());
        let claimed = self.service.try_commit(batch).await;
        if !matches!(claimed, Ok(Some(()))) {
            // Stops the step, since its result cannot be used.
            self.live.stop.stop();
        }
        Ok(claimed?.is_some())
    }

    /// Prepares an instance while reads are in progress or a timer is due soon, so that only the step and its
    /// transaction remain when the answer comes. A run that may wait long, for a review for example, is not prepared:
    /// a starting process finds many of them.
    fn prepare_heap(&self) {
        let Some(parked) = self.at.row.parked.as_ref().filter(|_| self.left_ms() > 0) else { return };
        let soon = self.moment().plus_ms(SOON_MS);
        let is_soon = |owed: &PendingCall| match &owed.call.call {
            Call::Timer { .. } => owed.due.is_some_and(|due| due <= soon),
            Call::Fetch { .. } => self.asked.contains(&owed.call.id),
            Call::Plasm { .. } | Call::Plan { .. } => false,
        };
        if parked.owed.iter().any(is_soon) {
            let (service, tenant, heap) = (self.service.clone(), self.tenant.clone(), parked.heap);
            let ready = tokio::spawn(async move { service.prepare_heap(&tenant, heap).await });
            *lock(&self.ready) = Some(AbortOnDropHandle::new(ready));
        }
    }

    /// Repeats reads. Programs are not repeated ahead of the claim, because they store a result and may cancel
    /// another run.
    fn repeat_reads(&mut self) {
        let Some(Parked { owed, .. }) = self.at.row.parked.clone().filter(|_| self.left_ms() > 0) else { return };
        let is_read = |owed: &&PendingCall| matches!(owed.call.call, Call::Fetch { .. }) && !is_effect(&owed.call.call);
        owed.iter().filter(is_read).for_each(|owed| self.start_call(owed));
    }
}
