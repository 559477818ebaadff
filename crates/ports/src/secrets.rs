//! The port of secrets: credentials by name.
//! Invariant: a name is not a secret and may be logged; a value leaves only as [`base::Secret`].

use async_trait::async_trait;
use base::{Secret, TenantId};

/// Storage of secrets.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// Returns the value of a tenant's secret.
    async fn get(&self, tenant: &TenantId, name: &str) -> Result<Secret, Error>;
}

/// The rule for names, for error messages.
pub const NAME_RULE: &str = "a name has letters, digits, `_`, `-` and `.`, and does not start with `.`";

/// Returns whether a text is a valid name. A valid name is never a path, because one storage of secrets is a folder with a
/// file for each name; every storage accepts the same names.
pub fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=128).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_allowed)
}

/// Why there is no secret.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator can act: the message names what to set.
    #[error("secret `{name}` is not set; {hint}")]
    NotSet { name: String, hint: String },
    /// The secret is set to an unusable value. The operator can act.
    #[error("secret `{name}` cannot be used; {hint}")]
    Unusable { name: String, hint: String },
    #[error("secrets are unavailable")]
    Unavailable(#[source] crate::Cause),
}
