//! Counts the runs of programs that no caller waits for, and refuses to start more than the limits allow.
//! Invariant: a run counts from before it starts until its task has ended, however it ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use access::Caller;
use base::TenantId;

use crate::error::Error;
use crate::live_runs::LiveRun;
use crate::run_result::RunRequest;
use crate::service::Service;
use crate::sync::lock;

/// The number of detached runs of each tenant. A tenant without one has no entry.
#[derive(Default)]
pub(crate) struct DetachedRuns(Mutex<HashMap<TenantId, usize>>);

/// The place of one detached run. Dropping it frees the place.
pub(crate) struct DetachedPlace {
    runs: Arc<DetachedRuns>,
    tenant: TenantId,
}

impl DetachedRuns {
    fn enter(self: &Arc<Self>, tenant: &TenantId) -> DetachedPlace {
        *lock(&self.0).entry(tenant.clone()).or_default() += 1;
        DetachedPlace { runs: self.clone(), tenant: tenant.clone() }
    }
}

impl Drop for DetachedPlace {
    fn drop(&mut self) {
        let mut counts = lock(&self.runs.0);
        let left = counts.get(&self.tenant).map_or(0, |count| count.saturating_sub(1));
        match left {
            0 => counts.remove(&self.tenant),
            left => counts.insert(self.tenant.clone(), left),
        };
    }
}

impl Service {
    /// Returns a place for a run whose caller will not wait for it, or refuses the run. `None` if the caller waits. Called before the
    /// run's plan commit is claimed, so that a refused call can be repeated.
    pub(crate) fn reserve_detached(
        &self,
        caller: &Caller,
        request: &RunRequest,
    ) -> Result<Option<DetachedPlace>, Error> {
        if request.wait != Some(false) || asks_for_operation(request) {
            return Ok(None);
        }
        let mut counts = lock(&self.detached_runs.0);
        let most = self.limits.detached_runs;
        if counts.get(&caller.tenant).is_some_and(|count| *count >= most) {
            return Err(Error::TooManyDetached { what: "this tenant has", most });
        }
        let most = self.limits.detached_runs_of_all;
        if counts.values().sum::<usize>() >= most {
            return Err(Error::TooManyDetached { what: "this server has", most });
        }
        *counts.entry(caller.tenant.clone()).or_default() += 1;
        Ok(Some(DetachedPlace { runs: self.detached_runs.clone(), tenant: caller.tenant.clone() }))
    }

    /// Returns a place for a run whose caller has waited as long as a call may. It is never refused, because the run has begun.
    pub(crate) fn enter_detached(&self, caller: &Caller) -> DetachedPlace {
        self.detached_runs.enter(&caller.tenant)
    }
}

impl DetachedPlace {
    /// Keeps the place until the run has ended.
    pub fn hold_until_end(self, live: &LiveRun) {
        let live = live.clone();
        tokio::spawn(async move {
            // The outcome is for the callers that ask for it.
            drop(live.wait_for_end().await);
            drop(self);
        });
    }
}

/// Returns whether the program only asks for a run, or stops one, which must work when no place is left.
fn asks_for_operation(request: &RunRequest) -> bool {
    // The program is not parsed yet. A program that begins like this and does more is merely not counted before it is detached.
    let program = request.program.as_deref().unwrap_or_default().trim_start();
    program.starts_with("wait(") || program.starts_with("cancel(")
}
