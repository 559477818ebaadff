//! The port that tells which of the processes that share a store are alive.
//! Invariant: a process that has ended is never reported as alive. A living process may be reported as dead only by
//! an implementation that keeps it from writing.

use base::InstanceId;

/// Tells which processes are alive, so that runs of dead ones can be taken over.
pub trait Presence: Send + Sync {
    /// Returns the id of this process. It stays the same for as long as the process lives.
    fn this_process(&self) -> InstanceId;

    /// Returns whether another process is alive.
    fn is_alive(&self, instance: InstanceId) -> bool;
}
