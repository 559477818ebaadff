//! The script runs that this process drives.
//! Invariant: a run is listed for as long as a task of this process drives it; the row that it publishes is durable.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::{ExecutionId, TenantId};
use ports::Clock;
use ports::scripts::Stop;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::rows::ExecutionRow;
use super::view::ExecutionState;
use crate::sync::lock;

/// A handle on one script run of this process.
#[derive(Clone)]
pub(crate) struct LiveScript {
    pub id: ExecutionId,
    pub tenant: TenantId,
    /// Stops the step that the engine is executing.
    pub stop: Stop,
    /// Cancelled when the run was ended elsewhere, or when its caller cancelled it before it was stored. The driving
    /// task then stops.
    pub leave: CancellationToken,
    /// The latest stored row of the run.
    pub seen: watch::Receiver<Arc<ExecutionRow>>,
}

impl LiveScript {
    /// Stops the current step and tells the driving task to leave the run.
    pub fn end(&self) {
        self.leave.cancel();
        self.stop.stop();
    }

    /// Waits until the run has ended, waits for a review, `wait` has passed, or the server shuts down.
    pub async fn settled(&self, clock: &dyn Clock, wait: Duration, ends: &CancellationToken) -> Arc<ExecutionRow> {
        let mut seen = self.seen.clone();
        let settled = async {
            // An error means that the driving task ended. The last published row is still valid.
            let _ = seen.wait_for(|row| row.state.is_final() || row.state == ExecutionState::WaitingReview).await;
        };
        tokio::select! {
            biased;
            () = settled => {}
            () = clock.sleep(wait) => {}
            () = ends.cancelled() => {}
        }
        self.seen.borrow().clone()
    }
}

/// The script runs of this process, by id.
#[derive(Default)]
pub(crate) struct LiveScripts(Mutex<HashMap<ExecutionId, LiveScript>>);

impl LiveScripts {
    /// Adds a run. Returns false if it is already listed.
    pub fn add(&self, live: LiveScript) -> bool {
        let mut lives = lock(&self.0);
        if lives.contains_key(&live.id) {
            return false;
        }
        lives.insert(live.id, live);
        true
    }

    pub fn get(&self, id: ExecutionId) -> Option<LiveScript> {
        lock(&self.0).get(&id).cloned()
    }

    /// Returns the number of runs of all tenants.
    pub fn total(&self) -> usize {
        lock(&self.0).len()
    }

    /// Returns the number of runs of one tenant.
    pub fn count(&self, tenant: &TenantId) -> usize {
        lock(&self.0).values().filter(|live| live.tenant == *tenant).count()
    }
}

/// Removes a run from the list when dropped, even if its task panics.
pub(crate) struct LiveScriptGuard<'a>(pub &'a LiveScripts, pub ExecutionId);

impl Drop for LiveScriptGuard<'_> {
    fn drop(&mut self) {
        lock(&self.0.0).remove(&self.1);
    }
}
