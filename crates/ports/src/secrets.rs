//! Credentials by name.
//! Invariant: a name is not a secret and may be logged; the value leaves only as [`base::Secret`].

use async_trait::async_trait;
use base::{Secret, TenantId};

#[async_trait]
pub trait Secrets: Send + Sync {
    async fn get(&self, tenant: &TenantId, name: &str) -> Result<Secret, Error>;
}

/// What a name may be, for whoever chose another.
pub const NAME_RULE: &str = "a name has letters, digits, `_`, `-` and `.`, and does not start with `.`";

/// A name is never a path, and is the same in every place where secrets are kept.
pub fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=128).contains(&name.len()) && !name.starts_with('.') && name.bytes().all(plain)
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator can act: the message names what to set.
    #[error("secret `{name}` is not set; {hint}")]
    NotSet { name: String, hint: String },
    /// It is set, to something that cannot be used. The operator can act.
    #[error("secret `{name}` cannot be used; {hint}")]
    Unfit { name: String, hint: String },
    #[error("secrets are unavailable")]
    Unavailable(#[source] crate::Cause),
}
