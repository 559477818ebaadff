//! The type `Failure`: the reason for which one try of a request ended without an answer, and its conversion to the
//! caller's error.
//! Invariant: failures are classified by error types and by methods such as `is_timeout`, never by words. No failure
//! contains a URL, because a query may contain private values.

use std::error::Error;
use std::time::Duration;

use base::Request;
use ports::{Cause, upstream};

use crate::net::{OwnServerError, PrivateAddressError};
use crate::outgoing::Refusal;
use crate::redact::Redactor;

/// The failure of one try. A write may be sent again only if no byte of the request was sent.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No connection could be made, so nothing was sent.
    Connect(Cause),
    /// The connection broke. The request, or a part of it, may have been sent.
    Lost(Cause),
    /// The time limit of the try was reached. The request may have been sent.
    TimedOut {
        /// Whether the headers of the answer had arrived.
        answering: bool,
    },
    /// The body of the answer is larger than the limit.
    TooLarge,
    /// The answer is a redirect to this location, which is not followed.
    Redirect(String),
    /// The body of the answer cannot be decompressed.
    Encoded(EncodedError),
    /// The HTTP client refused the request, so nothing was sent.
    Refused(Cause),
    /// The host has an address to which requests of catalogs must not be sent, so nothing was sent.
    PrivateAddress,
    /// The address is that of this server itself, so nothing was sent.
    OwnServer,
}

/// The reason for which the body of an answer cannot be decompressed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EncodedError {
    #[error("the API's answer is encoded as `{0}`; only gzip was requested")]
    Unknown(String),
    #[error("the compressed body of the API's answer is damaged")]
    Broken,
}

impl Failure {
    /// Classifies an error of the HTTP client. `answering` is true if the headers of the answer had arrived.
    pub(crate) fn of(error: reqwest::Error, answering: bool) -> Self {
        if is_caused_by::<PrivateAddressError>(&error) {
            return Self::PrivateAddress;
        }
        if is_caused_by::<OwnServerError>(&error) {
            return Self::OwnServer;
        }
        // `is_connect` is checked before `is_timeout`. A connect that timed out satisfies both, and nothing was sent.
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

    /// Removes secrets from the texts that the origin chose.
    pub(crate) fn redact(&mut self, redactor: &Redactor) {
        match self {
            Self::Redirect(text) | Self::Encoded(EncodedError::Unknown(text)) => redactor.redact_text(text),
            Self::Connect(_)
            | Self::Lost(_)
            | Self::TimedOut { .. }
            | Self::TooLarge
            | Self::Encoded(EncodedError::Broken)
            | Self::Refused(_)
            | Self::PrivateAddress
            | Self::OwnServer => {}
        }
    }

    /// Returns the failure's name in log lines and token errors.
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
            Self::OwnServer => "own_server",
        }
    }

    /// Returns the error for the caller. `timeout` is the time limit of the try, and `limit` is the largest body in
    /// bytes.
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
            Self::OwnServer => upstream::Error::OwnServer { label },
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

/// Logs the refusal of a request, which is not sent, and returns the error for the caller.
pub(crate) fn refusal_error(label: &str, refusal: Refusal) -> upstream::Error {
    tracing::warn!(label, %refusal, "a request to an API was refused and not sent; correct the catalog");
    let label = label.to_owned();
    match refusal {
        Refusal::Address(cause) if cause.leaves_origin() => upstream::Error::ForeignOrigin { label },
        other => upstream::Error::Invalid { label, cause: Box::new(other) },
    }
}

/// Returns the label of a request for logs. The label is safe even if the path was not checked yet: it has no text
/// after `?` or `#`, and control characters are escaped.
pub(crate) fn safe_label(request: &Request) -> String {
    let mut label = request.label();
    if let Some(end) = label.find(['?', '#']) {
        label.truncate(end);
    }
    if label.contains(char::is_control) { label.escape_debug().to_string() } else { label }
}
