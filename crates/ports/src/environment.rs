//! The ports of the process's environment: time, randomness, and the other processes that share a store.
//!
//! Invariants:
//! - Only implementations of [`Clock`] read the system's clock or sleep.
//! - Callers cannot predict the bytes of a real [`Entropy`]. Tests use a counter instead.
//! - [`Presence`] never reports a process that has ended as alive. It may report a living process as dead only if the
//!   implementation keeps that process from writing.

use std::time::Duration;

use async_trait::async_trait;
use base::{InstanceId, Timestamp};

/// The source of time. Tests have their own, which they advance, so that no test waits.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Returns the current moment.
    fn now(&self) -> Timestamp;

    /// Returns after `duration`.
    async fn sleep(&self, duration: Duration);
}

/// The source of random bytes, for ids and handles.
pub trait Entropy: Send + Sync {
    /// Returns 16 new random bytes.
    fn bytes(&self) -> [u8; 16];
}

/// Tells which processes are alive, so that runs of dead ones can be taken over.
pub trait Presence: Send + Sync {
    /// Returns the id of this process. It stays the same for as long as the process lives.
    fn this_process(&self) -> InstanceId;

    /// Returns whether another process is alive.
    fn is_alive(&self, instance: InstanceId) -> bool;
}
