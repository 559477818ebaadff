//! Parks a run: stores its heap and its pending calls as a continuation.
//! Invariant: after this any process can continue the run; a write that it requests has a plan that was shown.

use access::{Caller, Identity};
use lang::plan::Verdict;
use ports::scripts::{Call, HostCall, Stepped};

use super::drive::ScriptRun;
use crate::engine::rows::{ExecutionRow, Parked, PendingCall, SessionName};
use crate::engine::view::ExecutionState;
use crate::error::Error;
use crate::load::Session;
use crate::plans::review_text;
use crate::program::PlannedProgram;

/// The data that stores a parked run.
pub(super) struct ParkedRun {
    pub next: ExecutionRow,
    /// The console output pieces that changed.
    pub pieces: Vec<(usize, String)>,
}

/// Whether the plan of a write may be stored now.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PlanPolicy {
    Kept,
    /// Storing a plan would need a transaction of its own, before the run is stored.
    Refused,
}

impl ScriptRun {
    /// Returns false if this process no longer owns the run.
    pub(super) async fn park(&mut self, stepped: &Stepped, owed: &[HostCall]) -> Result<bool, Error> {
        match self.waiting(stepped, owed, PlanPolicy::Kept).await? {
            Some(ParkedRun { next, pieces }) => self.commit(next, Some(&stepped.heap), pieces).await,
            None => Ok(false),
        }
    }

    /// Returns `None` if a plan had to be stored and the policy refuses that.
    pub(super) async fn waiting(
        &mut self,
        stepped: &Stepped,
        owed: &[HostCall],
        plans: PlanPolicy,
    ) -> Result<Option<ParkedRun>, Error> {
        let known = self.at.row.parked.clone().map(|parked| parked.owed).unwrap_or_default();
        let mut list = Vec::new();
        for call in owed {
            match known.iter().find(|known| known.call.id == call.id) {
                Some(known) => list.push(known.clone()),
                None => {
                    let Some(owed) = self.new_pending_call(call.clone(), plans).await? else { return Ok(None) };
                    list.push(owed);
                }
            }
        }
        let review = list.iter().any(|owed| owed.review.is_some());
        let state = if review { ExecutionState::WaitingReview } else { ExecutionState::Running };
        let parked = Some(Parked { heap: stepped.heap.key, owed: list });
        let mut next = ExecutionRow { state, parked, ..self.at.row.clone() };
        let pieces = self.printed(&mut next, stepped).await?;
        Ok(Some(ParkedRun { next, pieces }))
    }

    async fn new_pending_call(&self, call: HostCall, plans: PlanPolicy) -> Result<Option<PendingCall>, Error> {
        let mut owed = PendingCall { due: None, review: None, begun: false, answer: None, call };
        match &owed.call.call {
            Call::Timer { ms } => {
                let ms = i64::try_from(*ms).unwrap_or(i64::MAX);
                owed.due = Some(self.moment().plus_ms(ms));
            }
            Call::Plasm { program } => {
                if let Some((session, mut planned)) = self.plan_for_review(program).await? {
                    if plans == PlanPolicy::Refused {
                        return Ok(None);
                    }
                    self.service.store_plan(&self.caller(), &session, &mut planned, program).await?;
                    let text = review_text(&planned, session.id);
                    owed.review = planned.commit.map(|commit| (commit, text));
                }
            }
            Call::Plan { .. } | Call::Fetch { .. } => {}
        }
        Ok(Some(owed))
    }

    /// Returns the plan of a program that needs a review. A mistake in the program is reported when it is run.
    async fn plan_for_review(&self, program: &str) -> Result<Option<(Session, PlannedProgram)>, Error> {
        if self.service.js()?.settings.writes_without_review {
            return Ok(None);
        }
        let Some(session) = self.session().await? else { return Ok(None) };
        let Ok(planned) = self.service.plan_in(&session, program, self.moment()) else { return Ok(None) };
        let reviewed = planned.plan.verdict == Verdict::Review && !session.logical.row.fenced;
        Ok(reviewed.then_some((session, planned)))
    }

    /// Returns the caller on whose behalf the run makes calls.
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
            // The session was removed or has expired. The program's call will report that.
            Err(_) => Ok(None),
        }
    }
}
