//! The type `HttpUpstream`, the adapter for the port `ports::Upstream`: it checks a call, adds its credential, sends it
//! at the rate of its origin, and retries if that is allowed.
//! Invariant: the address of a request is checked before its secret is read. If the check or the read fails, nothing is
//! sent.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{Auth, Origin, Response, Secret, TenantId, Timestamp};
use ports::upstream::{Call, DepartureCheck, Error};
use ports::{Clock, Secrets, Upstream};

use crate::auth::{Signed, Signer, TokenCache};
use crate::cache::{self, AnswerCache};
use crate::failure::{Failure, refusal_error, safe_label};
use crate::net::{NameLookup, SystemLookup};
use crate::options::{BuildError, Options};
use crate::outgoing::{Outgoing, Refusal};
use crate::pace::{self, CallPermit, InFlight, Pacer};
use crate::redact::SentSecrets;
use crate::retry::RetryPolicy;
use crate::transport::{Attempt, Transport};

/// The largest number of pauses that one call waits for. Then the call is sent without further waits, so that an origin
/// that always asks for another pause cannot delay a call forever.
const MAX_PAUSES: u32 = 3;

/// The size of a body in bytes up to which secrets are removed on the thread of the call. Searching a larger body would
/// noticeably delay other calls on the same thread.
const INLINE_REDACTION_BYTES: usize = 128 * 1024;

/// The HTTP client for calls to APIs. The whole process uses one value, so that all calls share connections, rates,
/// tokens and cached answers.
pub struct HttpUpstream {
    transport: Transport,
    in_flight: InFlight,
    pacer: Pacer,
    tokens: TokenCache,
    cache: AnswerCache,
    sent: SentSecrets,
    secrets: Arc<dyn Secrets>,
}

/// The final answer of a call.
struct FinalAnswer {
    response: Response,
    /// Whether the origin allows the cache to store the answer.
    is_cacheable: bool,
}

impl HttpUpstream {
    pub fn new(options: Options, secrets: Arc<dyn Secrets>, clock: Arc<dyn Clock>) -> Result<Self, BuildError> {
        Self::with_lookup(options, secrets, clock, Arc::new(SystemLookup))
    }

    /// Returns an upstream that looks up host names with `lookup` instead of the operating system. The addresses are
    /// checked in the same way.
    pub fn with_lookup(
        options: Options,
        secrets: Arc<dyn Secrets>,
        clock: Arc<dyn Clock>,
        lookup: Arc<dyn NameLookup>,
    ) -> Result<Self, BuildError> {
        let in_flight = InFlight::new(options.calls_per_origin);
        let cache = AnswerCache::new(options.cache_entries, options.cache_bytes);
        let transport = Transport::new(options, clock, lookup)?;
        Ok(Self {
            transport,
            in_flight,
            pacer: Pacer::default(),
            tokens: TokenCache::default(),
            cache,
            sent: SentSecrets::default(),
            secrets,
        })
    }
}

// `Debug` is written by hand, so that no credential of a cache is printed.
impl fmt::Debug for HttpUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpUpstream").field("options", &self.transport.options).finish_non_exhaustive()
    }
}

#[async_trait]
impl Upstream for HttpUpstream {
    async fn missing_secrets(&self, tenant: &TenantId, origin: &Origin, auth: &Auth) -> Vec<String> {
        let mut missing = Vec::new();
        let target = self.transport.route_of(auth.secret_origin(origin));
        for name in auth.secret_names() {
            if self.secrets.get(tenant, name, target).await.is_err() {
                missing.push(name.to_owned());
            }
        }
        missing.dedup();
        missing
    }

    async fn send_checked(&self, call: Call, check: &dyn DepartureCheck) -> Result<Response, Error> {
        let label = safe_label(&call.request);
        let outgoing = self.transport.outgoing(&call.request);
        let mut outgoing = outgoing.map_err(|refusal| refusal_error(&label, refusal))?;
        if call.pace.as_ref().is_some_and(|pace| !pace::is_valid(pace)) {
            return Err(refusal_error(&label, Refusal::Pace));
        }
        let signed = self.signer(&call, &label).sign(&mut outgoing, None).await?;
        // An answer to another call may echo this call's secrets as soon as they have left.
        self.sent.record(&call.tenant, &call.request.origin, &signed.values);
        let cache_key = self.cache.key(&call, &signed);
        let kept = cache_key.as_ref().and_then(|key| self.cache.find(key));
        if let Some(kept) = &kept {
            cache::add_validators(outgoing.headers_mut(), kept);
        }
        let answer = self.send_with_retries(&call, check, &label, outgoing, signed).await?;
        if let Some(kept) = kept.as_ref().filter(|_| answer.response.status == 304) {
            return Ok(cache::merge_confirmation(kept, &answer.response));
        }
        // An answer that must not be cached is still passed to `put` if an older answer is cached, because `put` then
        // removes the older answer.
        let changes_cache = answer.response.status == 200 && (answer.is_cacheable || kept.is_some());
        if let Some(key) = cache_key.filter(|_| changes_cache) {
            self.cache.put(key, &answer.response, answer.is_cacheable);
        }
        Ok(answer.response)
    }
}

