//! Every effect of the server as a trait: storage, network, time, randomness and scripts.
//!
//! Invariants:
//! - This crate has traits, their errors and their plain data. It has no implementation with effects and no async
//!   runtime.
//! - Code outside of the adapters reaches the outside world only through these traits.
//! - The comment of each error variant names the party that must act: the caller (a mistake), the calling code (a
//!   race to retry), or the operator and the developers (a fault).
//! - Implementations are in the adapters (`store`, `upstream`, `js`, `cli`'s clock and secrets) and in `testkit`;
//!   receipts are stored by `session`, in `Store`.

pub mod blob_rows;
pub mod blobs;
pub mod codes;
mod environment;
pub mod index;
pub mod receipts;
pub mod scripts;
pub mod secrets;
pub mod store;
pub mod upstream;

pub use blobs::Blobs;
pub use environment::{Clock, Entropy, Liveness, Presence};
pub use receipts::Receipts;
pub use scripts::Scripts;
pub use secrets::Secrets;
pub use store::Store;
pub use upstream::Upstream;

/// The cause of an `Unavailable` error. The cause is logged and never shown to a caller.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
