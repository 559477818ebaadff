//! The options of an upstream: timeouts, limits, retries, cache and routes.
//! Invariant: no bound of a call is zero, since no call could succeed then.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Limits, Origin};

/// The options of an [`HttpUpstream`](crate::HttpUpstream).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The time of one try, from connecting to the last byte of the body. All tries of a call together may take twice this.
    pub request_timeout: Duration,
    /// The time to make a connection. It is part of the time of the try.
    pub connect_timeout: Duration,
    /// The largest body of an answer, after it is decompressed.
    pub response_bytes: usize,
    /// The largest number of calls to one origin at one time.
    pub calls_per_origin: usize,
    /// The number of tries after the first.
    pub retries: u32,
    /// The number of answers that are kept for conditional requests. Zero keeps none.
    pub cache_entries: usize,
    /// The memory of all kept answers. Zero keeps none.
    pub cache_bytes: usize,
    /// Other addresses for origins, set by the operator. Requests are checked against the origin that they name; a route
    /// changes only where the connection goes.
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
    /// Refuses bounds of zero.
    pub(crate) fn check(&self) -> Result<(), BuildError> {
        let bounds = [
            ("request_timeout", self.request_timeout.is_zero()),
            ("connect_timeout", self.connect_timeout.is_zero()),
            ("response_bytes", self.response_bytes == 0),
            ("calls_per_origin", self.calls_per_origin == 0),
        ];
        match bounds.into_iter().find(|(_, is_zero)| *is_zero) {
            Some((name, _)) => Err(BuildError::Zero(name)),
            None => Ok(()),
        }
    }
}

/// Why an upstream could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The operator's mistake.
    #[error("`{0}` must be more than zero")]
    Zero(&'static str),
    #[error("the HTTP client could not be built")]
    Client(#[source] reqwest::Error),
}
