//! The type `TokenCache`: fetches OAuth tokens with the client-credentials grant, and keeps them until shortly before
//! they expire.
//!
//! Invariants:
//! - A token is used only for the tenant, endpoint, client and scopes that it was fetched for.
//! - All calls that wait for the same token share one fetch and its result.
//! - No log line, error or `Debug` contains a token.

use std::collections::HashMap;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Auth, Origin, Response, Secret, TenantId, Timestamp};
use ports::secrets;
use ports::upstream::TokenError;
use serde::Deserialize;
use serde_json::Value;
use url::form_urlencoded;

use crate::failure::Failure;
use crate::outgoing::{Outgoing, Refusal};
use crate::redact::{MIN_SECRET_CHARS, Redactor, SentSecrets};
use crate::retry::RetryPolicy;
use crate::transport::Transport;

/// If the cache has this number of clients, a new client first removes the clients that no call uses at the moment,
/// with their tokens.
const MAX_IDLE_CLIENTS: usize = 1024;

/// The lifetime of a token whose endpoint returns no `expires_in`.
const DEFAULT_LIFETIME_SECONDS: i64 = 300;

/// A token is renewed this time before it expires, or after four fifths of its lifetime if that is later. Otherwise a
/// token could expire while a request is on its way.
const RENEWAL_MARGIN_MS: i64 = 30_000;

/// The OAuth client that a token belongs to. `auth` contains the endpoint, the names of the client's secrets and the
/// scopes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct TokenKey {
    pub(crate) tenant: TenantId,
    pub(crate) auth: Auth,
}

/// The tokens of all OAuth clients.
#[derive(Default)]
pub(crate) struct TokenCache {
    clients: Mutex<HashMap<TokenKey, Arc<OAuthClient>>>,
}

#[derive(Default)]
struct OAuthClient {
    /// The token state. It is locked during a fetch, so that other calls of this client wait for the result of the
    /// fetch.
    state: tokio::sync::Mutex<OAuthClientState>,
    /// The number of failed fetches. A call compares the number before and after its wait to learn whether a fetch
    /// failed during the wait.
    failures: AtomicU64,
}

#[derive(Default)]
struct OAuthClientState {
    token: Option<Token>,
    /// The number of the current token. It distinguishes a refused token from a newer token that another call has
    /// fetched.
    number: u64,
    /// The error of the last failed fetch.
    failure: Option<TokenError>,
}

/// A token from a token endpoint.
#[derive(Debug)]
pub(crate) struct Token {
    value: Secret,
    /// The time after which the token is no longer used. It is shortly before the token expires.
    valid_until: Timestamp,
}

/// A token for a request, with its number (`OAuthClientState::number`).
#[derive(Debug)]
pub(crate) struct IssuedToken {
    pub(crate) value: Secret,
    pub(crate) number: u64,
}

/// The reason for which no token could be fetched.
#[derive(Debug)]
pub(crate) enum TokenProblem {
    /// A secret of the client is not set or unusable.
    Secret(secrets::Error),
    /// The request to the catalog's token endpoint is invalid and was not sent.
    Refused(Refusal),
    Token(TokenError),
}

/// The parameters of a token request: the endpoint that issues tokens, the client and the scopes.
pub(crate) struct TokenEndpoint<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) path: &'a str,
    /// The names of the secrets whose values are the client's id and the client's secret.
    pub(crate) client_id_name: &'a str,
    pub(crate) client_secret_name: &'a str,
    pub(crate) scopes: &'a [String],
}

/// The values with which a client authenticates to its token endpoint.
#[derive(Clone, Copy)]
pub(crate) struct ClientCredentials<'a> {
    pub(crate) id: &'a Secret,
    pub(crate) secret: &'a Secret,
}

