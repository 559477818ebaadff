//! The system's clock.
//! Invariant: a clock before 1970 reads as 1970.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use base::Timestamp;
use ports::Clock;

pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
