//! Follows an operation without affecting it.
//! Invariant: watching and ceasing to watch change nothing, except that an operation of a dead owner is taken over,
//! as `wait(…)` would.

use std::sync::Arc;
use std::time::Duration;

use access::Caller;

use super::operation::{OperationRow, OperationState, operation_key};
use super::page::{HandleName, check_slot};
use crate::error::Error;
use crate::live_runs::LiveRun;
use crate::load::Versioned;
use crate::run_result::{DetachedRun, RunAnswer, RunProgress};
use crate::service::Service;

/// How often a run of another process is checked.
const LOOK: Duration = Duration::from_millis(500);

impl Service {
    /// Returns the state of an operation as soon as it differs from `seen`, or its result.
    pub async fn watch(
        self: &Arc<Self>,
        caller: &Caller,
        (session, handle): (&str, &str),
        seen: Option<&DetachedRun>,
    ) -> Result<RunAnswer, Error> {
        let session = self.session(caller, session).await?;
        let unknown = || Error::NoHandle(base::printable(handle, 60));
        let parsed = HandleName::parse(handle, "o").ok_or_else(unknown)?;
        check_slot(&session, parsed.slot, handle)?;
        let key = operation_key(caller, &session, parsed.number);
        loop {
            let found: Versioned<OperationRow> = self.fetch(&key).await?.ok_or_else(unknown)?;
            let live = self.live_runs.get(found.row.run);
            let ended = matches!(found.row.state, OperationState::Ended { .. });
            let Some(now) = self.peek_operation(caller, &session, parsed.number).await?.filter(|_| !ended) else {
                return self.ask_operation(caller, &session, handle, false).await;
            };
            let dead = live.is_none()
                && now.silent_seconds.is_some_and(|silent_seconds| silent_seconds >= DetachedRun::DEAD_AFTER);
            // The question continues the run if its owner is known to be dead or frozen by now.
            if dead && let RunAnswer::Finished(ran) = self.ask_operation(caller, &session, handle, false).await? {
                return Ok(RunAnswer::Finished(ran));
            }
            let progress = live.as_ref().map_or(now.progress, |live| *live.progress.borrow());
            let now = DetachedRun { progress, silent_seconds: now.silent_seconds.filter(|_| live.is_none()), ..now };
            if seen.is_none_or(|seen| (seen.progress, seen.stopping) != (now.progress, now.stopping)) {
                return Ok(RunAnswer::Running(now));
            }
            match live {
                Some(live) => moved(&live, progress).await,
                None => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

/// Returns when the run's progress changes or the run ends, and regularly in between, because a cancellation is
/// visible only in its row.
async fn moved(live: &LiveRun, progress: RunProgress) {
    let mut telling = live.progress.clone();
    tokio::select! {
        _ = telling.wait_for(|now| *now != progress) => {}
        _ = live.wait_for_end() => {}
        () = tokio::time::sleep(LOOK) => {}
    }
}
