//! Every effect of the server as a trait: storage, network, time, randomness and scripts.
//!
//! Invariants:
//! - Traits, their errors and their plain data only: no implementation with effects, no async runtime.
//! - Code outside of the adapters reaches the outside world only through these traits.
//! - Each error says who can act: the caller (a mistake), the calling code (a race to retry), or the operator and the
//!   developers (a fault).
//! - Implementations live in the adapters (`store`, `upstream`, `js`, `cli`'s clock and secrets) and in `testkit`;
//!   receipts are stored by `session`, in `Store`.

pub mod blobs;
mod environment;
pub mod receipts;
pub mod scripts;
pub mod secrets;
pub mod store;
pub mod upstream;

pub use blobs::Blobs;
pub use environment::{Clock, Entropy, Presence};
pub use receipts::Receipts;
pub use scripts::Scripts;
pub use secrets::Secrets;
pub use store::Store;
pub use upstream::Upstream;

/// The cause of an `Unavailable` error. It is logged, but never shown to a caller.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
