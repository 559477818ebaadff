//! Every effect as a trait. What the house does to the world, it does through one of these.
//!
//! Invariants:
//! - Traits, their errors and their plain data only: no implementation that touches the world, no async runtime.
//! - Each error says who can act: a caller's mistake, a race to retry, or a fault of ours.
//! - Implementations live in the adapters (`store`, `upstream`, `js`, `cli`'s clock and secrets) and in `testkit`; receipts are
//!   kept by `session`, in `Store`.

pub mod blobs;
pub mod clock;
pub mod entropy;
pub mod presence;
pub mod receipts;
pub mod scripts;
pub mod secrets;
pub mod store;
pub mod upstream;

pub use blobs::Blobs;
pub use clock::Clock;
pub use entropy::Entropy;
pub use presence::Presence;
pub use receipts::Receipts;
pub use scripts::Scripts;
pub use secrets::Secrets;
pub use store::Store;
pub use upstream::Upstream;

/// What lies under an `Unavailable`: kept for the log, never shown to a caller.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
