//! The adapters that are too small for a crate: the system clock, randomness, the presence of processes, and secrets.
//! Invariant: in this crate, only `SystemClock` and `background` (which compares two clocks) read the time of day.

mod listeners;
mod presence;
mod secret_bindings;
mod secrets;
mod secrets_files;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use base::Timestamp;
use ports::{Clock, Entropy};

pub use listeners::Listeners;
pub use presence::FilePresence;
pub use secret_bindings::SecretBindings;
pub use secrets::{OperatorSecrets, SECRETS_KEY};
pub use secrets_files::{key_file, secret_of_line};

/// The clock of the system. A time before 1970 is returned as 1970.
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

/// Randomness from the operating system. Of the 16 bytes, 122 bits are random, because the bytes are those of a UUID of version 4.
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn bytes(&self) -> [u8; 16] {
        *uuid::Uuid::new_v4().as_bytes()
    }
}
