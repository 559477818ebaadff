//! The OAuth 2 access tokens of the test API and their lifetimes.
//! Invariants: a token is issued only once, even after a reset, so a token from before a reset never becomes valid again. Lifetimes are
//! measured with the monotonic clock.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use demo::sha256;
use serde::Serialize;

/// The lifetime of a token in seconds. It is short, so that a test of renewal does not wait long.
const DEFAULT_EXPIRES_IN: u64 = 60;

/// The longest lifetime in seconds: a day. The bound prevents an overflow when a lifetime is added to the clock.
const MAX_EXPIRES_IN: u64 = 86_400;

#[derive(Default)]
pub struct Tokens(Mutex<TokenTable>);

struct TokenTable {
    /// The number of tokens that were issued since the start. It survives a reset.
    issued: u64,
    issued_since_reset: u64,
    /// The lifetime in seconds of the next token.
    expires_in: u64,
    /// The end of the lifetime of each token that was not revoked.
    ends: BTreeMap<String, Instant>,
}

pub struct IssuedToken {
    pub token: String,
    /// The lifetime of the token in seconds.
    pub expires_in: u64,
}

pub enum TokenStatus {
    Live,
    Expired,
    /// The token was never issued, or it was revoked.
    Unknown,
}

/// The answer of `/control/tokens`.
#[derive(Serialize)]
pub struct TokenCounts {
    /// The number of tokens that were issued since the last reset.
    issued: u64,
    /// The number of tokens that are valid at this moment.
    live: usize,
    /// The lifetime of the next token in seconds.
    expires_in: u64,
}

impl Default for TokenTable {
    fn default() -> TokenTable {
        TokenTable { issued: 0, issued_since_reset: 0, expires_in: DEFAULT_EXPIRES_IN, ends: BTreeMap::new() }
    }
}

impl Tokens {
    /// Issues a new token, with the default lifetime unless one is given.
    pub fn issue(&self, expires_in: Option<u64>) -> IssuedToken {
        let mut table = self.lock();
        table.issued += 1;
        table.issued_since_reset += 1;
        let token = format!("demo-access-{}-{}", table.issued, &sha256(&table.issued.to_be_bytes())[..12]);
        let expires_in = expires_in.unwrap_or(table.expires_in).min(MAX_EXPIRES_IN);
        table.ends.insert(token.clone(), Instant::now() + Duration::from_secs(expires_in));
        IssuedToken { token, expires_in }
    }

    pub fn status(&self, token: &str) -> TokenStatus {
        match self.lock().ends.get(token) {
            Some(end) if Instant::now() < *end => TokenStatus::Live,
            Some(_) => TokenStatus::Expired,
            None => TokenStatus::Unknown,
        }
    }

    /// Sets the lifetime of all tokens that are issued after this call.
    pub fn set_expires_in(&self, seconds: u64) {
        self.lock().expires_in = seconds.min(MAX_EXPIRES_IN);
    }

    pub fn revoke(&self, token: &str) {
        self.lock().ends.remove(token);
    }

    pub fn revoke_all(&self) {
        self.lock().ends.clear();
    }

    pub fn counts(&self) -> TokenCounts {
        let table = self.lock();
        let now = Instant::now();
        let live = table.ends.values().filter(|end| now < **end).count();
        TokenCounts { issued: table.issued_since_reset, live, expires_in: table.expires_in }
    }

    pub fn clear(&self) {
        let mut table = self.lock();
        *table = TokenTable { issued: table.issued, ..TokenTable::default() };
    }

    fn lock(&self) -> MutexGuard<'_, TokenTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
