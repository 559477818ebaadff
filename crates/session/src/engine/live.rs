//! Runs of JavaScript under way in this process.
//! Invariant: a run is in the list for as long as a task of this process drives it; what it tells is durable.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::{ExecutionId, TenantId};
use ports::Clock;
use ports::scripts::Stop;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::rows::ExecutionRow;
use super::view::State;
use crate::shared::lock;

#[derive(Clone)]
pub(crate) struct Live {
    pub id: ExecutionId,
    pub tenant: TenantId,
    /// Ends the step that the engine is at.
    pub stop: Stop,
    /// Someone else has ended the run, and the task leaves it; or it was given up before it was stored.
    pub leave: CancellationToken,
    pub seen: watch::Receiver<Arc<ExecutionRow>>,
}

impl Live {
    pub fn end(&self) {
        self.leave.cancel();
        self.stop.stop();
    }

    /// Waits until there is something to say: its end, a write that waits for a commit, or so much time has passed; or the
    /// server ends.
    pub async fn settled(&self, clock: &dyn Clock, wait: Duration, ends: &CancellationToken) -> Arc<ExecutionRow> {
        let mut seen = self.seen.clone();
        let settled = async {
            // An error: its task has left it as it is now.
            let _ = seen.wait_for(|row| row.state.is_final() || row.state == State::WaitingReview).await;
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

#[derive(Default)]
pub(crate) struct Lives(Mutex<HashMap<ExecutionId, Live>>);

impl Lives {
    /// False where it is there already.
    pub fn add(&self, live: Live) -> bool {
        let mut lives = lock(&self.0);
        if lives.contains_key(&live.id) {
            return false;
        }
        lives.insert(live.id, live);
        true
    }

    pub fn get(&self, id: ExecutionId) -> Option<Live> {
        lock(&self.0).get(&id).cloned()
    }

    pub fn count(&self, tenant: &TenantId) -> usize {
        lock(&self.0).values().filter(|live| live.tenant == *tenant).count()
    }
}

/// Takes a run off the list however its task ends, also when that panics.
pub(crate) struct Listed<'a>(pub &'a Lives, pub ExecutionId);

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        lock(&self.0.0).remove(&self.1);
    }
}
