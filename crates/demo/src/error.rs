//! Every way a request can be refused, and its JSON: `{"error": {"code", "message"}}`, with `fields` beside them where
//! single fields are wrong.
//! Invariant: the status and the code follow from the variant alone; the message says what to write instead.

use std::fmt;

use axum::Json;
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// What every handler gives.
pub type Answer = Result<Response, ApiError>;

#[derive(Debug)]
pub enum ApiError {
    NoRoute {
        path: String,
    },
    NoProject {
        key: String,
    },
    NoPerson {
        id: String,
    },
    NoTicket {
        project: String,
        number: u64,
    },
    NoUpload {
        id: u64,
    },
    WrongMethod {
        method: Method,
        path: String,
    },
    BadPath {
        reason: String,
    },
    BadQuery {
        reason: String,
    },
    UnknownParameter {
        name: String,
        allowed: Vec<&'static str>,
    },
    RepeatedParameter {
        name: String,
    },
    EmptyParameter {
        name: &'static str,
    },
    NotOneOf {
        name: &'static str,
        value: String,
        allowed: Vec<&'static str>,
    },
    NotInRange {
        name: &'static str,
        value: String,
        range: &'static str,
    },
    BadCursor {
        cursor: String,
    },
    BadFault {
        reason: String,
    },
    BadBody {
        reason: String,
    },
    BadKey,
    WrongBodyType {
        expected: &'static str,
    },
    TooLarge {
        most: usize,
    },
    Invalid {
        fields: Vec<FieldError>,
    },
    /// An idempotency key that came with another call before.
    KeyReused {
        key: String,
    },
    /// An If-Match that is no longer so.
    Stale,
    AlreadyDone {
        project: String,
        number: u64,
    },
    /// The challenge goes into WWW-Authenticate.
    Unauthorized {
        challenge: &'static str,
        reason: &'static str,
    },
}

/// What is wrong with one field of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    pub field: String,
    pub message: String,
}

impl ApiError {
    fn kind(&self) -> (StatusCode, &'static str) {
        use ApiError::*;
        match self {
            NoRoute { .. } | NoProject { .. } | NoPerson { .. } | NoTicket { .. } | NoUpload { .. } => {
                (StatusCode::NOT_FOUND, "not_found")
            }
            WrongMethod { .. } => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            BadPath { .. }
            | BadQuery { .. }
            | UnknownParameter { .. }
            | RepeatedParameter { .. }
            | EmptyParameter { .. }
            | NotOneOf { .. }
            | NotInRange { .. }
            | BadCursor { .. }
            | BadBody { .. }
            | BadKey => (StatusCode::BAD_REQUEST, "bad_request"),
            BadFault { .. } => (StatusCode::BAD_REQUEST, "bad_fault"),
            WrongBodyType { .. } => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type"),
            TooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            Invalid { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "invalid"),
            KeyReused { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_mismatch"),
            Stale => (StatusCode::PRECONDITION_FAILED, "precondition_failed"),
            AlreadyDone { .. } => (StatusCode::CONFLICT, "conflict"),
            Unauthorized { .. } => (StatusCode::UNAUTHORIZED, "unauthorized"),
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use ApiError::*;
        match self {
            NoRoute { path } => write!(f, "no route {path}"),
            NoProject { key } => write!(f, "no project `{key}`"),
            NoPerson { id } => write!(f, "no person `{id}`"),
            NoTicket { project, number } => write!(f, "no ticket {number} in project `{project}`"),
            WrongMethod { method, path } => write!(f, "{path} does not answer to {method}"),
            BadPath { reason } => write!(f, "the path cannot be read: {reason}"),
            BadQuery { reason } => write!(f, "the query cannot be read: {reason}"),
            UnknownParameter { name, allowed } if allowed.is_empty() => {
                write!(f, "unknown parameter `{name}`; this route takes none")
            }
            UnknownParameter { name, allowed } => {
                write!(f, "unknown parameter `{name}`; allowed: {}", allowed.join(", "))
            }
            RepeatedParameter { name } => write!(f, "parameter `{name}` is given more than once"),
            EmptyParameter { name } => write!(f, "parameter `{name}` must not be empty"),
            NotOneOf { name, value, allowed } => {
                write!(f, "`{name}` cannot be `{value}`; allowed: {}", allowed.join(", "))
            }
            NotInRange { name, value, range } => write!(f, "`{name}` cannot be `{value}`; it must be {range}"),
            NoUpload { id } => write!(f, "no upload {id}"),
            BadCursor { cursor } => write!(f, "`{cursor}` is no cursor of this list; start without one"),
            BadFault { reason } => write!(f, "the fault cannot be read: {reason}"),
            BadBody { reason } => write!(f, "the body cannot be read: {reason}"),
            BadKey => write!(f, "an Idempotency-Key must be text of 1 to 255 characters"),
            WrongBodyType { expected } => write!(f, "send the body as {expected}"),
            TooLarge { most } => write!(f, "a body may have at most {most} bytes"),
            Invalid { fields } => {
                let wrong: Vec<String> = fields.iter().map(|one| format!("`{}` {}", one.field, one.message)).collect();
                write!(f, "{}", wrong.join("; "))
            }
            KeyReused { key } => write!(f, "the Idempotency-Key `{key}` came with another request before"),
            Stale => write!(f, "the ticket has changed; read it again"),
            AlreadyDone { project, number } => write!(f, "ticket {number} in project `{project}` is done already"),
            Unauthorized { reason, .. } => write!(f, "{reason}"),
        }
    }
}

impl std::error::Error for ApiError {}

#[derive(Serialize)]
struct Envelope<'e> {
    error: Shown<'e>,
}

#[derive(Serialize)]
struct Shown<'e> {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<&'e [FieldError]>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, code) = self.kind();
        let message = self.to_string();
        let fields = match &self {
            ApiError::Invalid { fields } => Some(fields.as_slice()),
            _ => None,
        };
        let mut answer = (status, Json(Envelope { error: Shown { code, message, fields } })).into_response();
        if let ApiError::Unauthorized { challenge, .. } = self {
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
        }
        answer
    }
}
