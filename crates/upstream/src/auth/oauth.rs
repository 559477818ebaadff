//! Tokens of the client-credentials grant.
//! Invariants: a token is used for its own tenant, endpoint, client and scopes only; one fetch serves all who wait for it,
//! its failure included; a token is in no event, error or `Debug`.

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
use crate::retry::Retries;
use crate::wire::Wire;

/// Above this many clients, those with nothing under way are forgotten.
const REMEMBERED: usize = 1024;

/// Of a token whose endpoint does not say, in seconds.
const UNSAID: i64 = 300;

/// A token is renewed so long before its end, or at a fifth of its life if that is shorter.
const EARLY_MS: i64 = 30_000;

/// Tenant, and the endpoint, client and scopes that the form names.
type Key = (TenantId, Auth);

#[derive(Default)]
pub(crate) struct Tokens {
    slots: Mutex<HashMap<Key, Arc<Slot>>>,
}

#[derive(Default)]
struct Slot {
    state: tokio::sync::Mutex<State>,
    failures: AtomicU64,
}

#[derive(Default)]
struct State {
    token: Option<Token>,
    number: u64,
    failure: Option<TokenError>,
}

#[derive(Debug)]
pub(crate) struct Token {
    value: Secret,
    until: Timestamp,
}

#[derive(Debug)]
pub(crate) enum Problem {
    Secret(secrets::Error),
    Refused(Refusal),
    Token(TokenError),
}

pub(crate) struct Endpoint<'a> {
    pub(crate) origin: &'a Origin,
    pub(crate) path: &'a str,
    /// The names of the secrets that hold its id and its secret.
    pub(crate) client: (&'a str, &'a str),
    pub(crate) scopes: &'a [String],
}

impl Tokens {
    /// The token and its number. `stale` is the number of one that is no good any more; `fetch` runs only if need be.
    pub(crate) async fn get(
        &self,
        key: Key,
        now: impl Fn() -> Timestamp,
        stale: Option<u64>,
        fetch: impl Future<Output = Result<Token, Problem>>,
    ) -> Result<(Secret, u64), Problem> {
        let slot = self.slot(key);
        let failures = slot.failures.load(Ordering::Acquire);
        let mut state = slot.state.lock().await;
        let number = state.number;
        if let Some(token) = state.token.as_ref().filter(|token| token.until > now() && stale != Some(number)) {
            return Ok((token.value.clone(), number));
        }
        // Someone else's fetch failed while this call waited for it: asking again at once would not help.
        if slot.failures.load(Ordering::Acquire) != failures
            && let Some(failure) = state.failure.clone()
        {
            return Err(Problem::Token(failure));
        }
        match fetch.await {
            Ok(token) => {
                let value = token.value.clone();
                state.number += 1;
                state.token = Some(token);
                Ok((value, state.number))
            }
            Err(problem) => {
                if let Problem::Token(failure) = &problem {
                    state.failure = Some(failure.clone());
                    slot.failures.fetch_add(1, Ordering::AcqRel);
                }
                Err(problem)
            }
        }
    }

    fn slot(&self, key: Key) -> Arc<Slot> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        if slots.len() >= REMEMBERED && !slots.contains_key(&key) {
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        Arc::clone(slots.entry(key).or_default())
    }
}

/// One token from its endpoint, asked for again where that may help.
pub(crate) async fn fetch(wire: &Wire, endpoint: &Endpoint<'_>, id: &Secret, word: &Secret) -> Result<Token, Problem> {
    let mut fields = vec![("grant_type".to_owned(), "client_credentials".to_owned())];
    if !endpoint.scopes.is_empty() {
        fields.push(("scope".to_owned(), endpoint.scopes.join(" ")));
    }
    let place = wire.place(endpoint.origin);
    let mut outgoing = Outgoing::form(place, endpoint.path, &fields).map_err(Problem::Refused)?;
    // Both are encoded as in a form before they become a user and a password (RFC 6749, 2.3.1).
    let (user, password) = (form(id), form(word));
    let pair = super::basic(user.expose(), password.expose());
    outgoing.put_header("authorization", &pair).map_err(Problem::Refused)?;

    let label = format!("POST {}{}", endpoint.origin, endpoint.path);
    let retries = Retries::own(&label, wire.options.retries);
    let started = wire.now();
    let mut tried = 0;
    loop {
        let timeout = wire.options.request_timeout.min(wire.left(started));
        let asked = wire.now();
        let (outcome, _) = wire.attempt(&outgoing, endpoint.origin, &label, timeout).await;
        tried += 1;
        match retries.wait(tried, &outcome, wire.now(), wire.left(started)) {
            Some(wait) => wire.clock.sleep(wait).await,
            None => return outcome.map_err(no_answer).and_then(|answer| read(&answer, asked)).map_err(Problem::Token),
        }
    }
}

