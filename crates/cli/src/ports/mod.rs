//! The effects that need no adapter of their own: the system's clock, its randomness, secrets from the environment, from
//! files and from the encrypted store.
//! Invariant: nothing else in this crate asks for the time of day.

mod clock;
mod entropy;
mod presence;
mod secrets;
mod secrets_files;

pub use clock::SystemClock;
pub use entropy::SystemEntropy;
pub use presence::FilePresence;
pub use secrets::{OperatorSecrets, SECRETS_KEY};
pub use secrets_files::{key_file, line};
