//! Where telemetry goes: one address of the operator's, which takes JSON.
//! Invariant: nothing of a catalog or a secret goes here; a failure is told and costs nothing else.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Collector {
    client: reqwest::Client,
    to: String,
}

/// Why a collector did not take what it was sent.
#[derive(Debug, thiserror::Error)]
#[error("the collector did not take it: {0}")]
pub struct NotTaken(#[source] reqwest::Error);

impl Collector {
    pub fn new(to: &str, timeout: Duration) -> Result<Self, NotTaken> {
        let client = reqwest::Client::builder().no_proxy().timeout(timeout).build().map_err(NotTaken)?;
        Ok(Self { client, to: to.to_owned() })
    }

    pub async fn post(&self, json: String) -> Result<(), NotTaken> {
        let request = self.client.post(&self.to).header("content-type", "application/json").body(json);
        request.send().await.and_then(reqwest::Response::error_for_status).map(drop).map_err(NotTaken)
    }
}
