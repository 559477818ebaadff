//! One try of a request, from connecting to the last byte.
//! Invariant: the address that is connected to was checked for the origin that the request names; a route, which is the
//! operator's word, is the only thing that leads elsewhere.

use std::sync::Arc;
use std::time::Duration;

use base::{Origin, Request, Response, Timestamp};
use ports::Clock;

use crate::answer;
use crate::failure::Failure;
use crate::net::{Clients, Lookup, PrivateError};
use crate::options::{BuildError, Options};
use crate::outgoing::{Outgoing, Refusal};

pub(crate) struct Wire {
    pub(crate) options: Options,
    pub(crate) clock: Arc<dyn Clock>,
    clients: Clients,
}

impl Wire {
    pub(crate) fn new(options: Options, clock: Arc<dyn Clock>, lookup: Arc<dyn Lookup>) -> Result<Self, BuildError> {
        options.check()?;
        let clients = Clients::build(&options, lookup)?;
        Ok(Self { options, clock, clients })
    }

    /// Where an origin is really reached.
    pub(crate) fn place<'a>(&'a self, origin: &'a Origin) -> &'a Origin {
        self.options.routes.get(origin).unwrap_or(origin)
    }

    pub(crate) fn outgoing(&self, request: &Request) -> Result<Outgoing, Refusal> {
        Outgoing::new(request, self.place(&request.origin))
    }

    /// The second value: whether the answer may be kept for later.
    pub(crate) async fn attempt(
        &self,
        outgoing: &Outgoing,
        origin: &Origin,
        label: &str,
        timeout: Duration,
    ) -> (Result<Response, Failure>, bool) {
        let begun = self.now();
        let mut keep = false;
        let outcome = match self.clients.of(outgoing.url(), origin, self.options.routes.contains_key(origin)) {
            Err(PrivateError) => Err(Failure::PrivateAddress),
            Ok(client) => match client.execute(outgoing.request(timeout)).await {
                Ok(response) => {
                    keep = answer::keepable(&response);
                    answer::read(response, self.options.response_bytes).await
                }
                Err(error) => Err(Failure::of(error, false)),
            },
        };
        let ms = self.now().0.saturating_sub(begun.0);
        match &outcome {
            Ok(answer) => tracing::debug!(label, status = answer.status, ms, bytes = answer.body.len(), "answered"),
            Err(failure) => tracing::debug!(label, failure = failure.kind(), ms, "no answer"),
        }
        (outcome, keep)
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Of the time that all tries of a call have together.
    pub(crate) fn left(&self, started: Timestamp) -> Duration {
        let spent = self.now().0.saturating_sub(started.0);
        let spent = Duration::from_millis(u64::try_from(spent).unwrap_or(0));
        self.options.request_timeout.saturating_mul(2).saturating_sub(spent)
    }
}
