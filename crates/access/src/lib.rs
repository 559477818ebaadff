//! Decides who a caller is and what that caller may use: identities, API keys, tenant views and call rates.
//!
//! Invariants:
//! - The tenant of a request comes from its API key or from the operator's own connection, never from its arguments.
//! - A part of a catalog that a tenant may not use is absent from the tenant's view; nothing above refuses it a second time.
//! - Only the digest of an API key is stored, and comparing a key with the settings takes the same time for every key.

mod error;
mod identity;
pub mod keys;
mod quota;
mod tenants;

pub use error::Error;
pub use identity::{Caller, Connection, Identity};
pub use keys::{ApiKeys, ConfiguredKey};
pub use quota::{CallRates, RateLimited};
pub use tenants::Tenants;
