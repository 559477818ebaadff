//! Which processes that share a store are alive.
//! Invariant: a process that has ended is never said to be alive; one that lives may be doubted only by an implementation
//! that fences it off.

use base::InstanceId;

pub trait Presence: Send + Sync {
    /// This process, for as long as it lives.
    fn me(&self) -> InstanceId;

    fn is_alive(&self, instance: InstanceId) -> bool;
}
