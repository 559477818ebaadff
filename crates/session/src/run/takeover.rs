//! Continues a claimed run whose process died.
//! Invariant: this happens only if the process is certainly dead. Of several processes that try, one succeeds; the
//! run keeps its id, so that effects with a receipt are not repeated.

use std::sync::Arc;

use access::Caller;
use ports::store::{Batch, Expect, Key};

use super::gate::Ticket;
use super::start::RunWork;
use crate::error::Error;
use crate::live_runs::LiveRun;
use crate::load::{Session, Versioned};
use crate::rows::{self, Claim, ClaimRow};
use crate::service::Service;

impl Service {
    /// Takes over the run of a claim, under the claim's turn. `None` if its process may be alive, or if the run is
    /// detached: then a question about its operation takes it over.
    pub(crate) async fn take_over_claim(
        self: &Arc<Self>,
        caller: &Caller,
        session: Session,
        (key, found): (Key, Versioned<ClaimRow>),
    ) -> Result<Option<LiveRun>, Error> {
        let Claim::Claimed(run) = found.row.state else { return Ok(None) };
        if found.row.operation.is_some() || self.live_runs.get(run).is_some() || !self.has_died(&found.row) {
            return Ok(None);
        }
        // Everything that can fail comes before the claim is rewritten, since this process must run what it owns.
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
        tracing::info!(%run, "took over a run whose process died");
        let program = claimed.program.clone();
        let ticket = Ticket { planned, run, program, pages, claim: Some((key, claimed)) };
        Ok(Some(self.start(caller, &Arc::new(session), RunWork { ticket, resumed: None, again: true })))
    }

    /// Whether the process that claimed the run is known to be dead. A claim of this very process without a live run
    /// counts as dead.
    pub(crate) fn has_died(&self, claim: &ClaimRow) -> bool {
        let (Some(owner), Some(js)) = (claim.owner, &self.js) else { return false };
        owner == js.presence.this_process() || !js.presence.is_alive(owner)
    }
}
