//! The first moments of a run whose process died, in the process that found it.
//! Invariant: it becomes ours by compare-and-set before anything that it asks for is done and before anything of it is stored;
//! at the latest after the time of a short run, so that others that look for such runs leave it alone.
//!
//! Taking it over and storing what its next step came to would be two transactions, each of which costs more than the step.
//! Where the answer that it waits for is there, the step comes first and both are one. Where it is not, what can be asked
//! twice without harm is asked while the run is taken over.

use ports::scripts::{Call, Input, Stepped};
use ports::store::{Batch, Expect};

use super::brief::BRIEF;
use super::calls::is_effect;
use super::drive::Run;
use crate::engine::rows::{Owed, Parked, execution_key};
use crate::error::Error;
use crate::rows;

/// What came of a first step: `None` where there was none, because nothing was at hand.
type First = Option<Result<Stepped, Error>>;

impl Run {
    /// `None` where someone else has it by now.
    pub(super) async fn first_step_here(&mut self) -> Result<Option<First>, Error> {
        let Some(answers) = self.at_hand() else {
            self.ask_ahead()?;
            let claimed = self.claim().await?;
            return self.if_claimed(claimed, None).await;
        };
        let (stepped, claimed) = self.step_and_claim(Input::Settle { answers }).await;
        match (claimed, stepped) {
            // What is stored next makes it ours.
            (None, stepped) => Ok(Some(stepped)),
            (Some(claimed), stepped) => {
                let claimed = claimed? && stepped.is_some();
                self.if_claimed(claimed, stepped).await
            }
        }
    }

    async fn if_claimed(&mut self, claimed: bool, first: First) -> Result<Option<First>, Error> {
        if claimed {
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
        let (claim, mut stepped) = (self.claim(), None);
        tokio::pin!(claim);
        let claimed = loop {
            tokio::select! {
                biased;
                ended = &mut step, if stepped.is_none() => stepped = Some(ended),
                claimed = &mut claim => break claimed,
            }
        };
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

    /// Asks for what changes nothing, once more.
    fn ask_ahead(&mut self) -> Result<(), Error> {
        let forced = self.service.js()?.settings.writes_without_review;
        let harmless = |owed: &Owed| match &owed.call.call {
            Call::Fetch { .. } => !is_effect(&owed.call.call),
            Call::Plasm { .. } => owed.review.is_none() && !forced,
            Call::Timer { .. } | Call::Plan { .. } => false,
        };
        let Some(Parked { owed, .. }) = self.at.row.parked.clone() else { return Ok(()) };
        owed.iter().filter(|owed| owed.answer.is_none() && harmless(owed)).for_each(|owed| self.ask_once(owed));
        Ok(())
    }
}
