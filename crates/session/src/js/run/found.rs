//! The first moments of a run whose process died, in the process that found it.
//! Invariant: it becomes ours by compare-and-set before anything that it asks for is done, and with the first thing of it that is
//! stored; before that where its step takes long, leaves much to be stored, or asks for a program to be planned.
//!
//! Taking it over and storing what its next step came to would be two transactions, each of which costs more than the step.
//! Where the answer that it waits for is there, the step comes first and both are one. Where it is not, reads from outside are
//! asked again while the run is taken over.

use ports::scripts::{Call, Input, Outcome, Stepped};
use ports::store::{Batch, Expect};
use tokio_util::task::AbortOnDropHandle;

use super::brief::{BRIEF, beside};
use super::calls::is_effect;
use super::drive::Run;
use crate::engine::rows::{Owed, Parked, execution_key};
use crate::error::Error;
use crate::js::heaps::INLINE_BYTES;
use crate::rows;
use crate::shared::lock;

/// Within this a timer is soon over.
const SOON_MS: i64 = 1_000;

/// What came of a first step: `None` where there was none, because nothing was at hand.
type First = Option<Result<Stepped, Error>>;

impl Run {
    /// `None` where someone else has it by now.
    pub(super) async fn first_step_here(&mut self) -> Result<Option<First>, Error> {
        let Some(answers) = self.at_hand() else {
            self.ask_ahead();
            // They leave first.
            tokio::task::yield_now().await;
            let claimed = self.claim().await?;
            if claimed {
                self.get_ready();
            }
            return self.if_claimed(claimed, None).await;
        };
        let (stepped, claimed) = self.step_and_claim(Input::Settle { answers }).await;
        match (claimed, stepped) {
            (None, Some(stepped)) if !self.stores_more(&stepped) => {
                // What is stored next makes it ours.
                self.tell_of_it();
                Ok(Some(Some(stepped)))
            }
            (None, stepped) => {
                let claimed = self.claim().await?;
                self.if_claimed(claimed, stepped).await
            }
            (Some(claimed), stepped) => {
                let claimed = claimed? && stepped.is_some();
                self.if_claimed(claimed, stepped).await
            }
        }
    }

    /// Whether what a step came to is more than the one transaction that makes the run ours: a plan that is shown, or a blob.
    fn stores_more(&self, stepped: &Result<Stepped, Error>) -> bool {
        let Ok(stepped) = stepped else { return false };
        let plans = match &stepped.outcome {
            Outcome::Waiting { owed } => owed.iter().any(|owed| matches!(owed.call, Call::Plasm { .. })),
            _ => false,
        };
        plans || stepped.heap.object.len() >= INLINE_BYTES
    }

    fn tell_of_it(&self) {
        tracing::info!(execution = %self.id, state = %self.at.row.state, "a run whose process died goes on here");
    }

    async fn if_claimed(&mut self, claimed: bool, first: First) -> Result<Option<First>, Error> {
        if claimed {
            self.tell_of_it();
            self.at.version += 1;
            return Ok(Some(first));
        }
        self.refresh().await?;
        Ok(None)
    }

    /// A step, which is made ours if it takes long. `None` for the one: it was lost while it went on; for the other: it was short.
    async fn step_and_claim(&self, input: Input) -> (First, Option<Result<bool, Error>>) {
        let step = self.step(input);
        tokio::pin!(step);
        tokio::select! {
            biased;
            stepped = &mut step => return (Some(stepped), None),
            () = self.service.ports.clock.sleep(BRIEF) => {}
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

    async fn claim(&self) -> Result<bool, Error> {
        let (key, value) = (execution_key(&self.tenant, self.id), rows::write(&self.at.row));
        let batch = Batch::default().put(key, value, Expect::Version(self.at.version));
        let claimed = self.service.try_commit(batch).await;
        if !matches!(claimed, Ok(Some(()))) {
            // A step that goes on is nobody's.
            self.live.stop.stop();
        }
        Ok(claimed?.is_some())
    }

    /// While reads are under way, or a timer runs that is soon over, the heap is brought and a guest put on it: of all that going
    /// on elsewhere costs, only the step and its transaction come after the answer. Not for what may wait for long, as a review:
    /// a process that starts finds everything that waits.
    fn get_ready(&self) {
        let Some(parked) = self.at.row.parked.as_ref().filter(|_| self.left_ms() > 0) else { return };
        let soon = self.moment().plus_ms(SOON_MS);
        let is_soon = |owed: &Owed| match &owed.call.call {
            Call::Timer { .. } => owed.due.is_some_and(|due| due <= soon),
            Call::Fetch { .. } => self.asked.contains(&owed.call.id),
            Call::Plasm { .. } | Call::Plan { .. } => false,
        };
        if parked.owed.iter().any(is_soon) {
            let (service, tenant, heap) = (self.service.clone(), self.tenant.clone(), parked.heap);
            let ready = tokio::spawn(async move { service.get_ready(&tenant, heap).await });
            *lock(&self.ready) = Some(AbortOnDropHandle::new(ready));
        }
    }

    /// Asks for what changes nothing, once more. A program is not asked for: it may be one that ends another, and its result is
    /// stored under a number.
    fn ask_ahead(&mut self) {
        let Some(Parked { owed, .. }) = self.at.row.parked.clone().filter(|_| self.left_ms() > 0) else { return };
        let is_read = |owed: &&Owed| matches!(owed.call.call, Call::Fetch { .. }) && !is_effect(&owed.call.call);
        owed.iter().filter(is_read).for_each(|owed| self.ask_once(owed));
    }
}
