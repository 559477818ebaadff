//! Decides which requests are answered at all: the API key names the caller, and the tenant must have calls left.
//! Invariant: where keys are needed, no request without a valid one gets an identity.

use std::sync::atomic::{AtomicBool, Ordering};

use access::{CallRates, Identity, RateLimited};
use session::Service;

/// Why a request is not answered.
#[derive(Debug, thiserror::Error)]
pub enum NotAdmitted {
    /// The request has no key, or more than one.
    #[error("this server needs an API key: send `Authorization: Bearer KEY`")]
    NoKey,
    /// No identity has the key. Unknown keys, revoked keys and keys of tenants that the settings do not name are refused alike, so that a
    /// guess learns nothing.
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
    /// Whether a request over HTTP needs an API key. It changes from false to true when the first key is made, and never back.
    keys_required: AtomicBool,
    /// How often each tenant may call.
    rates: CallRates,
}

impl Admission {
    pub fn new(keys_required: bool, rates: CallRates) -> Self {
        Self { keys_required: AtomicBool::new(keys_required), rates }
    }

    /// Returns whether a request over HTTP needs an API key.
    pub fn keys_required(&self) -> bool {
        self.keys_required.load(Ordering::Acquire)
    }

    /// Requires an API key of every request from now on.
    pub fn require_keys(&self) {
        self.keys_required.store(true, Ordering::Release);
    }

    /// Finds the identity of a request from its API key, and takes one call from the tenant's rate.
    pub async fn admit(&self, service: &Service, key: Option<&str>) -> Result<Identity, NotAdmitted> {
        let identity = match key {
            // A key that a client sends although none is needed is ignored, not checked.
            _ if !self.keys_required() => Identity::local(),
            Some(key) => service.identify(key).await?.ok_or(NotAdmitted::UnknownKey)?,
            None => return Err(NotAdmitted::NoKey),
        };
        // Recorded before the rate is checked, so that the log names the tenant that calls too often.
        tracing::Span::current().record("tenant", identity.tenant.as_str());
        self.rates.take_call(&identity.tenant, service.now())?;
        Ok(identity)
    }
}