impl TokenCache {
    /// Returns a valid token of a client. `refused` is the number of a token that the API has refused. `fetch` is
    /// polled only if the cache has no valid token.
    pub(crate) async fn get(
        &self,
        key: TokenKey,
        now: impl Fn() -> Timestamp,
        refused: Option<u64>,
        fetch: impl Future<Output = Result<Token, TokenProblem>>,
    ) -> Result<IssuedToken, TokenProblem> {
        let client = self.client(key);
        let failures_before = client.failures.load(Ordering::Acquire);
        let mut state = client.state.lock().await;
        let number = state.number;
        if let Some(token) = state.token.as_ref().filter(|token| token.valid_until > now() && refused != Some(number)) {
            return Ok(IssuedToken { value: token.value.clone(), number });
        }
        // The fetch of another call failed while this call waited. This call returns the same error. A second fetch
        // would probably fail too, and each waiting call would send one.
        if client.failures.load(Ordering::Acquire) != failures_before
            && let Some(failure) = state.failure.clone()
        {
            return Err(TokenProblem::Token(failure));
        }
        match fetch.await {
            Ok(token) => {
                let value = token.value.clone();
                state.number += 1;
                state.token = Some(token);
                Ok(IssuedToken { value, number: state.number })
            }
            Err(problem) => {
                if let TokenProblem::Token(failure) = &problem {
                    state.failure = Some(failure.clone());
                    client.failures.fetch_add(1, Ordering::AcqRel);
                }
                Err(problem)
            }
        }
    }

    fn client(&self, key: TokenKey) -> Arc<OAuthClient> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= MAX_IDLE_CLIENTS && !clients.contains_key(&key) {
            // A call that waits for a token or fetches one has a second reference to the client.
            clients.retain(|_, client| Arc::strong_count(client) > 1);
        }
        Arc::clone(clients.entry(key).or_default())
    }
}

/// Fetches a token from its endpoint. The request is retried like a read.
pub(crate) async fn fetch_token(
    transport: &Transport,
    sent: &SentSecrets,
    tenant: &TenantId,
    endpoint: &TokenEndpoint<'_>,
    client: ClientCredentials<'_>,
) -> Result<Token, TokenProblem> {
    let mut fields = vec![("grant_type".to_owned(), "client_credentials".to_owned())];
    if !endpoint.scopes.is_empty() {
        fields.push(("scope".to_owned(), endpoint.scopes.join(" ")));
    }
    let target = transport.route_of(endpoint.origin);
    let mut outgoing = Outgoing::form(target, endpoint.path, &fields).map_err(TokenProblem::Refused)?;
    // The client's id and secret are form-encoded before they are used as user and password of Basic authentication
    // (RFC 6749, 2.3.1).
    let user = form_encode(client.id);
    let password = form_encode(client.secret);
    let credential = super::basic_credential(user.expose(), password.expose());
    outgoing.set_secret_header("authorization", &credential).map_err(TokenProblem::Refused)?;

    let encoded = Secret::new(credential.expose().trim_start_matches("Basic "));
    let redactor = sent.record(tenant, endpoint.origin, &[client.secret.clone(), encoded]);

    let label = format!("POST {}{}", endpoint.origin, endpoint.path);
    let policy = RetryPolicy::of_own_request(&label, transport.options.retries);
    let started = transport.now();
    let mut tries = 0;
    loop {
        let timeout = transport.options.request_timeout.min(transport.remaining_time(started));
        // The lifetime of the token is counted from the time before the request, because the answer may be slow.
        let requested_at = transport.now();
        let outcome = transport.attempt(&outgoing, endpoint.origin, &label, timeout).await.outcome;
        tries += 1;
        let remaining = transport.remaining_time(started);
        match policy.wait_before_retry(tries, &outcome, transport.now(), remaining) {
            Some(wait) => transport.clock.sleep(wait).await,
            None => {
                let answer = outcome.map_err(no_answer_error);
                return answer
                    .and_then(|answer| read_token(&answer, requested_at, redactor.as_deref()))
                    .map_err(TokenProblem::Token);
            }
        }
    }
}

fn form_encode(secret: &Secret) -> Secret {
    Secret::new(form_urlencoded::byte_serialize(secret.expose().as_bytes()).collect::<String>())
}

fn no_answer_error(failure: Failure) -> TokenError {
    TokenError::NoAnswer { kind: failure.kind() }
}

/// The answer of a token endpoint that issued a token (RFC 6749, 5.1).
#[derive(Deserialize)]
struct GrantedToken {
    access_token: String,
    token_type: Option<String>,
    /// The lifetime of the token in seconds. Some endpoints write the number as a string.
    expires_in: Option<Value>,
}

