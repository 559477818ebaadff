//! A run that was claimed by a process that died goes on in another one.
//! Invariant: only where it is certain that the process is dead; one of several that try gets it, and the run keeps its id, so
//! that an effect which has a receipt is not done again.

use std::sync::Arc;

use ports::store::{Batch, Expect, Key};

use super::gate::Ticket;
use super::start::Work;
use crate::error::Error;
use crate::live::Live;
use crate::load::{Session, Versioned};
use crate::rows::{self, Claim, ClaimRow};
use crate::service::Service;
use access::Caller;

impl Service {
    /// Nobody else of this process looks at the claim meanwhile. `None` where its process may live, or where an operation speaks
    /// for the run: that is taken over by whoever asks for it.
    pub(crate) async fn go_on(
        self: &Arc<Self>,
        caller: &Caller,
        session: Session,
        (key, found): (Key, Versioned<ClaimRow>),
    ) -> Result<Option<Live>, Error> {
        let Claim::Claimed(run) = found.row.state else { return Ok(None) };
        if found.row.operation.is_some() || self.lives.get(run).is_some() || !self.has_died(&found.row) {
            return Ok(None);
        }
        // All that can fail comes first: once it is ours, it runs.
        let planned = self.plan_in(&session, &found.row.program, found.row.planned)?;
        if planned.plan.digest != found.row.plan {
            return Ok(None);
        }
        let pages = self.pages_of(caller, &session, &planned.plan).await?;
        let claimed = ClaimRow { owner: self.instance(), ..found.row };
        let batch = Batch::default().put(key.clone(), rows::write(&claimed), Expect::Version(found.version));
        if self.try_commit(batch).await?.is_none() {
            return Ok(None);
        }
        tracing::info!(%run, "a run whose process died goes on here");
        let program = claimed.program.clone();
        let ticket = Ticket { planned, run, program, pages, claim: Some((key, claimed)) };
        Ok(Some(self.start(caller, &Arc::new(session), Work { ticket, resumed: None, again: true })))
    }

    /// Whether the process that claimed this is known to have ended, or is this one, which has no such run any more.
    pub(crate) fn has_died(&self, claim: &ClaimRow) -> bool {
        let (Some(owner), Some(js)) = (claim.owner, &self.js) else { return false };
        owner == js.presence.me() || !js.presence.is_alive(owner)
    }
}
