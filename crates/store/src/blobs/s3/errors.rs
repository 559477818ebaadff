//! Turns an error of the S3 client into a problem that an operator can act on.
//! Invariant: the decision is made by types and by S3's own codes, never by the words of a message.

use std::error::Error as StdError;
use std::time::Duration;

use object_store::client::{HttpError, HttpErrorKind};
use ports::blobs::{Error, RemoteError, RemoteProblem};

use super::http_client::{NoCredentials, S3Refusal};

/// S3's codes that mean: these credentials do not allow this request.
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

/// Returns the error of a request to `address` that the S3 client reported as `cause`.
pub fn from_client(address: String, cause: object_store::Error, timeout: Duration) -> Error {
    let problem = problem_of(&cause, timeout);
    remote(address, problem, Some(Box::new(cause)))
}

/// Returns the error of a request to `address`.
pub fn remote(address: String, problem: RemoteProblem, cause: Option<ports::Cause>) -> Error {
    // At level `debug`, because only the caller knows how serious the error is, and logs it.
    tracing::debug!(place = %address, code = problem.code(), cause = cause.as_ref().map(tracing::field::display), "{problem}");
    Error::Remote(Box::new(RemoteError { address, problem, cause }))
}

fn problem_of(error: &object_store::Error, timeout: Duration) -> RemoteProblem {
    // The S3 client wraps our own errors in several of its own, so the whole chain is searched.
    let mut next: Option<&(dyn StdError + 'static)> = Some(error);
    let mut transport = None;
    while let Some(cause) = next {
        if let Some(refusal) = cause.downcast_ref::<S3Refusal>() {
            return problem_of_refusal(refusal);
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
        // An answer arrived, but the client could not read it as S3.
        (_, None) => RemoteProblem::Foreign,
    }
}

fn problem_of_refusal(refusal: &S3Refusal) -> RemoteProblem {
    let status_and_code = refusal.to_string().trim_end().to_owned();
    match (refusal.status, refusal.code.as_str()) {
        (_, "NoSuchBucket" | "InvalidBucketName") => RemoteProblem::NoBucket,
        (_, code) if DENIED.contains(&code) => RemoteProblem::Denied(code.to_owned()),
        (401 | 403, _) => RemoteProblem::Denied(status_and_code),
        (408 | 429 | 500.., _) => RemoteProblem::Failing(status_and_code),
        _ => RemoteProblem::Refused(status_and_code),
    }
}