/// The answer of a token endpoint that refused the request (RFC 6749, 5.2).
#[derive(Deserialize)]
struct DeniedToken {
    error: String,
}

/// Reads the token in the answer to a request that was sent at `requested_at`.
fn read_token(answer: &Response, requested_at: Timestamp, redactor: Option<&Redactor>) -> Result<Token, TokenError> {
    if !answer.is_success() {
        let denied: Option<DeniedToken> = serde_json::from_slice(&answer.body).ok();
        // The error code is shown only if it has the form of OAuth's codes, because another text may repeat the
        // client's secret.
        let is_code = |code: &String| {
            !code.is_empty() && code.len() <= 40 && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        let is_clean = |code: &String| redactor.is_none_or(|redactor| !redactor.is_in(code));
        let code = denied.map(|denied| denied.error).filter(is_code).filter(is_clean);
        return Err(TokenError::Refused { status: answer.status, code });
    }
    let granted: GrantedToken = serde_json::from_slice(&answer.body).map_err(|_| TokenError::Unreadable)?;
    let value = Secret::new(granted.access_token);
    let is_bearer = granted.token_type.is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    let fits_header = value.expose().bytes().all(|byte| byte.is_ascii_graphic());
    // A shorter token could not be removed from answers that echo it.
    if !is_bearer || !fits_header || value.expose().len() < MIN_SECRET_CHARS {
        return Err(TokenError::Unreadable);
    }
    let seconds = match &granted.expires_in {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    // why: the conversion saturates, and the value is clamped below.
    #[allow(clippy::cast_possible_truncation)]
    let life_seconds = seconds.map_or(DEFAULT_LIFETIME_SECONDS, |seconds: f64| seconds as i64);
    let life_ms = life_seconds.clamp(0, 366 * 24 * 3600) * 1000;
    let usable_ms = life_ms - RENEWAL_MARGIN_MS.min(life_ms / 5);
    Ok(Token { value, valid_until: Timestamp(requested_at.0.saturating_add(usable_ms)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token_of(status: u16, body: &str) -> Result<Token, TokenError> {
        read_token(&Response { status, headers: vec![], body: body.as_bytes().to_vec() }, Timestamp(1_000_000), None)
    }

    #[test]
    fn a_token_is_not_used_shortly_before_its_end() {
        let valid_until = |expires: &str| {
            token_of(200, &format!(r#"{{"access_token":"abcdef","token_type":"bearer"{expires}}}"#))
                .unwrap()
                .valid_until
                .0
        };
        assert_eq!(valid_until(r#","expires_in":3600"#), 1_000_000 + 3_600_000 - 30_000);
        assert_eq!(valid_until(r#","expires_in":"60""#), 1_000_000 + 60_000 - 12_000);
        assert_eq!(valid_until(r#","expires_in":0"#), 1_000_000);
        assert_eq!(valid_until(r#","expires_in":-5"#), 1_000_000);
        assert_eq!(valid_until(""), 1_000_000 + 300_000 - 30_000);
        assert!(valid_until(r#","expires_in":1e300"#) > 1_000_000);
    }

    #[test]
    fn an_answer_without_a_token_is_an_error_that_shows_no_secret() {
        let refused = |status, code: Option<&str>| TokenError::Refused { status, code: code.map(str::to_owned) };
        assert_eq!(token_of(401, r#"{"error":"invalid_client"}"#).unwrap_err(), refused(401, Some("invalid_client")));
        assert_eq!(token_of(400, r#"{"error":"Some words, secret"}"#).unwrap_err(), refused(400, None));
        assert_eq!(token_of(500, "oops").unwrap_err(), refused(500, None));
        for bad in
            ["", "[]", "{}", r#"{"access_token":"five5"}"#, r#"{"access_token":"a\nb"}"#, r#"{"access_token":"é"}"#]
        {
            assert_eq!(token_of(200, bad).unwrap_err(), TokenError::Unreadable, "{bad}");
        }
        let other = r#"{"access_token":"abcdef","token_type":"mac"}"#;
        assert_eq!(token_of(200, other).unwrap_err(), TokenError::Unreadable);
        let token = token_of(200, r#"{"access_token":"hunter2"}"#).unwrap();
        assert!(!format!("{token:?}").contains("hunter2"));
    }
}
