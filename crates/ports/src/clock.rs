//! The port of time: the current moment, and sleep.
//! Invariant: only implementations of this trait read the system's clock or sleep.

use std::time::Duration;

use async_trait::async_trait;
use base::Timestamp;

/// The source of time. Tests have their own, which they advance, so that no test waits.
#[async_trait]
pub trait Clock: Send + Sync {
    /// Returns the current moment.
    fn now(&self) -> Timestamp;

    /// Returns after `duration`.
    async fn sleep(&self, duration: Duration);
}
