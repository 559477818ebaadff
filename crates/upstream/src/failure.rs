//! How one try can end without an answer, and what a caller is told of it.
//! Invariant: a failure is told apart by where it happened and by the client's predicates, never by its words; no address
//! with query values stays inside it.

use std::time::Duration;

use base::Request;
use ports::{Cause, upstream};

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
    /// An encoding that was not asked for and is not understood.
    Encoded(EncodedError),
    /// The client did not accept the request as one: nothing left.
    Refused,
}

#[derive(Debug, thiserror::Error)]
#[error("the answer came encoded as `{0}`, though no encoding was asked for")]
pub(crate) struct EncodedError(pub(crate) String);

impl Failure {
    /// `answering`: the head of the answer had come.
    pub(crate) fn of(error: reqwest::Error, answering: bool) -> Self {
        // A connect that timed out is both: nothing left is what matters.
        if error.is_connect() {
            Self::Connect(Box::new(error.without_url()))
        } else if error.is_timeout() {
            Self::TimedOut { answering }
        } else if error.is_builder() {
            Self::Refused
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
            Self::Refused => "refused",
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
            Self::Refused => upstream::Error::ForeignOrigin { label },
        }
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
