//! Identities, API keys, tenant views and call rates: who a caller is, and which parts of the catalogs it may use how often.
//!
//! Invariants:
//! - The tenant of a request comes from its API key or from the operator's own connection, never from its arguments.
//! - A part of a catalog that a tenant may not use is absent from the tenant's view. No crate above refuses it a second time.
//! - Only the digest of an API key is stored, and comparing a key with the settings takes the same time for every key.

mod identity;
pub mod keys;
mod quota;
mod tenants;

pub use identity::{Caller, Connection, Identity};
pub use keys::{ApiKeys, ConfiguredKey, Error};
pub use quota::{CallRates, RateLimited};
pub use tenants::Tenants;
