//! Every effect as a trait. The server reaches the outside world only through these.
//!
//! Invariants:
//! - Traits, their errors and their plain data only: no implementation with effects, no async runtime.
//! - Each error says who can act: the caller (a mistake), the calling code (a race to retry), or the operator and us
//!   (a fault).
//! - Implementations live in the adapters (`store`, `upstream`, `js`, `cli`'s clock and secrets) and in `testkit`;
//!   receipts are stored by `session`, in `Store`.

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

/// The cause of an `Unavailable` error: logged, never shown to a caller.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
