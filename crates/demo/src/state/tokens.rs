//! OAuth2 access tokens: who holds a live one, and for how long.
//! Invariants: a token is given out once, also across a reset, so a forgotten token never comes back to life; time passes by
//! the monotonic clock and appears in no answer but `expires_in`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::digest::sha256;

/// Short, so that a client which does not renew is found out within a demonstration.
pub const DEFAULT_EXPIRES_IN: u64 = 60;

/// A day: no test needs more, and a sum with the clock cannot overflow.
const MOST_EXPIRES_IN: u64 = 86_400;

#[derive(Default)]
pub struct Tokens(Mutex<Issued>);

struct Issued {
    /// Survives a reset.
    count: u64,
    since_reset: u64,
    expires_in: u64,
    live: BTreeMap<String, Instant>,
}

pub enum Standing {
    Live,
    Expired,
    Unknown,
}

impl Default for Issued {
    fn default() -> Issued {
        Issued { count: 0, since_reset: 0, expires_in: DEFAULT_EXPIRES_IN, live: BTreeMap::new() }
    }
}

impl Tokens {
    /// A new token and its lifetime in seconds.
    pub fn issue(&self, expires_in: Option<u64>) -> (String, u64) {
        let mut issued = self.lock();
        issued.count += 1;
        issued.since_reset += 1;
        let token = format!("demo-access-{}-{}", issued.count, &sha256(&issued.count.to_be_bytes())[..12]);
        let expires_in = expires_in.unwrap_or(issued.expires_in).min(MOST_EXPIRES_IN);
        issued.live.insert(token.clone(), Instant::now() + Duration::from_secs(expires_in));
        (token, expires_in)
    }

    pub fn standing(&self, token: &str) -> Standing {
        match self.lock().live.get(token) {
            Some(end) if Instant::now() < *end => Standing::Live,
            Some(_) => Standing::Expired,
            None => Standing::Unknown,
        }
    }

    /// The lifetime of tokens issued from here on, in seconds.
    pub fn set_expires_in(&self, seconds: u64) {
        self.lock().expires_in = seconds.min(MOST_EXPIRES_IN);
    }

    /// Whether there was such a token.
    pub fn revoke(&self, token: &str) -> bool {
        self.lock().live.remove(token).is_some()
    }

    pub fn revoke_all(&self) {
        self.lock().live.clear();
    }

    /// How many were issued since the last reset, how many of all are live, and the lifetime of the next.
    pub fn count(&self) -> (u64, usize, u64) {
        let (issued, now) = (self.lock(), Instant::now());
        (issued.since_reset, issued.live.values().filter(|end| now < **end).count(), issued.expires_in)
    }

    pub fn clear(&self) {
        let mut issued = self.lock();
        *issued = Issued { count: issued.count, ..Issued::default() };
    }

    fn lock(&self) -> MutexGuard<'_, Issued> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
