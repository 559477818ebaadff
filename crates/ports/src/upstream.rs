//! The port of outgoing HTTP: calls to the APIs that catalogs describe.
//! Invariant: a request is sent only to the origin that the request names. Implementations add the credentials, and
//! remove them from answers and errors.

use async_trait::async_trait;
pub use base::Pace;
use base::{Auth, Origin, Request, Response, TenantId};

/// Sends the requests that catalogs describe.
#[async_trait]
pub trait Upstream: Send + Sync {
    /// Sends one request, and repeats it after a temporary failure if `call.repeatable` is true. An answer with any
    /// status is a `Response`; an error means that no response arrived.
    async fn send(&self, call: Call) -> Result<Response, Error>;

    /// Returns the names of the secrets that requests with this authentication to `_origin` need, and that are not set or
    /// not bound to this origin.
    async fn missing_secrets(&self, _tenant: &TenantId, _origin: &Origin, _auth: &Auth) -> Vec<String> {
        Vec::new()
    }
}

/// One request and the conditions under which it may be sent.
#[derive(Debug, Clone)]
pub struct Call {
    /// The tenant whose secrets sign the request.
    pub tenant: TenantId,
    pub request: Request,
    /// Whether the request is a read, so that sending it twice changes nothing. Any other request is sent again only
    /// if no byte of it was sent before.
    pub repeatable: bool,
    /// The rate that the origin allows, if the catalog has one.
    pub pace: Option<Pace>,
}

/// Why there is no OAuth token. Calls that wait for the same token each receive a clone of the error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// The request for a token failed before an answer arrived. `kind` is a word for the failure, such as `timeout`.
    #[error("the token endpoint gave no answer ({kind})")]
    NoAnswer { kind: &'static str },
    /// The operator must correct the client id, the client secret or the scopes. `code` is an error code of OAuth,
    /// such as `invalid_client`.
    #[error("the token endpoint refused the client (status {status}, {})", code.as_deref().unwrap_or("no code"))]
    Refused { status: u16, code: Option<String> },
    #[error("the token endpoint's answer is not a bearer token")]
    Unreadable,
}

/// Why there is no response. `label` has the method and address of the request, without query values.
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
    /// The request cannot be encoded. The catalog that describes the request must be corrected.
    #[error("{label}: the request is malformed: {cause}")]
    Invalid {
        label: String,
        #[source]
        cause: crate::Cause,
    },
    #[error("{label}: its host leads to a private address, which its catalog does not name")]
    PrivateAddress { label: String },
    /// The request would reach this server itself, or another process on the same data folder, where code could approve
    /// its own calls.
    #[error(
        "{label}: the request would reach this server itself ({}); code and catalogs cannot call the server that runs them",
        crate::codes::OWN_SERVER
    )]
    OwnServer { label: String },
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
