//! A run that waits becomes a continuation: its heap, and what it is owed.
//! Invariant: when this has stored it, any process can go on with it; a write that it asks for has a plan that was shown.

use lang::plan::Verdict;
use ports::scripts::{Call, HostCall, Stepped};

use super::calls::is_effect;
use super::drive::Run;
use crate::caller::{Caller, Identity};
use crate::engine::rows::{ExecutionRow, Owed, Parked, SessionName};
use crate::engine::view::State;
use crate::error::Error;
use crate::load::Session;

impl Run {
    /// False where it is not ours any more.
    pub(super) async fn park(&mut self, stepped: &Stepped, owed: Vec<HostCall>) -> Result<bool, Error> {
        let known = self.at.row.parked.clone().map(|parked| parked.owed).unwrap_or_default();
        let mut list = Vec::new();
        for call in owed {
            match known.iter().find(|known| known.call.id == call.id) {
                Some(known) => list.push(known.clone()),
                None => {
                    self.ours.insert(call.id);
                    list.push(self.newly_owed(call).await?);
                }
            }
        }
        let review = list.iter().any(|owed| owed.review.is_some());
        let state = if review { State::WaitingReview } else { State::Running };
        let parked = Some(Parked { heap: stepped.heap.key, owed: list });
        let mut next = ExecutionRow { state, parked, ..self.at.row.clone() };
        let pieces = self.printed(&mut next, stepped).await?;
        self.commit(next, Some(&stepped.heap), pieces).await
    }

    async fn newly_owed(&self, call: HostCall) -> Result<Owed, Error> {
        let mut owed = Owed { due: None, review: None, begun: is_effect(&call.call), answer: None, call };
        match &owed.call.call {
            Call::Timer { ms } => {
                let ms = i64::try_from(*ms).unwrap_or(i64::MAX);
                owed.due = Some(self.moment().plus_ms(ms));
            }
            Call::Plasm { program } => owed.review = self.review_of(program).await?,
            Call::Plan { .. } | Call::Fetch { .. } => {}
        }
        Ok(owed)
    }

    /// The commit and the plan of a program that needs a review. What is wrong with a program is told when it is run.
    async fn review_of(&self, program: &str) -> Result<Option<(String, String)>, Error> {
        if self.service.js()?.settings.writes_without_review {
            return Ok(None);
        }
        let Some(session) = self.session().await? else { return Ok(None) };
        let Ok(mut planned) = self.service.plan_in(&session, program, self.moment()) else { return Ok(None) };
        if planned.plan.verdict != Verdict::Review || session.logical.row.fenced {
            return Ok(None);
        }
        self.service.keep_plan(&self.caller(), &session, (&mut planned, program)).await?;
        Ok(planned.commit.map(|commit| (commit, planned.explained)))
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
