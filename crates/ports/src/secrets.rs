//! The port of secrets: credentials by name.
//! Invariants:
//! - The name of a secret may be logged. The value is only returned as [`base::Secret`], which cannot be printed.
//! - A value is returned only for a request to an origin to which the operator has bound the secret.

use async_trait::async_trait;
use base::{Origin, Secret, TenantId};

use crate::codes;

/// Storage of the secrets of all tenants.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// Returns the value of a tenant's secret for a request to `origin`.
    async fn get(&self, tenant: &TenantId, name: &str, origin: &Origin) -> Result<Secret, Error>;

    /// Checks that a tenant's secret may be sent to `origin`. This is for a credential that was derived from the secret,
    /// such as a token, and goes to another origin than the secret itself.
    async fn check_binding(&self, tenant: &TenantId, name: &str, origin: &Origin) -> Result<(), Error>;
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
    /// The secret is set, but the operator has not bound it to the origin of the request. A catalog's author chooses the
    /// name of the secret, so the name alone does not decide which server receives the value.
    #[error(
        "secret `{name}` is not bound to {origin} ({}), so it is not sent there; if {origin} may receive it, run `tokamak secret bind {name} {origin}`",
        codes::SECRET_NOT_BOUND
    )]
    NotBound { name: String, origin: Origin },
    /// The secret signs requests, and is too short to be recognised in answers that echo it.
    #[error(
        "secret `{name}` is shorter than {least} characters ({}), so an answer that echoes it could not be cleaned; set a longer one",
        codes::SECRET_TOO_SHORT
    )]
    TooShort { name: String, least: usize },
    /// The secret is set to an unusable value, which the operator must replace. `hint` says how.
    #[error("secret `{name}` cannot be used; {hint}")]
    Unusable { name: String, hint: String },
    #[error("secrets are unavailable")]
    Unavailable(#[source] crate::Cause),
}
