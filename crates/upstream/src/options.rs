//! What an upstream is built with.
//! Invariant: no bound is zero, since a call that may take no time, or of which none may run, could never end well.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Limits, Origin};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// For one try, from connecting to the last byte of the body. All tries of a call together may take twice this.
    pub request_timeout: Duration,
    pub connect_timeout: Duration,
    /// Of one answer's body.
    pub response_bytes: usize,
    pub calls_per_origin: usize,
    /// Tries after the first.
    pub retries: u32,
    /// Answers kept to be asked for conditionally, and their bytes; zero of either keeps none.
    pub cache_entries: usize,
    pub cache_bytes: usize,
    /// Where an origin is really reached. Requests are checked against the origin they name; a route changes the address only.
    pub routes: BTreeMap<Origin, Origin>,
}

impl Default for Options {
    fn default() -> Self {
        Self::from(&Limits::default())
    }
}

impl From<&Limits> for Options {
    fn from(limits: &Limits) -> Self {
        Self {
            request_timeout: Duration::from_millis(limits.request_timeout_ms),
            connect_timeout: Duration::from_secs(10),
            response_bytes: limits.response_bytes,
            calls_per_origin: limits.calls_per_origin,
            retries: 3,
            cache_entries: 512,
            cache_bytes: 32 * 1024 * 1024,
            routes: BTreeMap::new(),
        }
    }
}

impl Options {
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let zero = [
            ("request_timeout", self.request_timeout.is_zero()),
            ("connect_timeout", self.connect_timeout.is_zero()),
            ("response_bytes", self.response_bytes == 0),
            ("calls_per_origin", self.calls_per_origin == 0),
        ];
        match zero.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((name, _)) => Err(BuildError::Zero(name)),
            None => Ok(()),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The operator's mistake.
    #[error("`{0}` must be more than zero")]
    Zero(&'static str),
    #[error("the HTTP client could not be built")]
    Client(#[source] reqwest::Error),
}
