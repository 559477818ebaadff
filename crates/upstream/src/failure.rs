//! How one try can end without an answer, and what a caller is told of it.
//! Invariant: a failure is told apart by where it happened and by the client's predicates, never by its words; no address
//! with query values stays inside it.

use std::error::Error;
use std::time::Duration;

use base::Request;
use ports::{Cause, upstream};

use crate::net::PrivateError;
use crate::outgoing::Refusal;

#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing left.
    Connect(Cause),
    /// It left, or may have.
    Lost(Cause),
    TimedOut {
        answering: bool,
    },
    TooLarge,
    Redirect(String),
    /// An encoding that is not understood.
    Encoded(EncodedError),
    /// The client did not accept the request as one: nothing left.
    Refused(Cause),
    /// The host leads to where its catalog may not: nothing left.
    PrivateAddress,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum EncodedError {
    #[error("the answer came encoded as `{0}`, which was not asked for")]
    Unknown(String),
    #[error("the answer's compression is broken")]
    Broken,
}

impl Failure {
    /// `answering`: the head of the answer had come.
    pub(crate) fn of(error: reqwest::Error, answering: bool) -> Self {
        if caused_by::<PrivateError>(&error) {
            return Self::PrivateAddress;
        }
        // A connect that timed out is both: nothing left is what matters.
        if error.is_connect() {
            Self::Connect(Box::new(error.without_url()))
        } else if error.is_timeout() {
            Self::TimedOut { answering }
        } else if error.is_builder() {
            Self::Refused(Box::new(error.without_url()))
        } else {
            Self::Lost(Box::new(error.without_url()))
        }
    }

    /// For events.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Connect(_) => "connect",
            Self::Lost(_) => "lost",
            Self::TimedOut { .. } => "timeout",
            Self::TooLarge => "too_large",
            Self::Redirect(_) => "redirect",
            Self::Encoded(_) => "encoded",
            Self::Refused(_) => "refused",
            Self::PrivateAddress => "private_address",
        }
    }

    pub(crate) fn told(self, label: String, timeout: Duration, limit: usize) -> upstream::Error {
        match self {
            Self::Connect(cause) => upstream::Error::Connect { label, cause },
            Self::Lost(cause) => upstream::Error::Lost { label, cause },
            Self::TimedOut { .. } => {
                let ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
                upstream::Error::Timeout { label, ms }
            }
            Self::TooLarge => upstream::Error::TooLarge { label, limit },
            Self::Redirect(location) => upstream::Error::Redirect { label, location },
            Self::Encoded(cause) => upstream::Error::Lost { label, cause: Box::new(cause) },
            Self::Refused(cause) => upstream::Error::Invalid { label, cause },
            Self::PrivateAddress => upstream::Error::PrivateAddress { label },
        }
    }
}

fn caused_by<E: Error + 'static>(error: &dyn Error) -> bool {
    let mut at = error.source();
    while let Some(cause) = at {
        if cause.is::<E>() {
            return true;
        }
        at = cause.source();
    }
    false
}

/// What a caller is told of a request that is not sent.
pub(crate) fn refused(label: &str, refusal: Refusal) -> upstream::Error {
    tracing::warn!(label, %refusal, "a request was refused before it left");
    let label = label.to_owned();
    match refusal {
        Refusal::Address(cause) if cause.leaves() => upstream::Error::ForeignOrigin { label },
        other => upstream::Error::Invalid { label, cause: Box::new(other) },
    }
}

/// The request's label, fit for a log even if its path is not a path: nothing after `?`, no control characters.
pub(crate) fn label(request: &Request) -> String {
    let mut label = request.label();
    if let Some(end) = label.find(['?', '#']) {
        label.truncate(end);
    }
    if label.contains(char::is_control) { label.escape_debug().to_string() } else { label }
}