impl HttpUpstream {
    fn signer<'a>(&'a self, call: &'a Call, label: &'a str) -> Signer<'a> {
        Signer {
            transport: &self.transport,
            secrets: self.secrets.as_ref(),
            tokens: &self.tokens,
            sent: &self.sent,
            call,
            label,
        }
    }

    /// Makes all tries of a call at the rate of its origin, and removes the call's credentials from the answer.
    async fn send_with_retries(
        &self,
        call: &Call,
        check: &dyn DepartureCheck,
        label: &str,
        mut outgoing: Outgoing,
        mut signed: Signed,
    ) -> Result<FinalAnswer, Error> {
        let origin = &call.request.origin;
        let policy = RetryPolicy::of_call(call, self.transport.options.retries);
        let _permit = self.acquire_permit(call).await;
        self.sleep(self.take_turn(call, Duration::ZERO)).await;
        // The time limit of the call starts after the wait for a permit and a turn, so that it counts only the time of
        // the origin.
        let started = self.transport.now();
        let mut tries = 0;
        loop {
            // After every wait of this loop and before the first byte: the run may have ended meanwhile.
            if check.may_leave().await.is_err() {
                return Err(Error::Withheld { label: label.to_owned() });
            }
            let timeout = self.transport.options.request_timeout.min(self.transport.remaining_time(started));
            let Attempt { outcome, is_cacheable } = self.transport.attempt(&outgoing, origin, label, timeout).await;
            if let Ok(answer) = &outcome {
                self.pacer.record_answer(&call.tenant, origin, answer, self.transport.now());
            }
            // A 401 for a token means that the API did not process the request, so even a write may be sent again. This
            // happens once in a call, because an origin that refuses a new token will refuse every token.
            let has_time = !self.transport.remaining_time(started).is_zero();
            if let Some(refused_token) = signed.token.filter(|_| is_unauthorized(&outcome) && has_time) {
                let renewed = self.signer(call, label).sign(&mut outgoing, Some(refused_token)).await?;
                signed.token = None;
                // Both tokens are removed from the answer, because the answer may echo the older one too.
                signed.values.extend(renewed.values);
                self.sleep(self.take_turn(call, Duration::ZERO)).await;
                continue;
            }
            tries += 1;
            match self.wait_before_retry(call, &policy, tries, &outcome, started) {
                Some(wait) => {
                    if may_have_arrived(&outcome) {
                        check.was_uncertain();
                    }
                    self.sleep(wait).await;
                }
                None => {
                    let limit = self.transport.options.response_bytes;
                    let outcome = self.remove_secrets(call, &signed.values, outcome).await;
                    let outcome = outcome.map_err(|failure| failure.into_error(label.to_owned(), timeout, limit));
                    return outcome.map(|response| FinalAnswer { response, is_cacheable });
                }
            }
        }
    }

    /// Removes the secrets that the tenant has sent to the origin from an answer or a failure. `values` are the secrets of
    /// this call.
    async fn remove_secrets(
        &self,
        call: &Call,
        values: &[Secret],
        outcome: Result<Response, Failure>,
    ) -> Result<Response, Failure> {
        let Some(redactor) = self.sent.record(&call.tenant, &call.request.origin, values) else { return outcome };
        match outcome {
            Ok(mut response) if response.body.len() <= INLINE_REDACTION_BYTES => {
                redactor.redact(&mut response);
                Ok(response)
            }
            Ok(mut response) => {
                let clean = move || {
                    redactor.redact(&mut response);
                    response
                };
                // An answer that could not be searched is not returned.
                tokio::task::spawn_blocking(clean).await.map_err(|stopped| Failure::Lost(Box::new(stopped)))
            }
            Err(mut failure) => {
                failure.redact(&redactor);
                Err(failure)
            }
        }
    }

    /// Waits for the origin's pauses and then for a permit. During a pause the call has no permit, because a pause is
    /// for one tenant and calls of other tenants need the permits.
    async fn acquire_permit(&self, call: &Call) -> CallPermit {
        let origin = &call.request.origin;
        let remaining_pause = || self.pacer.remaining_pause(&call.tenant, origin, self.transport.now());
        let concurrent = call.pace.and_then(|pace| pace.concurrent);
        for _ in 0..MAX_PAUSES {
            self.sleep(remaining_pause()).await;
            let permit = self.in_flight.acquire(&call.tenant, origin, concurrent).await;
            // An answer may have asked for another pause while this call waited for its permit.
            if remaining_pause().is_zero() {
                return permit;
            }
        }
        self.in_flight.acquire(&call.tenant, origin, concurrent).await
    }

    /// Returns the wait before the next try, or `None` if the outcome is final. The wait is at least the wait of the
    /// retry policy, and ends at the next turn at the origin.
    fn wait_before_retry(
        &self,
        call: &Call,
        policy: &RetryPolicy,
        tries: u32,
        outcome: &Result<Response, Failure>,
        started: Timestamp,
    ) -> Option<Duration> {
        let remaining = self.transport.remaining_time(started);
        let wait = policy.wait_before_retry(tries, outcome, self.transport.now(), remaining)?;
        Some(self.take_turn(call, wait)).filter(|wait| *wait < remaining)
    }

    fn take_turn(&self, call: &Call, delay: Duration) -> Duration {
        self.pacer.take_turn(&call.request.origin, call.pace.as_ref(), self.transport.now(), delay)
    }

    async fn sleep(&self, wait: Duration) {
        if !wait.is_zero() {
            self.transport.clock.sleep(wait).await;
        }
    }
}

/// Returns whether the API may have done what the request asks for, although this outcome does not say so.
fn may_have_arrived(outcome: &Result<Response, Failure>) -> bool {
    match outcome {
        // 429 means that the API did not accept the request.
        Ok(response) => response.status != 429,
        Err(failure) => {
            !matches!(failure, Failure::Connect(_) | Failure::Refused(_) | Failure::PrivateAddress | Failure::OwnServer)
        }
    }
}

fn is_unauthorized(outcome: &Result<Response, Failure>) -> bool {
    matches!(outcome, Ok(answer) if answer.status == 401)
}
