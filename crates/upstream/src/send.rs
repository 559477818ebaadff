//! Sends a call: checks it, signs it, tries it, and tries it again where that is allowed.
//! Invariant: the address is checked before a secret is asked for; nothing leaves if either fails.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{Auth, Response, Timestamp};
use ports::upstream::{Call, Error};
use ports::{Clock, Secrets, Upstream, secrets};
use reqwest::Client;

use crate::failure::{Failure, label};
use crate::in_flight::InFlight;
use crate::options::{BuildError, Options};
use crate::outgoing::{Outgoing, Refusal};
use crate::retry::Retries;
use crate::{answer, client};

pub struct HttpUpstream {
    options: Options,
    client: Client,
    in_flight: InFlight,
    secrets: Arc<dyn Secrets>,
    clock: Arc<dyn Clock>,
}

impl HttpUpstream {
    pub fn new(options: Options, secrets: Arc<dyn Secrets>, clock: Arc<dyn Clock>) -> Result<Self, BuildError> {
        options.check()?;
        let client = client::build(&options)?;
        let in_flight = InFlight::new(options.calls_per_origin);
        Ok(Self { options, client, in_flight, secrets, clock })
    }
}

impl fmt::Debug for HttpUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpUpstream").field("options", &self.options).finish_non_exhaustive()
    }
}

#[async_trait]
impl Upstream for HttpUpstream {
    async fn send(&self, call: Call) -> Result<Response, Error> {
        let label = label(&call.request);
        let outgoing = self.prepare(&call, &label).await?;
        let retries = Retries::of(&call, self.options.retries);
        let _place = self.in_flight.enter(&call.request.origin).await;
        // Time spent waiting for a place is not the origin's: the deadline starts here.
        let started = self.clock.now();
        let mut tried = 0;
        loop {
            let timeout = self.options.request_timeout.min(self.left(started));
            let outcome = self.attempt(&outgoing, &label, timeout).await;
            tried += 1;
            match retries.wait(tried, &outcome, self.clock.now(), self.left(started)) {
                Some(wait) => self.clock.sleep(wait).await,
                None => return outcome.map_err(|f| f.told(label, timeout, self.options.response_bytes)),
            }
        }
    }
}

impl HttpUpstream {
    async fn prepare(&self, call: &Call, label: &str) -> Result<Outgoing, Error> {
        let request = &call.request;
        let place = self.options.routes.get(&request.origin).unwrap_or(&request.origin);
        let mut outgoing = Outgoing::new(request, place).map_err(|refusal| refused(label, &refusal))?;
        let Some(auth) = &request.auth else { return Ok(outgoing) };
        let (Auth::Bearer(name) | Auth::Header { secret: name, .. }) = auth;
        let failed = |source| Error::Secret { label: label.to_owned(), source };
        let secret = self.secrets.get(&call.tenant, name).await.map_err(failed)?;
        outgoing.sign(auth, &secret).map_err(|refusal| match refusal {
            Refusal::Value(_) => failed(unfit(name)),
            other => refused(label, &other),
        })?;
        Ok(outgoing)
    }

    /// One try, from connecting to the last byte.
    async fn attempt(&self, outgoing: &Outgoing, label: &str, timeout: Duration) -> Result<Response, Failure> {
        let begun = self.clock.now();
        let outcome = match self.client.execute(outgoing.request(timeout)).await {
            Ok(response) => answer::read(response, self.options.response_bytes).await,
            Err(error) => Err(Failure::of(error, false)),
        };
        let ms = self.clock.now().0.saturating_sub(begun.0);
        match &outcome {
            Ok(answer) => tracing::debug!(label, status = answer.status, ms, bytes = answer.body.len(), "answered"),
            Err(failure) => tracing::debug!(label, failure = failure.kind(), ms, "no answer"),
        }
        outcome
    }

    /// Of the time that all tries of a call have together.
    fn left(&self, started: Timestamp) -> Duration {
        let spent = self.clock.now().0.saturating_sub(started.0);
        let spent = Duration::from_millis(u64::try_from(spent).unwrap_or(0));
        self.options.request_timeout.saturating_mul(2).saturating_sub(spent)
    }
}

fn refused(label: &str, refusal: &Refusal) -> Error {
    tracing::warn!(label, %refusal, "a request was refused before it left");
    Error::ForeignOrigin { label: label.to_owned() }
}

/// A value that no header can carry, such as one with a line break at its end: the operator sets it again.
fn unfit(name: &str) -> secrets::Error {
    let hint = "its value has a character that no header can carry, such as a line break; set it again".to_owned();
    secrets::Error::NotSet { name: name.to_owned(), hint }
}
