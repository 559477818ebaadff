//! Calls to the APIs that catalogs describe.
//! Invariant: a request leaves only for the origin it names; credentials are added behind this trait and come back out in nothing.

use async_trait::async_trait;
pub use base::Pace;
use base::{Auth, Request, Response, TenantId};

#[async_trait]
pub trait Upstream: Send + Sync {
    /// Sends one request, retried where `repeatable` allows it. Any status is a `Response`; only the lack of one is an error.
    async fn send(&self, call: Call) -> Result<Response, Error>;

    /// Names of the secrets that a call with this auth would ask for and not get. What signs nothing lacks nothing.
    async fn lacking(&self, _tenant: &TenantId, _auth: &Auth) -> Vec<String> {
        Vec::new()
    }
}

#[derive(Debug, Clone)]
pub struct Call {
    pub tenant: TenantId,
    pub request: Request,
    /// A read: sending it twice changes nothing.
    pub repeatable: bool,
    /// What the origin allows, if its catalog says so.
    pub pace: Option<Pace>,
}

/// Why there is no token. It can be told to every call that waited for the same one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// `kind`: a word for how it failed, such as `timeout`.
    #[error("the token endpoint gave no answer ({kind})")]
    NoAnswer { kind: &'static str },
    /// The operator can act: client id, client secret or scopes are wrong. `code` is OAuth's own, such as `invalid_client`.
    #[error("the token endpoint refused the client (status {status}, {})", code.as_deref().unwrap_or("no code"))]
    Refused { status: u16, code: Option<String> },
    #[error("the token endpoint's answer is not a bearer token")]
    Unreadable,
}

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
    /// The connection broke after the request left: a write may have happened.
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
    /// A catalog's mistake: there is no way to write this request.
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
