//! The port of secrets: credentials by name.
//! Invariant: the name of a secret may be logged. The value is only returned as [`base::Secret`], which cannot be
//! printed.

use async_trait::async_trait;
use base::{Secret, TenantId};

/// Storage of the secrets of all tenants.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// Returns the value of a tenant's secret.
    async fn get(&self, tenant: &TenantId, name: &str) -> Result<Secret, Error>;
}

/// The rule for names of secrets, in the words of error messages.
pub const NAME_RULE: &str = "a name has letters, digits, `_`, `-` and `.`, and does not start with `.`";

/// Returns whether a text is a valid name of a secret. A valid name is never a path, because one storage keeps each
/// secret in a file of that name. Every storage accepts the same names.
pub fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=128).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(is_allowed)
}

/// Why a secret cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator must set the secret. `hint` says how.
    #[error("secret `{name}` is not set; {hint}")]
    NotSet { name: String, hint: String },
    /// The secret is set to an unusable value, which the operator must replace. `hint` says how.
    #[error("secret `{name}` cannot be used; {hint}")]
    Unusable { name: String, hint: String },
    #[error("secrets are unavailable")]
    Unavailable(#[source] crate::Cause),
}
