//! The ports of the process's environment: time, randomness, and the other processes that share a store.
//!
//! Invariants:
//! - Only implementations of [`Clock`] read the system's clock or sleep.
//! - Callers cannot predict the bytes of a real [`Entropy`]. Tests use a counter instead.
//! - [`Presence`] reports a process as dead only if the process has certainly ended. A failure to look is
//!   [`Liveness::NotKnown`].

use std::time::Duration;

use async_trait::async_trait;
use base::{InstanceId, Timestamp};

/// The source of time. Tests use a clock that they advance themselves, so no test waits.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Returns the current moment.
    fn now(&self) -> Timestamp;

    /// Waits for `duration`.
    async fn sleep(&self, duration: Duration);
}

/// The source of random bytes, for ids and handles.
pub trait Entropy: Send + Sync {
    /// Returns 16 new random bytes.
    fn bytes(&self) -> [u8; 16];
}

/// Reports which processes are alive, so that a process can take over the runs of a dead process.
pub trait Presence: Send + Sync {
    /// Returns the id of this process, which is the same on every call.
    fn this_process(&self) -> InstanceId;

    /// Returns what is known about another process.
    fn liveness(&self, instance: InstanceId) -> Liveness;
}

/// The known state of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// The process has not ended. It may be frozen.
    Alive,
    /// The process has certainly ended.
    Dead,
    /// The process could not be looked at. Nothing may be taken over for this reason.
    NotKnown,
}
