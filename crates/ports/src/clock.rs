//! Time.
//! Invariant: only implementations of this trait read the system's clock or sleep.

use std::time::Duration;

use async_trait::async_trait;
use base::Timestamp;

/// The source of time. Tests advance their own.
#[async_trait]
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
    async fn sleep(&self, duration: Duration);
}
