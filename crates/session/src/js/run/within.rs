//! Waiting for what becomes of a run.
//! Invariant: who waits holds nothing up, and is told no later than it asked for.

use std::time::Duration;

use super::view;
use crate::engine::rows::{ExecutionRow, SessionName};
use crate::engine::view::{Execution, State};
use crate::error::Error;
use crate::load::Versioned;
use crate::rows::{Claim, ClaimRow, commit_key, commit_number};
use crate::service::Service;
use access::Caller;

/// Between two looks at a run that goes on elsewhere: at first, and at most.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const LOOK_SELDOM: Duration = Duration::from_millis(250);

impl Service {
    /// A run when there is something to say, its end or a write that waits for a commit, or after this long, or when the server
    /// ends.
    pub async fn execution_within(&self, caller: &Caller, id: &str, wait_ms: u64) -> Result<Execution, Error> {
        let js = self.js()?;
        let wait = Duration::from_millis(wait_ms.min(js.settings.most_timeout_ms));
        let (clock, began) = (self.ports.clock.as_ref(), self.now());
        let left = || {
            let waited = u64::try_from(self.now().0.saturating_sub(began.0)).unwrap_or(0);
            wait.saturating_sub(Duration::from_millis(waited))
        };
        let mut pause = LOOK_AGAIN;
        loop {
            let (id, found) = self.execution_row(caller, id).await?;
            if left().is_zero() || js.ends.is_cancelled() || self.says(caller, &found.row).await? {
                return Ok(self.with_hindrance(view(id, &found.row)));
            }
            // One whose review was given goes on in a moment, which is not told.
            if let Some(live) = js.lives.get(id).filter(|_| found.row.state != State::WaitingReview) {
                let row = live.settled(clock, left(), &js.ends).await;
                if self.says(caller, &row).await? {
                    return Ok(self.with_hindrance(view(id, &row)));
                }
            }
            tokio::select! {
                () = clock.sleep(left().min(pause)) => {}
                () = js.ends.cancelled() => {}
            }
            pause = (pause * 2).min(LOOK_SELDOM);
        }
    }

    /// Whether it has ended, or waits for someone outside.
    async fn says(&self, caller: &Caller, row: &ExecutionRow) -> Result<bool, Error> {
        let (State::WaitingReview, Some(SessionName::Logical(session)), Some(parked)) =
            (row.state, &row.session, &row.parked)
        else {
            return Ok(row.state.is_final() || row.state == State::WaitingReview);
        };
        for (commit, _) in parked.owed.iter().filter_map(|owed| owed.review.as_ref()) {
            let Some(number) = commit_number(commit) else { return Ok(true) };
            let claim: Option<Versioned<ClaimRow>> = self.fetch(&commit_key(&caller.tenant, *session, number)).await?;
            if claim.is_none_or(|claim| matches!(claim.row.state, Claim::Unused)) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
