//! Who a request is from: an API key names a tenant and a principal.
//! Invariant: with keys, nothing but health answers without one; a key is in no log, no error and no answer. Another tenant's
//! transport session reads as none.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use access::{Caller, Identity};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base::{TenantId, Timestamp};
use session::Service;

use super::problem::Problem;
use crate::identity;
use crate::message::Mistake;

const TRANSPORT: &str = "mcp-session-id";
/// What a load balancer asks, which has no key.
const PUBLIC: [&str; 2] = ["/healthz", "/readyz"];

pub struct Auth {
    service: Arc<Service>,
    required: bool,
    rates: Rates,
}

impl Auth {
    pub fn new(service: Arc<Service>, required: bool, calls_per_minute: BTreeMap<TenantId, u32>) -> Self {
        Self { service, required, rates: Rates { most: calls_per_minute, used: Mutex::default() } }
    }

    async fn identify(&self, headers: &HeaderMap) -> Result<Identity, Problem> {
        if !self.required {
            return Ok(Identity::local());
        }
        let Some(key) = bearer(headers) else {
            return Err(Problem::unauthorized("this server needs an API key: send `Authorization: Bearer KEY`"));
        };
        match self.service.identify(key).await {
            Ok(Some(identity)) => Ok(identity),
            Ok(None) => Err(Problem::unauthorized("this API key is not known here, or was revoked")),
            Err(error) => Err(Problem::from(&error)),
        }
    }
}

pub async fn check(State(auth): State<Arc<Auth>>, mut request: Request, next: Next) -> Response {
    if PUBLIC.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let identity = match auth.identify(request.headers()).await {
        Ok(identity) => identity,
        Err(problem) => {
            tracing::warn!(code = problem.code, "refused");
            return unauthorized(problem, request.headers().contains_key(header::AUTHORIZATION));
        }
    };
    tracing::Span::current().record("tenant", identity.tenant.as_str());
    if let Err(seconds) = auth.rates.take(&identity.tenant, auth.service.now()) {
        tracing::warn!(code = "rate_limited", "refused");
        let detail = format!("this tenant's calls per minute are used up; try again in {seconds} s");
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", detail);
        return ([(header::RETRY_AFTER, seconds.to_string())], problem).into_response();
    }
    // A key stays out of everything behind this door.
    request.headers_mut().remove(header::AUTHORIZATION);
    request.extensions_mut().insert(identity.clone());
    identity::during(identity, next.run(request)).await
}

/// A transport session belongs to the tenant that opened it.
pub async fn own_transport(
    State(auth): State<Arc<Auth>>,
    axum::Extension(who): axum::Extension<Identity>,
    request: Request,
    next: Next,
) -> Response {
    let id = request.headers().get(TRANSPORT).map(|id| id.to_str().unwrap_or_default().to_owned());
    let Some(id) = id.filter(|_| auth.required) else { return next.run(request).await };
    match auth.service.transport(&who.tenant, &id).await {
        Ok(Some(_)) => next.run(request).await,
        Ok(None) => {
            let body = Mistake::invalid("Not Found: Session not found").answer();
            (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        Err(error) => Problem::from(&error).into_response(),
    }
}

fn unauthorized(problem: Problem, shown: bool) -> Response {
    let challenge = problem.status == StatusCode::UNAUTHORIZED;
    let mut response = problem.into_response();
    if challenge {
        let words =
            if shown { r#"Bearer realm="tokamak", error="invalid_token""# } else { r#"Bearer realm="tokamak""# };
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(words));
    }
    response
}

/// The key of the one `Authorization: Bearer …`; two are a mistake, not a choice.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let mut given = headers.get_all(header::AUTHORIZATION).iter();
    let (only, more) = (given.next()?, given.next());
    let (scheme, key) = only.to_str().ok()?.split_once(' ')?;
    (more.is_none() && scheme.eq_ignore_ascii_case("bearer")).then(|| key.trim())
}

impl<S: Send + Sync> FromRequestParts<S> for AsCaller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let axum::Extension(identity) =
            axum::Extension::<Identity>::from_request_parts(parts, state).await.map_err(|_| Problem::internal())?;
        Ok(Self(identity.caller(None)))
    }
}

/// The caller of a request, at no session's own door.
pub struct AsCaller(pub Caller);

/// How many calls each tenant may still make: a bucket that fills up within a minute.
struct Rates {
    most: BTreeMap<TenantId, u32>,
    used: Mutex<HashMap<TenantId, Bucket>>,
}

struct Bucket {
    left: f64,
    at: Timestamp,
}

impl Rates {
    /// Takes one call, or says in how many seconds there is one.
    fn take(&self, tenant: &TenantId, now: Timestamp) -> Result<(), u64> {
        let Some(most) = self.most.get(tenant).map(|most| f64::from(*most)) else { return Ok(()) };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = used.entry(tenant.clone()).or_insert(Bucket { left: most, at: now });
        // A clock that went back gives nothing.
        let passed = now.0.saturating_sub(bucket.at.0).max(0) as f64 / 60_000.0;
        *bucket = Bucket { left: (bucket.left + passed * most).min(most), at: now };
        if bucket.left >= 1.0 {
            bucket.left -= 1.0;
            return Ok(());
        }
        Err(((1.0 - bucket.left) * 60.0 / most).ceil() as u64)
    }
}

#[cfg(test)]
mod tests {
    // why: a failed expectation is the test's own failure.
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_tenant_has_its_calls_and_gets_them_back() {
        let (acme, free) = (TenantId::parse("acme").unwrap(), TenantId::local());
        let rates = Rates { most: BTreeMap::from([(acme.clone(), 2)]), used: Mutex::default() };
        let at = |seconds: i64| Timestamp(seconds * 1000);
        assert_eq!(
            [rates.take(&acme, at(0)), rates.take(&acme, at(0)), rates.take(&acme, at(0))],
            [Ok(()), Ok(()), Err(30)]
        );
        assert_eq!(rates.take(&acme, at(29)), Err(1));
        assert_eq!([rates.take(&acme, at(30)), rates.take(&acme, at(10))], [Ok(()), Err(30)]);
        assert!((0..1000).all(|_| rates.take(&free, at(0)).is_ok()));
    }

    #[test]
    fn only_one_bearer_key_is_one() {
        let mut headers = HeaderMap::new();
        assert_eq!(bearer(&headers), None);
        for (given, key) in
            [("Bearer abc", Some("abc")), ("bearer  abc ", Some("abc")), ("Basic abc", None), ("abc", None)]
        {
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(given));
            assert_eq!(bearer(&headers), key, "{given}");
        }
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer a"));
        headers.append(header::AUTHORIZATION, HeaderValue::from_static("Bearer b"));
        assert_eq!(bearer(&headers), None);
    }
}
