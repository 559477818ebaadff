//! Calls to the APIs that catalogs describe.
//! Invariant: a request leaves only for the origin it names; credentials are added behind this trait and come back out in nothing.

use async_trait::async_trait;
use base::{Request, Response, TenantId};

#[async_trait]
pub trait Upstream: Send + Sync {
    /// Sends one request, retried where `repeatable` allows it. Any status is a `Response`; only the lack of one is an error.
    async fn send(&self, call: Call) -> Result<Response, Error>;
}

#[derive(Debug, Clone)]
pub struct Call {
    pub tenant: TenantId,
    pub request: Request,
    /// A read: sending it twice changes nothing.
    pub repeatable: bool,
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
    #[error("{label}: {source}")]
    Secret {
        label: String,
        #[source]
        source: crate::secrets::Error,
    },
}
