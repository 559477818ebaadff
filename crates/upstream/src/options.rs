//! The type `Options` of an `HttpUpstream`: timeouts, limits, retries, cache and routes.
//! Invariant: `check` refuses a timeout or limit of zero, because no call could succeed with it.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Limits, Origin};

use crate::own_servers::RefusedServers;

/// The options of an [`HttpUpstream`](crate::HttpUpstream).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The time limit of one try, from connecting to the last byte of the body. All tries of a call and the waits
    /// between them may together take twice this time.
    pub request_timeout: Duration,
    /// The time limit for making a connection. It is part of the time of a try.
    pub connect_timeout: Duration,
    /// The largest body of an answer in bytes, after decompression.
    pub response_bytes: usize,
    /// The largest number of concurrent calls to one origin.
    pub calls_per_origin: usize,
    /// The largest number of tries after the first one.
    pub retries: u32,
    /// The number of answers that are cached for conditional requests. Zero switches the cache off.
    pub cache_entries: usize,
    /// The largest memory of all cached answers in bytes. Zero switches the cache off.
    pub cache_bytes: usize,
    /// The routes that the operator has set: requests to an origin are sent to its route instead. Requests are still
    /// checked against their origin; a route changes only the target of the connection.
    pub routes: BTreeMap<Origin, Origin>,
    /// The servers that no request may reach, whatever its origin and route: this server itself.
    pub refused_servers: RefusedServers,
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
            refused_servers: RefusedServers::default(),
        }
    }
}

impl Options {
    /// Refuses timeouts and limits of zero.
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

/// The reason for which an [`HttpUpstream`](crate::HttpUpstream) could not be created.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The operator has set this option to zero.
    #[error("the setting `{0}` is zero; set it to more than zero")]
    Zero(&'static str),
    #[error("the HTTP client for calls to APIs could not be created")]
    Client(#[source] reqwest::Error),
}
