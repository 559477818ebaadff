//! Following an operation without asking anything of it.
//! Invariant: who looks changes nothing, and who stops looking stops nothing; only an operation whose process died is taken over,
//! as `wait(…)` would.

use std::sync::Arc;
use std::time::Duration;

use super::operation::{OperationRow, OperationState, operation_key};
use super::page::{Handle, own};
use crate::error::Error;
use crate::live::Live;
use crate::load::Versioned;
use crate::ran::{Operation, RunAnswer, Told};
use crate::service::Service;
use access::Caller;

/// How often a run of another process is looked at.
const LOOK: Duration = Duration::from_millis(500);

impl Service {
    /// How far an operation is, as soon as that differs from `seen`, or its result.
    pub async fn watch(
        self: &Arc<Self>,
        caller: &Caller,
        (session, handle): (&str, &str),
        seen: Option<&Operation>,
    ) -> Result<RunAnswer, Error> {
        let session = self.session(caller, session).await?;
        let unknown = || Error::NoHandle(base::printable(handle, 60));
        let parsed = Handle::parse(handle, "o").ok_or_else(unknown)?;
        own(&session, parsed.slot, handle)?;
        let key = operation_key(caller, &session, parsed.number);
        loop {
            let found: Versioned<OperationRow> = self.fetch(&key).await?.ok_or_else(unknown)?;
            let live = self.lives.get(found.row.run);
            let ended = matches!(found.row.state, OperationState::Ended { .. });
            let Some(now) = self.look(caller, &session, parsed.number).await?.filter(|_| !ended) else {
                return self.ask(caller, &session, handle, false).await;
            };
            let dead = live.is_none() && now.silent.is_some_and(|silent| silent >= Operation::DEAD_AFTER);
            if dead {
                return self.ask(caller, &session, handle, false).await;
            }
            let told = live.as_ref().map_or(now.told, |live| *live.told.borrow());
            let now = Operation { told, silent: now.silent.filter(|_| live.is_none()), ..now };
            if seen.is_none_or(|seen| (seen.told, seen.stopping) != (now.told, now.stopping)) {
                return Ok(RunAnswer::Running(now));
            }
            match live {
                Some(live) => moved(&live, told).await,
                None => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

/// When a run says something else than this, or ends; a stop is only in its row, so that is looked at now and then.
async fn moved(live: &Live, told: Told) {
    let mut telling = live.told.clone();
    tokio::select! {
        _ = telling.wait_for(|now| *now != told) => {}
        _ = live.ended() => {}
        () = tokio::time::sleep(LOOK) => {}
    }
}
