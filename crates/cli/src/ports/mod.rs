//! The effects that need no adapter of their own: the system's clock, its randomness, secrets from the environment.
//! Invariant: nothing else in this crate reads the clock.

mod clock;
mod entropy;
mod secrets;

pub use clock::SystemClock;
pub use entropy::SystemEntropy;
pub use secrets::EnvironmentSecrets;
