//! Sends telemetry as JSON to the one address that the operator has set.
//! Invariant: nothing of a catalog and no secret is sent there. A failure is returned and has no other effect.

use std::time::Duration;

/// A server that takes telemetry.
#[derive(Debug, Clone)]
pub struct Collector {
    client: reqwest::Client,
    url: String,
}

/// Why the collector did not accept the telemetry.
#[derive(Debug, thiserror::Error)]
#[error("the collector did not take it: {0}")]
pub struct CollectorError(#[source] reqwest::Error);

impl Collector {
    /// Returns a client for the collector at `url`. Each request has `timeout`.
    pub fn new(url: &str, timeout: Duration) -> Result<Self, CollectorError> {
        let client = reqwest::Client::builder().no_proxy().timeout(timeout).build().map_err(CollectorError)?;
        Ok(Self { client, url: url.to_owned() })
    }

    /// Sends one message. It is not sent again after a failure.
    pub async fn post(&self, json: String) -> Result<(), CollectorError> {
        let request = self.client.post(&self.url).header("content-type", "application/json").body(json);
        request.send().await.and_then(reqwest::Response::error_for_status).map(drop).map_err(CollectorError)
    }
}
