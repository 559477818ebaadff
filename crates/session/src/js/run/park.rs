//! A run that waits becomes a continuation: its heap, and what it is owed.
//! Invariant: when this has stored it, any process can go on with it; a write that it asks for has a plan that was shown.

use lang::plan::Verdict;
use ports::scripts::{Call, HostCall, Stepped};

use super::calls::is_effect;
use super::drive::Run;
use crate::engine::rows::{ExecutionRow, Owed, Parked, SessionName};
use crate::engine::view::State;
use crate::error::Error;
use crate::load::Session;
use crate::program::Planned;
use access::{Caller, Identity};

/// What stores a run that waits.
pub(super) struct Waiting {
    pub next: ExecutionRow,
    /// Of its console output.
    pub pieces: Vec<(usize, String)>,
}

/// What becomes of the plan of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Plans {
    Kept,
    /// It would be a transaction of its own, for a run that is not stored yet.
    Refused,
}

impl Run {
    /// False where it is not ours any more.
    pub(super) async fn park(&mut self, stepped: &Stepped, owed: &[HostCall]) -> Result<bool, Error> {
        match self.waiting(stepped, owed, Plans::Kept).await? {
            Some(Waiting { next, pieces }) => self.commit(next, Some(&stepped.heap), pieces).await,
            None => Ok(false),
        }
    }

    /// `None` where a plan is refused.
    pub(super) async fn waiting(
        &mut self,
        stepped: &Stepped,
        owed: &[HostCall],
        plans: Plans,
    ) -> Result<Option<Waiting>, Error> {
        let known = self.at.row.parked.clone().map(|parked| parked.owed).unwrap_or_default();
        let mut list = Vec::new();
        for call in owed {
            match known.iter().find(|known| known.call.id == call.id) {
                Some(known) => list.push(known.clone()),
                None => {
                    self.ours.insert(call.id);
                    let Some(owed) = self.newly_owed(call.clone(), plans).await? else { return Ok(None) };
                    list.push(owed);
                }
            }
        }
        let review = list.iter().any(|owed| owed.review.is_some());
        let state = if review { State::WaitingReview } else { State::Running };
        let parked = Some(Parked { heap: stepped.heap.key, owed: list });
        let mut next = ExecutionRow { state, parked, ..self.at.row.clone() };
        let pieces = self.printed(&mut next, stepped).await?;
        Ok(Some(Waiting { next, pieces }))
    }

    async fn newly_owed(&self, call: HostCall, plans: Plans) -> Result<Option<Owed>, Error> {
        let mut owed = Owed { due: None, review: None, begun: is_effect(&call.call), answer: None, call };
        match &owed.call.call {
            Call::Timer { ms } => {
                let ms = i64::try_from(*ms).unwrap_or(i64::MAX);
                owed.due = Some(self.moment().plus_ms(ms));
            }
            Call::Plasm { program } => {
                if let Some((session, mut planned)) = self.to_review(program).await? {
                    if plans == Plans::Refused {
                        return Ok(None);
                    }
                    self.service.keep_plan(&self.caller(), &session, (&mut planned, program)).await?;
                    owed.review = planned.commit.map(|commit| (commit, planned.explained));
                }
            }
            Call::Plan { .. } | Call::Fetch { .. } => {}
        }
        Ok(Some(owed))
    }

    /// The plan of a program that needs a review. What is wrong with a program is told when it is run.
    async fn to_review(&self, program: &str) -> Result<Option<(Session, Planned)>, Error> {
        if self.service.js()?.settings.writes_without_review {
            return Ok(None);
        }
        let Some(session) = self.session().await? else { return Ok(None) };
        let Ok(planned) = self.service.plan_in(&session, program, self.moment()) else { return Ok(None) };
        let reviewed = planned.plan.verdict == Verdict::Review && !session.logical.row.fenced;
        Ok(reviewed.then_some((session, planned)))
    }

    /// Who the run calls as.
    pub(super) fn caller(&self) -> Caller {
        Identity { tenant: self.tenant.clone(), principal: self.at.row.principal.clone() }.caller(None)
    }

    async fn session(&self) -> Result<Option<Session>, Error> {
        let (Some(SessionName::Logical(id)), Some(slot)) = (&self.at.row.session, self.at.row.slot) else {
            return Ok(None);
        };
        match self.service.session_in(&self.caller(), *id, slot).await {
            Ok(session) => Ok(Some(session)),
            Err(error) if error.is_fault() => Err(error),
            // It has gone or expired: the program is told so.
            Err(_) => Ok(None),
        }
    }
}