fn form(secret: &Secret) -> Secret {
    Secret::new(form_urlencoded::byte_serialize(secret.expose().as_bytes()).collect::<String>())
}

fn no_answer(failure: Failure) -> TokenError {
    TokenError::NoAnswer { kind: failure.kind() }
}

#[derive(Deserialize)]
struct Granted {
    access_token: String,
    token_type: Option<String>,
    /// A number; some endpoints write it as a text.
    expires_in: Option<Value>,
}

#[derive(Deserialize)]
struct Denied {
    error: String,
}

fn read(answer: &Response, asked: Timestamp) -> Result<Token, TokenError> {
    if !answer.is_success() {
        let denied: Option<Denied> = serde_json::from_slice(&answer.body).ok();
        let plain = |code: &String| {
            !code.is_empty() && code.len() <= 40 && code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        };
        return Err(TokenError::Refused { status: answer.status, code: denied.map(|d| d.error).filter(plain) });
    }
    let granted: Granted = serde_json::from_slice(&answer.body).map_err(|_| TokenError::Unreadable)?;
    let value = Secret::new(granted.access_token);
    let bearer = granted.token_type.is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    let fits = !value.expose().is_empty() && value.expose().bytes().all(|byte| byte.is_ascii_graphic());
    if !bearer || !fits {
        return Err(TokenError::Unreadable);
    }
    let seconds = match &granted.expires_in {
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) => text.trim().parse().ok(),
        _ => None,
    };
    #[allow(clippy::cast_possible_truncation)]
    let life = seconds.map_or(UNSAID, |seconds: f64| seconds as i64).clamp(0, 366 * 24 * 3600) * 1000;
    let until = Timestamp(asked.0.saturating_add(life - EARLY_MS.min(life / 5)));
    Ok(Token { value, until })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: &str) -> Result<Token, TokenError> {
        read(&Response { status, headers: vec![], body: body.as_bytes().to_vec() }, Timestamp(1_000_000))
    }

    #[test]
    fn a_token_ends_shortly_before_its_end() {
        let until = |expires: &str| {
            answered(200, &format!(r#"{{"access_token":"abc","token_type":"bearer"{expires}}}"#)).unwrap().until.0
        };
        assert_eq!(until(r#","expires_in":3600"#), 1_000_000 + 3_600_000 - 30_000);
        assert_eq!(until(r#","expires_in":"60""#), 1_000_000 + 60_000 - 12_000);
        assert_eq!(until(r#","expires_in":0"#), 1_000_000);
        assert_eq!(until(r#","expires_in":-5"#), 1_000_000);
        assert_eq!(until(""), 1_000_000 + 300_000 - 30_000);
        assert!(until(r#","expires_in":1e300"#) > 1_000_000);
    }

    #[test]
    fn what_is_no_token_is_told_by_type_and_shows_nothing() {
        let refused = |status, code: Option<&str>| TokenError::Refused { status, code: code.map(str::to_owned) };
        assert_eq!(answered(401, r#"{"error":"invalid_client"}"#).unwrap_err(), refused(401, Some("invalid_client")));
        assert_eq!(answered(400, r#"{"error":"Some words, secret"}"#).unwrap_err(), refused(400, None));
        assert_eq!(answered(500, "oops").unwrap_err(), refused(500, None));
        for bad in ["", "[]", "{}", r#"{"access_token":""}"#, r#"{"access_token":"a\nb"}"#, r#"{"access_token":"é"}"#]
        {
            assert_eq!(answered(200, bad).unwrap_err(), TokenError::Unreadable, "{bad}");
        }
        let other = r#"{"access_token":"abc","token_type":"mac"}"#;
        assert_eq!(answered(200, other).unwrap_err(), TokenError::Unreadable);
        let token = answered(200, r#"{"access_token":"hunter2"}"#).unwrap();
        assert!(!format!("{token:?}").contains("hunter2"));
    }
}
