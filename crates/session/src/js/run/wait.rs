//! Waits for the outcome of a run.
//! Invariant: waiting delays nothing else and ends at the requested time.

use std::time::Duration;

use access::Caller;

use super::view;
use crate::engine::rows::{ExecutionRow, SessionName};
use crate::engine::view::{Execution, ExecutionState};
use crate::error::Error;
use crate::load::Versioned;
use crate::rows::{Claim, ClaimRow, commit_key, commit_number};
use crate::service::Service;

/// The pause between two lookups of a run that another process drives: the first one, and the longest.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
const LOOK_SELDOM: Duration = Duration::from_millis(250);

impl Service {
    /// Returns a run when it has ended or waits for a review, after `wait_ms`, or when the server shuts down.
    pub async fn wait_for_execution(&self, caller: &Caller, id: &str, wait_ms: u64) -> Result<Execution, Error> {
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
            if left().is_zero() || js.shutdown.is_cancelled() || self.says(caller, &found.row).await? {
                return Ok(self.with_stall_warning(view(id, &found.row)));
            }
            // A run whose review was approved is about to continue, which its handle does not show yet.
            if let Some(live) = js.lives.get(id).filter(|_| found.row.state != ExecutionState::WaitingReview) {
                let row = live.settled(clock, left(), &js.shutdown).await;
                if self.says(caller, &row).await? {
                    return Ok(self.with_stall_warning(view(id, &row)));
                }
            }
            tokio::select! {
                () = clock.sleep(left().min(pause)) => {}
                () = js.shutdown.cancelled() => {}
            }
            pause = (pause * 2).min(LOOK_SELDOM);
        }
    }

    /// Whether the run has ended, or waits for an approval that was not given.
    async fn says(&self, caller: &Caller, row: &ExecutionRow) -> Result<bool, Error> {
        let (ExecutionState::WaitingReview, Some(SessionName::Logical(session)), Some(parked)) =
            (row.state, &row.session, &row.parked)
        else {
            return Ok(row.state.is_final() || row.state == ExecutionState::WaitingReview);
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
