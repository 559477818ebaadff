//! Time.
//! Invariant: nothing outside an implementation of this reads the system's clock or sleeps.

use std::time::Duration;

use async_trait::async_trait;
use base::Timestamp;

#[async_trait]
pub trait Clock: Send + Sync {
    fn now(&self) -> Timestamp;
    async fn sleep(&self, duration: Duration);
}
