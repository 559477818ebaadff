//! Authentication: the API key of a request names its tenant and principal, once for everything behind it.
//! Invariant: if keys are required, only health checks answer without one. A key never reaches a log, an error or an answer.
//! Another tenant's transport session, or another principal's where principals are separate, looks like one that does not exist.

use std::sync::Arc;

use access::Identity;
use app::{App, Context, EntryPoint, NotAdmitted};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::connections::Connection;
use super::guard::REQUEST_ID_HEADER;
use super::problem::Problem;
use crate::mcp::TRANSPORT_SESSION_HEADER;
use crate::message::Mistake;

/// Routes for load balancers, which have no key.
const PUBLIC_PATHS: [&str; 2] = ["/healthz", "/readyz"];

/// Finds the identity of a request and puts it into the request's extensions.
pub async fn check(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    if PUBLIC_PATHS.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    let connection = request.extensions().get::<Arc<Connection>>().cloned();
    match app.authenticate(bearer_key(request.headers())).await {
        Ok(identity) => {
            // The key stays out of everything behind this check.
            request.headers_mut().remove(header::AUTHORIZATION);
            request.extensions_mut().insert(identity);
            if let Some(connection) = connection {
                connection.trust();
            }
            next.run(request).await
        }
        Err(refusal) => refuse(&refusal, request.headers()),
    }
}

/// Returns the answer to a request that is not admitted, with the header that tells its client what to do.
fn refuse(refusal: &NotAdmitted, headers: &HeaderMap) -> Response {
    let problem = match refusal {
        NotAdmitted::NoKey | NotAdmitted::UnknownKey => {
            Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", refusal.to_string())
        }
        NotAdmitted::RateLimited(_) => Problem::new(StatusCode::TOO_MANY_REQUESTS, "rate_limited", refusal.to_string()),
        NotAdmitted::Unreadable(error) => Problem::of_session(error),
    };
    tracing::warn!(code = problem.code, "refused");
    let mut response = problem.into_response();
    match refusal {
        NotAdmitted::NoKey | NotAdmitted::UnknownKey => {
            // RFC 6750 section 3.1: a request without any credentials gets a challenge without an error code.
            let challenge = if headers.contains_key(header::AUTHORIZATION) {
                r#"Bearer realm="tokamak", error="invalid_token""#
            } else {
                r#"Bearer realm="tokamak""#
            };
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        NotAdmitted::RateLimited(limited) => {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(limited.retry_after_seconds));
        }
        NotAdmitted::Unreadable(_) => {}
    }
    response
}

/// Refuses a transport session that another tenant opened, or another principal where principals are separate.
pub async fn own_transport_session(
    State(app): State<Arc<App>>,
    axum::Extension(identity): axum::Extension<Identity>,
    request: Request,
    next: Next,
) -> Response {
    let id = request.headers().get(TRANSPORT_SESSION_HEADER).map(|id| id.to_str().unwrap_or_default().to_owned());
    let Some(id) = id.filter(|_| app.keys_required()) else { return next.run(request).await };
    match app.service().transport(&identity.caller(None), &id).await {
        Ok(Some(_)) => next.run(request).await,
        Ok(None) => {
            let body = Mistake::invalid("Not Found: Session not found").answer();
            (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "application/json")], body).into_response()
        }
        Err(error) => Problem::from(app::Error::from(error)).into_response(),
    }
}

/// Returns the key of the only `Authorization: Bearer …` header. Two headers are a mistake: the server must not choose.
fn bearer_key(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let only = values.next()?;
    let (scheme, key) = only.to_str().ok()?.split_once(' ')?;
    (values.next().is_none() && scheme.eq_ignore_ascii_case("bearer")).then(|| key.trim())
}

/// The context of a request to a route. Its caller has the principal's own slots; a route below `/execute` replaces the caller.
pub struct HttpCall(pub Context);

impl<S: Send + Sync> FromRequestParts<S> for HttpCall {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        // The identity is missing only if a route stands outside of the authentication layer, which is a defect.
        let axum::Extension(identity) =
            axum::Extension::<Identity>::from_request_parts(parts, state).await.map_err(|_| Problem::internal())?;
        let request_id = parts.headers.get(REQUEST_ID_HEADER).and_then(|id| id.to_str().ok()).map(str::to_owned);
        Ok(Self(Context { request_id, ..Context::new(identity.caller(None), EntryPoint::Http) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_accepted_only_from_a_single_bearer_header() {
        let mut headers = HeaderMap::new();
        assert_eq!(bearer_key(&headers), None);
        for (value, key) in
            [("Bearer abc", Some("abc")), ("bearer  abc ", Some("abc")), ("Basic abc", None), ("abc", None)]
        {
            headers.insert(header::AUTHORIZATION, HeaderValue::from_static(value));
            assert_eq!(bearer_key(&headers), key, "{value}");
        }
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("Bearer a"));
        headers.append(header::AUTHORIZATION, HeaderValue::from_static("Bearer b"));
        assert_eq!(bearer_key(&headers), None);
    }
}
