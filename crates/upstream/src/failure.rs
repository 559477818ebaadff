//! The ways in which one try ends without an answer, and the errors that callers get for them.
//! Invariant: failures are classified by types and by the client's predicates, never by words. No failure holds a URL, because
//! its query may hold private values.

use std::error::Error;
use std::time::Duration;

use base::Request;
use ports::{Cause, upstream};

use crate::net::PrivateAddressError;
use crate::outgoing::Refusal;

/// The failure of one try. Whether anything of the request left decides about another try of a write.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There was no connection, so nothing left.
    Connect(Cause),
    /// The connection broke. The request left, or parts of it may have.
    Lost(Cause),
    /// The time was over. The request may have left.
    TimedOut {
        /// Whether the head of the answer had arrived.
        answering: bool,
    },
    /// The body is larger than the limit.
    TooLarge,
    /// The answer is a redirect to this location.
    Redirect(String),
    /// The body cannot be decoded.
    Encoded(EncodedError),
    /// The client did not accept the request, so nothing left.
    Refused(Cause),
    /// The host has an address that its catalog may not reach, so nothing left.
    PrivateAddress,
}

/// Why a body cannot be decoded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EncodedError {
    #[error("the answer came encoded as `{0}`, which was not asked for")]
    Unknown(String),
    #[error("the answer's compression is broken")]
    Broken,
}

impl Failure {
    /// Classifies an error of the client. `answering` says whether the head of the answer had arrived.
    pub(crate) fn of(error: reqwest::Error, answering: bool) -> Self {
        if is_caused_by::<PrivateAddressError>(&error) {
            return Self::PrivateAddress;
        }
        // `is_connect` is asked first: a connect that timed out is a timeout too, but nothing has left.
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

    /// Returns a word for log lines.
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

    /// Returns the error for the caller. `timeout` and `limit` are the bounds of the try.
    pub(crate) fn into_error(self, label: String, timeout: Duration, limit: usize) -> upstream::Error {
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

fn is_caused_by<E: Error + 'static>(error: &dyn Error) -> bool {
    let mut source = error.source();
    while let Some(cause) = source {
        if cause.is::<E>() {
            return true;
        }
        source = cause.source();
    }
    false
}

/// Returns the error for the caller of a request that is not sent.
pub(crate) fn refusal_error(label: &str, refusal: Refusal) -> upstream::Error {
    tracing::warn!(label, %refusal, "a request was refused before it left");
    let label = label.to_owned();
    match refusal {
        Refusal::Address(cause) if cause.leaves_origin() => upstream::Error::ForeignOrigin { label },
        other => upstream::Error::Invalid { label, cause: Box::new(other) },
    }
}

/// Returns the label of a request, safe for a log even if its path was not checked yet: it has no text after `?` and no
/// control characters.
pub(crate) fn label(request: &Request) -> String {
    let mut label = request.label();
    if let Some(end) = label.find(['?', '#']) {
        label.truncate(end);
    }
    if label.contains(char::is_control) { label.escape_debug().to_string() } else { label }
}
