//! The port of outgoing HTTP: calls to the APIs that catalogs describe.
//! Invariant: a request leaves only for the origin it names. Credentials are added behind this trait and appear in no
//! answer and no error.

use async_trait::async_trait;
pub use base::Pace;
use base::{Auth, Request, Response, TenantId};

/// The network, as far as catalogs use it.
#[async_trait]
pub trait Upstream: Send + Sync {
    /// Sends one request, retried if `repeatable` allows it. Any status is a `Response`; an error means that there
    /// was no response.
    async fn send(&self, call: Call) -> Result<Response, Error>;

    /// Returns the names of the secrets that a call with this auth needs and that are not set.
    async fn missing_secrets(&self, _tenant: &TenantId, _auth: &Auth) -> Vec<String> {
        Vec::new()
    }
}

/// One request and how it may be sent.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tenant whose secrets sign the request.
    pub tenant: TenantId,
    pub request: Request,
    /// Whether the request is a read, so that sending it twice changes nothing. Other requests are sent again only if
    /// nothing of them left.
    pub repeatable: bool,
    /// The rate that the origin allows, if its catalog says so.
    pub pace: Option<Pace>,
}

/// Why there is no OAuth token. The error is cloned for every call that waited for the same token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// `kind` is a word for the failure, such as `timeout`.
    #[error("the token endpoint gave no answer ({kind})")]
    NoAnswer { kind: &'static str },
    /// The operator can act: client id, client secret or scopes are wrong. `code` is OAuth's own, such as
    /// `invalid_client`.
    #[error("the token endpoint refused the client (status {status}, {})", code.as_deref().unwrap_or("no code"))]
    Refused { status: u16, code: Option<String> },
    #[error("the token endpoint's answer is not a bearer token")]
    Unreadable,
}

/// Why there is no response. `label` is method and address of the request, without query values.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{label}: no answer within {ms} ms")]
    Timeout { label: String, ms: u64 },
    #[error("{label}: the answer is larger than {limit} bytes")]
    TooLarge { label: String, limit: usize },
    #[error("{label}: could not connect")]
    Connect {
        label: String,
        #[source]
        cause: crate::Cause,
    },
    /// The connection broke after the request left, so a write may have happened.
    #[error("{label}: the connection was lost")]
    Lost {
        label: String,
        #[source]
        cause: crate::Cause,
    },
    #[error("{label}: refused a redirect to another place ({location})")]
    Redirect { label: String, location: String },
    #[error("{label}: the request leaves its catalog's origin")]
    ForeignOrigin { label: String },
    /// A mistake in a catalog: the request cannot be encoded.
    #[error("{label}: the request is malformed: {cause}")]
    Invalid {
        label: String,
        #[source]
        cause: crate::Cause,
    },
    #[error("{label}: its host leads to a private address, which its catalog does not name")]
    PrivateAddress { label: String },
    #[error("{label}: {source}")]
    Token {
        label: String,
        #[source]
        source: TokenError,
    },
    #[error("{label}: {source}")]
    Secret {
        label: String,
        #[source]
        source: crate::secrets::Error,
    },
}
