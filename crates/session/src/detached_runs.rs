//! Refuses to start more runs of programs that no caller waits for than the limits allow.
//! Invariant: a run counts from before it starts until its task has ended, however it ends.

use access::Caller;

use crate::error::Error;
use crate::live_runs::DetachedPlace;
use crate::run_result::RunRequest;
use crate::service::Service;

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
        let (of_tenant, of_all) = (self.limits.detached_runs, self.limits.detached_runs_of_all);
        self.detached_runs.try_enter(&caller.tenant, of_tenant, of_all).map(Some)
    }

    /// Returns a place for a run whose caller has waited as long as a call may. It is never refused, because the run has begun.
    pub(crate) fn enter_detached(&self, caller: &Caller) -> DetachedPlace {
        self.detached_runs.enter(&caller.tenant)
    }
}

/// Returns whether the program only asks for a run, or stops one, which must work when no place is left.
fn asks_for_operation(request: &RunRequest) -> bool {
    // The program is not parsed yet. A program that begins like this and does more is merely not counted before it is detached.
    let program = request.program.as_deref().unwrap_or_default().trim_start();
    program.starts_with("wait(") || program.starts_with("cancel(")
}
