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
    async fn send(&self, call: Call) -> Result<Response, Error> {
        self.send_checked(call, &NoCheck).await
    }

    /// Does the same, and asks `check` each time the request is about to leave: after every wait for a place, a rate
    /// or a token, immediately before the first byte. Returns [`Error::Withheld`] if the check refuses.
    async fn send_checked(&self, call: Call, check: &dyn DepartureCheck) -> Result<Response, Error>;

    /// Returns the names of the secrets that requests with this authentication to `_origin` need, and that are not set or
    /// not bound to this origin.
    async fn missing_secrets(&self, _tenant: &TenantId, _origin: &Origin, _auth: &Auth) -> Vec<String> {
        Vec::new()
    }
}

/// Decides at the last moment whether a request may still leave. A call may wait long for its place at the origin, and
/// its run may be cancelled or taken over by another process meanwhile.
#[async_trait]
pub trait DepartureCheck: Send + Sync {
    /// Allows one departure of the request, or refuses it. The check remembers the reason of a refusal.
    async fn may_leave(&self) -> Result<(), Refused>;

    /// Learns that a departure ended without a certain answer and that the request may leave again. The request of that departure
    /// may still arrive, whatever the later departures bring.
    fn was_uncertain(&self) {}
}

/// The answer of a [`DepartureCheck`] that lets no request leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// Lets every request leave. For reads, which change nothing.
#[derive(Debug, Clone, Copy)]
pub struct NoCheck;

#[async_trait]
impl DepartureCheck for NoCheck {
    async fn may_leave(&self) -> Result<(), Refused> {
        Ok(())
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
    /// The check before the departure refused, so nothing left.
    #[error("{label}: not sent, because its run was stopped or taken over")]
    Withheld { label: String },
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

impl Error {
    /// Returns whether the API may have received the request.
    pub fn may_have_arrived(&self) -> bool {
        match self {
            Self::Timeout { .. } | Self::TooLarge { .. } | Self::Lost { .. } | Self::Redirect { .. } => true,
            Self::Connect { .. }
            | Self::Withheld { .. }
            | Self::ForeignOrigin { .. }
            | Self::Invalid { .. }
            | Self::PrivateAddress { .. }
            | Self::OwnServer { .. }
            | Self::Token { .. }
            | Self::Secret { .. } => false,
        }
    }
}
