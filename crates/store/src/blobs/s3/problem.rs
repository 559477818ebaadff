//! What the S3 client says, as something that somebody can do something about.
//! Invariant: decided by types and S3's own codes, never by words.

use std::error::Error as StdError;
use std::time::Duration;

use object_store::client::{HttpError, HttpErrorKind};
use ports::blobs::{Error, Problem, Remote};

use super::wire::{NoCredentials, Refusal};

/// S3's codes for "not you" and "not with this".
const DENIED: &[&str] = &[
    "AccessDenied",
    "AllAccessDisabled",
    "AccountProblem",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "InvalidSecurity",
    "NotSignedUp",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
    "AuthorizationHeaderMalformed",
];

pub fn error(place: String, cause: object_store::Error, timeout: Duration) -> Error {
    let problem = problem(&cause, timeout);
    remote(place, problem, Some(Box::new(cause)))
}

pub fn remote(place: String, problem: Problem, cause: Option<ports::Cause>) -> Error {
    tracing::warn!(%place, code = problem.code(), cause = cause.as_ref().map(tracing::field::display), "{problem}");
    Error::Remote(Box::new(Remote { place, problem, cause }))
}

fn problem(error: &object_store::Error, timeout: Duration) -> Problem {
    let (mut at, mut transport): (Option<&(dyn StdError + 'static)>, _) = (Some(error), None);
    while let Some(cause) = at {
        if let Some(refusal) = cause.downcast_ref::<Refusal>() {
            return of_refusal(refusal);
        }
        if cause.is::<NoCredentials>() {
            return Problem::NoCredentials;
        }
        transport = transport.or_else(|| cause.downcast_ref::<HttpError>().map(HttpError::kind));
        at = cause.source();
    }
    match (error, transport) {
        (_, Some(HttpErrorKind::Timeout)) => Problem::Slow { ms: timeout.as_millis() },
        (_, Some(HttpErrorKind::Decode)) => Problem::Foreign,
        (_, Some(_)) => Problem::Unreachable,
        (object_store::Error::NotFound { .. }, None) => Problem::Refused("404".to_owned()),
        (_, None) => Problem::Foreign,
    }
}

fn of_refusal(refusal: &Refusal) -> Problem {
    let said = refusal.to_string().trim_end().to_owned();
    match (refusal.status, refusal.code.as_str()) {
        (_, "NoSuchBucket" | "InvalidBucketName") => Problem::NoBucket,
        (_, code) if DENIED.contains(&code) => Problem::Denied(code.to_owned()),
        (401 | 403, _) => Problem::Denied(said),
        (408 | 429 | 500.., _) => Problem::Failing(said),
        _ => Problem::Refused(said),
    }
}
