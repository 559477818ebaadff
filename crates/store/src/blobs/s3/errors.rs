//! Converts an error of the S3 client to `ports::blobs::RemoteProblem`, which tells the operator what to change.
//! Invariant: the conversion compares error types and S3's error codes. It never compares the words of a message.

use std::error::Error as StdError;
use std::time::Duration;

use object_store::client::{HttpError, HttpErrorKind};
use ports::blobs::{Error, RemoteError, RemoteProblem};

use super::http_client::{EndlessAnswer, NoCredentials, S3Refusal};

/// S3's error codes for a request that the credentials do not allow.
const DENIAL_CODES: &[&str] = &[
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

/// Returns the error for a request to `address` that failed in the S3 client with `cause`.
pub fn from_client(address: String, cause: object_store::Error, timeout: Duration) -> Error {
    let problem = problem_of(&cause, timeout);
    remote_error(address, problem, Some(Box::new(cause)))
}

/// Returns the error for a request to `address` with this problem.
pub fn remote_error(address: String, problem: RemoteProblem, cause: Option<ports::Cause>) -> Error {
    // The level is `debug`, because the caller logs the error at the level that it deserves.
    tracing::debug!(place = %address, code = problem.code(), cause = cause.as_ref().map(tracing::field::display), "{problem}");
    Error::Remote(Box::new(RemoteError { address, problem, cause }))
}

fn problem_of(error: &object_store::Error, timeout: Duration) -> RemoteProblem {
    // The S3 client wraps the errors of `http_client.rs` in several errors of its own, so the whole chain of causes is
    // searched.
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    let mut transport = None;
    while let Some(cause) = next {
        if let Some(refusal) = cause.downcast_ref::<S3Refusal>() {
            return problem_of_refusal(refusal);
        }
        if cause.is::<EndlessAnswer>() {
            return RemoteProblem::Endless("an answer of more than 8 MiB");
        }
        if cause.is::<NoCredentials>() {
            return RemoteProblem::NoCredentials;
        }
        transport = transport.or_else(|| cause.downcast_ref::<HttpError>().map(HttpError::kind));
        next = cause.source();
    }
    match (error, transport) {
        (_, Some(HttpErrorKind::Timeout)) => RemoteProblem::Slow { ms: timeout.as_millis() },
        (_, Some(HttpErrorKind::Decode)) => RemoteProblem::Foreign,
        (_, Some(_)) => RemoteProblem::Unreachable,
        (object_store::Error::NotFound { .. }, None) => RemoteProblem::Refused("404".to_owned()),
        // An answer arrived, but the S3 client could not parse it, so the server does not speak S3.
        (_, None) => RemoteProblem::Foreign,
    }
}

fn problem_of_refusal(refusal: &S3Refusal) -> RemoteProblem {
    let status_and_code = refusal.to_string().trim_end().to_owned();
    match (refusal.status, refusal.code.as_str()) {
        (_, "NoSuchBucket" | "InvalidBucketName") => RemoteProblem::NoBucket,
        (_, code) if DENIAL_CODES.contains(&code) => RemoteProblem::Denied(code.to_owned()),
        (401 | 403, _) => RemoteProblem::Denied(status_and_code),
        (408 | 429 | 500.., _) => RemoteProblem::Failing(status_and_code),
        _ => RemoteProblem::Refused(status_and_code),
    }
}
