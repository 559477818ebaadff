//! The type `Transport`: makes one try of a request, from connecting to the last byte of the answer.
//! Invariant: the address of the connection was checked against the rules for the request's origin. Only a route, which
//! the operator sets, can lead to another address.

use std::sync::Arc;
use std::time::Duration;

use base::{Origin, Request, Response, Timestamp};
use ports::Clock;

use crate::answer;
use crate::failure::Failure;
use crate::net::{AddressRefusal, Clients, NameLookup};
use crate::options::{BuildError, Options};
use crate::outgoing::{Outgoing, Refusal};

/// The HTTP clients with their options, and the clock that measures deadlines.
pub(crate) struct Transport {
    pub(crate) options: Options,
    pub(crate) clock: Arc<dyn Clock>,
    clients: Clients,
}

/// The result of one try.
pub(crate) struct Attempt {
    pub(crate) outcome: Result<Response, Failure>,
    /// Whether the origin allows the cache to store the answer.
    pub(crate) is_cacheable: bool,
}

impl Transport {
    pub(crate) fn new(
        options: Options,
        clock: Arc<dyn Clock>,
        lookup: Arc<dyn NameLookup>,
    ) -> Result<Self, BuildError> {
        options.check()?;
        let clients = Clients::build(&options, lookup)?;
        Ok(Self { options, clock, clients })
    }

    /// Returns the target of connections for this origin: its route or, without a route, the origin itself.
    pub(crate) fn route_of<'a>(&'a self, origin: &'a Origin) -> &'a Origin {
        self.options.routes.get(origin).unwrap_or(origin)
    }

    /// Checks a request and prepares it for signing and sending.
    pub(crate) fn outgoing(&self, request: &Request) -> Result<Outgoing, Refusal> {
        Outgoing::new(request, self.route_of(&request.origin))
    }

    /// Sends the request once. `origin` is the origin of the request in the catalog; it decides which addresses are
    /// allowed.
    pub(crate) async fn attempt(
        &self,
        outgoing: &Outgoing,
        origin: &Origin,
        label: &str,
        timeout: Duration,
    ) -> Attempt {
        let started = self.now();
        let mut is_cacheable = false;
        let outcome = match self.clients.of(outgoing.url(), origin, self.options.routes.contains_key(origin)) {
            Err(AddressRefusal::Private) => Err(Failure::PrivateAddress),
            Err(AddressRefusal::OwnServer) => Err(Failure::OwnServer),
            Ok(client) => match client.execute(outgoing.request(timeout)).await {
                Ok(response) => {
                    is_cacheable = answer::is_cacheable(&response);
                    answer::read_answer(response, self.options.response_bytes).await
                }
                Err(error) => Err(Failure::of(error, false)),
            },
        };
        let ms = self.now().0.saturating_sub(started.0);
        match &outcome {
            Ok(answer) => tracing::debug!(
                label,
                status = answer.status,
                ms,
                bytes = answer.body.len(),
                "an API answered one try of a request"
            ),
            Err(failure) => tracing::debug!(
                label,
                failure = failure.kind(),
                ms,
                "one try of a request to an API ended without an answer"
            ),
        }
        Attempt { outcome, is_cacheable }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the remaining time of a call that started at `started`. All tries of a call and the waits between them
    /// may together take twice `request_timeout`. This limits the time of a call, whatever waits an origin asks for.
    pub(crate) fn remaining_time(&self, started: Timestamp) -> Duration {
        let elapsed_ms = self.now().0.saturating_sub(started.0);
        let elapsed = Duration::from_millis(u64::try_from(elapsed_ms).unwrap_or(0));
        self.options.request_timeout.saturating_mul(2).saturating_sub(elapsed)
    }
}
