//! The ports that need no adapter crate: the system's clock and randomness, the presence of processes, and secrets.
//! Invariant: nothing else in this crate reads the time of day, except `background`, which compares two clocks.

mod presence;
mod secrets;
mod secrets_files;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use base::Timestamp;
use ports::{Clock, Entropy};

pub use presence::FilePresence;
pub use secrets::{OperatorSecrets, SECRETS_KEY};
pub use secrets_files::{key_file, secret_of_line};

/// The system's clock. A time before 1970 is read as 1970.
pub struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// The system's randomness: a UUID of version 4 has 122 random bits from the operating system.
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn bytes(&self) -> [u8; 16] {
        *uuid::Uuid::new_v4().as_bytes()
    }
}
