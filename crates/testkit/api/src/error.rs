//! The errors of the test API: those of the demo API, and further reasons to refuse a request, in the same JSON.

use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use demo::{ApiError, error_response};

/// The result of a handler.
pub type HandlerResult = Result<Response, TestApiError>;

/// The reason why a request is refused. Each variant is a mistake of the client.
#[derive(Debug, thiserror::Error)]
pub enum TestApiError {
    /// A refusal that the demo API has too.
    #[error(transparent)]
    Demo(#[from] ApiError),
    #[error("no upload {id}")]
    NoUpload { id: u64 },
    #[error("`{cursor}` is no cursor of this list; start without one")]
    BadCursor { cursor: String },
    #[error("the fault cannot be read: {reason}")]
    BadFault { reason: String },
    /// The credential is missing or wrong. `challenge` is the value of WWW-Authenticate.
    #[error("{reason}")]
    Unauthorized { challenge: &'static str, reason: &'static str },
}

impl IntoResponse for TestApiError {
    fn into_response(self) -> Response {
        let (status, code) = match self {
            TestApiError::Demo(error) => return error.into_response(),
            TestApiError::NoUpload { .. } => (StatusCode::NOT_FOUND, "not_found"),
            TestApiError::BadCursor { .. } => (StatusCode::BAD_REQUEST, "bad_request"),
            TestApiError::BadFault { .. } => (StatusCode::BAD_REQUEST, "bad_fault"),
            TestApiError::Unauthorized { .. } => (StatusCode::UNAUTHORIZED, "unauthorized"),
        };
        let mut answer = error_response(status, code, self.to_string(), None);
        if let TestApiError::Unauthorized { challenge, .. } = self {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        answer
    }
}
