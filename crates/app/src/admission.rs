//! Decides which requests are answered at all: the API key names the caller, and the tenant must have calls left.
//! Invariant: where keys are needed, no request without a valid one gets an identity.

use access::{CallRates, Identity, RateLimited};
use session::Service;

/// Why a request is not answered.
#[derive(Debug, thiserror::Error)]
pub enum NotAdmitted {
    /// The request has no key, or more than one.
    #[error("this server needs an API key: send `Authorization: Bearer KEY`")]
    NoKey,
    /// No identity has the key. Unknown and revoked keys are refused alike, so that a guess learns nothing.
    #[error("this API key is not known here, or was revoked")]
    UnknownKey,
    /// The tenant has used up its calls.
    #[error(transparent)]
    RateLimited(#[from] RateLimited),
    /// The stored keys cannot be read.
    #[error(transparent)]
    Unreadable(#[from] session::Error),
}

/// The settings of admission. The default admits every request as the operator's own, which is right only on loopback.
#[derive(Default)]
pub struct Admission {
    /// Whether a request over HTTP needs an API key.
    pub keys_required: bool,
    /// How often each tenant may call.
    pub rates: CallRates,
}

impl Admission {
    /// Finds the identity of a request from its API key, and takes one call from the tenant's rate.
    pub async fn admit(&self, service: &Service, key: Option<&str>) -> Result<Identity, NotAdmitted> {
        let identity = match key {
            // A key that a client sends although none is needed is ignored, not checked.
            _ if !self.keys_required => Identity::local(),
            Some(key) => service.identify(key).await?.ok_or(NotAdmitted::UnknownKey)?,
            None => return Err(NotAdmitted::NoKey),
        };
        // Recorded before the rate is checked, so that the log names the tenant that calls too often.
        tracing::Span::current().record("tenant", identity.tenant.as_str());
        self.rates.take_call(&identity.tenant, service.now())?;
        Ok(identity)
    }
}
