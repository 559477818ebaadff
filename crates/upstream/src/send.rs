//! Sends a call: checks it, signs it, tries it, and tries it again where that is allowed.
//! Invariant: the address is checked before a secret is asked for; nothing leaves if either fails.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{Auth, Response, TenantId, Timestamp};
use ports::upstream::{Call, Error};
use ports::{Clock, Secrets, Upstream};

use crate::auth::{Signed, Signer, Tokens};
use crate::cache::{self, Cache};
use crate::failure::{Failure, label, refused};
use crate::net::{Lookup, SystemLookup};
use crate::options::{BuildError, Options};
use crate::outgoing::{Outgoing, Refusal};
use crate::pace::{self, InFlight, Pacer, Place};
use crate::redact::redact;
use crate::retry::Retries;
use crate::wire::Wire;

/// A call that an origin has put off so often goes out all the same, and gets the origin's answer.
const PAUSES: u32 = 3;

pub struct HttpUpstream {
    wire: Wire,
    in_flight: InFlight,
    pacer: Pacer,
    tokens: Tokens,
    cache: Cache,
    secrets: Arc<dyn Secrets>,
}

impl HttpUpstream {
    pub fn new(options: Options, secrets: Arc<dyn Secrets>, clock: Arc<dyn Clock>) -> Result<Self, BuildError> {
        Self::with_lookup(options, secrets, clock, Arc::new(SystemLookup))
    }

    /// With another way from names to addresses than the operating system's. What it finds is checked all the same.
    pub fn with_lookup(
        options: Options,
        secrets: Arc<dyn Secrets>,
        clock: Arc<dyn Clock>,
        lookup: Arc<dyn Lookup>,
    ) -> Result<Self, BuildError> {
        let in_flight = InFlight::new(options.calls_per_origin);
        let cache = Cache::new(options.cache_entries, options.cache_bytes);
        let wire = Wire::new(options, clock, lookup)?;
        Ok(Self { wire, in_flight, pacer: Pacer::default(), tokens: Tokens::default(), cache, secrets })
    }
}

impl fmt::Debug for HttpUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpUpstream").field("options", &self.wire.options).finish_non_exhaustive()
    }
}

#[async_trait]
impl Upstream for HttpUpstream {
    async fn missing_secrets(&self, tenant: &TenantId, auth: &Auth) -> Vec<String> {
        let mut lacking = Vec::new();
        for name in auth.secret_names() {
            if self.secrets.get(tenant, name).await.is_err() {
                lacking.push(name.to_owned());
            }
        }
        lacking.dedup();
        lacking
    }

    async fn send(&self, call: Call) -> Result<Response, Error> {
        let label = label(&call.request);
        let mut outgoing = self.wire.outgoing(&call.request).map_err(|refusal| refused(&label, refusal))?;
        if call.pace.as_ref().is_some_and(|pace| !pace::usable(pace)) {
            return Err(refused(&label, Refusal::Pace));
        }
        let signed = self.signer(&call, &label).sign(&mut outgoing, None).await?;
        let key = self.cache.key(&call, &signed);
        let known = key.as_ref().and_then(|key| self.cache.find(key));
        if let Some(known) = &known {
            cache::ask(outgoing.headers_mut(), known);
        }
        let (answer, keep) = self.paced(&call, &label, outgoing, signed).await?;
        if let Some(known) = known.as_ref().filter(|_| answer.status == 304) {
            return Ok(cache::revalidated(known, &answer));
        }
        // What may not be kept still takes the place of what was.
        if let Some(key) = key.filter(|_| answer.status == 200 && (keep || known.is_some())) {
            self.cache.put(key, &answer, keep);
        }
        Ok(answer)
    }
}

impl HttpUpstream {
    fn signer<'a>(&'a self, call: &'a Call, label: &'a str) -> Signer<'a> {
        Signer { wire: &self.wire, secrets: self.secrets.as_ref(), tokens: &self.tokens, call, label }
    }

    /// All tries of a call, at its origin's pace.
    async fn paced(
        &self,
        call: &Call,
        label: &str,
        mut outgoing: Outgoing,
        mut signed: Signed,
    ) -> Result<(Response, bool), Error> {
        let origin = &call.request.origin;
        let retries = Retries::of(call, self.wire.options.retries);
        let _place = self.enter(call).await;
        self.sleep(self.turn(call, Duration::ZERO)).await;
        // Time spent waiting for a place and a turn is not the origin's: the deadline starts here.
        let started = self.wire.now();
        let mut tried = 0;
        loop {
            let timeout = self.wire.options.request_timeout.min(self.wire.left(started));
            let (outcome, keep) = self.wire.attempt(&outgoing, origin, label, timeout).await;
            let now = self.wire.now();
            if let Ok(answer) = &outcome {
                self.pacer.heed(&call.tenant, origin, answer, now);
            }
            // A refused token means that nothing was done, so a write may go again; but once, and with another token.
            if let Some(stale) = signed.token.filter(|_| refreshes(&outcome) && !self.wire.left(started).is_zero()) {
                let renewed = self.signer(call, label).sign(&mut outgoing, Some(stale)).await?;
                signed.token = None;
                signed.values.extend(renewed.values);
                self.sleep(self.turn(call, Duration::ZERO)).await;
                continue;
            }
            tried += 1;
            match self.again(call, &retries, (tried, &outcome), started) {
                Some(wait) => self.sleep(wait).await,
                None => {
                    let told = |f: Failure| f.told(label.to_owned(), timeout, self.wire.options.response_bytes);
                    return outcome.map_err(told).map(|mut answer| {
                        redact(&mut answer, &signed.values);
                        (answer, keep)
                    });
                }
            }
        }
    }

    /// A place at the origin, when it does not want to be left alone. That pause is slept through without a place: it is
    /// this tenant's, and others need not wait for it.
    async fn enter(&self, call: &Call) -> Place {
        let origin = &call.request.origin;
        let pause = || self.pacer.pause(&call.tenant, origin, self.wire.now());
        let concurrent = call.pace.and_then(|pace| pace.concurrent);
        for _ in 0..PAUSES {
            self.sleep(pause()).await;
            let place = self.in_flight.enter(origin, concurrent).await;
            if pause().is_zero() {
                return place;
            }
        }
        self.in_flight.enter(origin, concurrent).await
    }

    /// The wait before the next try, if there is one: what the outcome asks for, and then the origin's pace.
    fn again(
        &self,
        call: &Call,
        retries: &Retries,
        (tried, outcome): (u32, &Result<Response, Failure>),
        started: Timestamp,
    ) -> Option<Duration> {
        let left = self.wire.left(started);
        let wait = retries.wait(tried, outcome, self.wire.now(), left)?;
        Some(self.turn(call, wait)).filter(|wait| *wait < left)
    }

    fn turn(&self, call: &Call, delay: Duration) -> Duration {
        self.pacer.turn(&call.request.origin, call.pace.as_ref(), self.wire.now(), delay)
    }

    async fn sleep(&self, wait: Duration) {
        if !wait.is_zero() {
            self.wire.clock.sleep(wait).await;
        }
    }
}

fn refreshes(outcome: &Result<Response, Failure>) -> bool {
    matches!(outcome, Ok(answer) if answer.status == 401)
}
