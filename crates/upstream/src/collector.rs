//! The type `Collector`: sends telemetry as JSON to the address that the operator has set.
//! Invariant: this client is separate from the client for APIs and has access to no secret and no catalog. A failure is
//! returned to the caller and has no other effect.

use std::time::Duration;

/// The client for a telemetry server, which receives traces or metrics as JSON.
#[derive(Debug, Clone)]
pub struct Collector {
    client: reqwest::Client,
    url: String,
}

/// The error of a request that the collector did not accept.
#[derive(Debug, thiserror::Error)]
#[error("the telemetry collector did not accept a message: {0}")]
pub struct CollectorError(#[source] reqwest::Error);

impl Collector {
    /// Returns a client for the collector at `url`. `timeout` limits each request.
    pub fn new(url: &str, timeout: Duration) -> Result<Self, CollectorError> {
        let client = reqwest::Client::builder().no_proxy().timeout(timeout).build().map_err(CollectorError)?;
        Ok(Self { client, url: url.to_owned() })
    }

    /// Sends one message. After a failure the message is not sent again.
    pub async fn post(&self, json: String) -> Result<(), CollectorError> {
        let request = self.client.post(&self.url).header("content-type", "application/json").body(json);
        request.send().await.and_then(reqwest::Response::error_for_status).map(drop).map_err(CollectorError)
    }
}
