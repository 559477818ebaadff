//! The reasons to refuse a request, and their JSON: `{"error": {"code", "message"}}`, with `fields` if single fields are wrong.
//! Invariant: the variant alone determines the status and the code.

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// The result of a handler.
pub type HandlerResult = Result<Response, ApiError>;

/// The reason why a request is refused. Each variant is a mistake of the client.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("no route {path}")]
    UnknownRoute { path: String },
    /// The request is for the former store of the demo. Sessions that pinned its catalog still send such requests.
    #[error("the store of the demo is no longer served; open a session with the catalog `demo`")]
    StoreIsGone,
    /// The request names another host, so a page may have rebound its own name to this address.
    #[error("this API is not reached by the name `{host}`")]
    HostRefused { host: String },
    /// The request comes from a web page, and this API has none.
    #[error("requests from pages of `{origin}` are refused")]
    OriginRefused { origin: String },
    #[error("{path} does not answer to {method}")]
    MethodNotAllowed { method: Method, path: String },
    #[error("no project `{key}`")]
    NoProject { key: String },
    #[error("no person `{id}`")]
    NoPerson { id: String },
    #[error("no ticket {number} in project `{project}`")]
    NoTicket { project: String, number: u64 },
    #[error("the path cannot be read: {reason}")]
    BadPath { reason: String },
    #[error("the query cannot be read: {reason}")]
    BadQuery { reason: String },
    #[error("unknown parameter `{name}`; {}", allowed_parameters(allowed))]
    UnknownParameter { name: String, allowed: Vec<&'static str> },
    #[error("parameter `{name}` is given more than once")]
    RepeatedParameter { name: String },
    #[error("parameter `{name}` must not be empty")]
    EmptyParameter { name: &'static str },
    #[error("`{name}` cannot be `{value}`; allowed: {}", allowed.join(", "))]
    NotOneOf { name: &'static str, value: String, allowed: Vec<&'static str> },
    #[error("`{name}` cannot be `{value}`; it must be {range}")]
    NotInRange { name: &'static str, value: String, range: &'static str },
    #[error("the body cannot be read: {reason}")]
    BadBody { reason: String },
    #[error("send the body as {expected}")]
    WrongBodyType { expected: &'static str },
    #[error("a body may have at most {max} bytes")]
    BodyTooLarge { max: usize },
    #[error("an Idempotency-Key must be text of 1 to 255 characters")]
    BadKey,
    /// An earlier, different call had the same idempotency key.
    #[error("the Idempotency-Key `{key}` came with another request before")]
    KeyReused { key: String },
    #[error("{}", join_fields(fields))]
    Invalid { fields: Vec<FieldError> },
    /// The header If-Match has another ETag than the ticket, because the ticket was changed.
    #[error("the ticket has changed; read it again")]
    TicketChanged,
    #[error("ticket {number} in project `{project}` is done already")]
    AlreadyDone { project: String, number: u64 },
}

/// A mistake in one field of a body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldError {
    pub field: String,
    /// The rule that the field breaks, as the predicate of a sentence: "must be text".
    pub message: String,
}

impl ApiError {
    fn status_and_code(&self) -> (StatusCode, &'static str) {
        use ApiError::*;
        match self {
            UnknownRoute { .. } | NoProject { .. } | NoPerson { .. } | NoTicket { .. } => {
                (StatusCode::NOT_FOUND, "not_found")
            }
            HostRefused { .. } => (StatusCode::FORBIDDEN, "host_refused"),
            OriginRefused { .. } => (StatusCode::FORBIDDEN, "origin_refused"),
            StoreIsGone => (StatusCode::GONE, "api_gone"),
            MethodNotAllowed { .. } => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            BadPath { .. }
            | BadQuery { .. }
            | UnknownParameter { .. }
            | RepeatedParameter { .. }
            | EmptyParameter { .. }
            | NotOneOf { .. }
            | NotInRange { .. }
            | BadBody { .. }
            | BadKey => (StatusCode::BAD_REQUEST, "bad_request"),
            WrongBodyType { .. } => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type"),
            BodyTooLarge { .. } => (StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            Invalid { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "invalid"),
            KeyReused { .. } => (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_mismatch"),
            TicketChanged => (StatusCode::PRECONDITION_FAILED, "precondition_failed"),
            AlreadyDone { .. } => (StatusCode::CONFLICT, "conflict"),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, code) = self.status_and_code();
        let fields = match &self {
            ApiError::Invalid { fields } => Some(fields.as_slice()),
            _ => None,
        };
        error_response(status, code, self.to_string(), fields)
    }
}

/// Returns an answer with an error in the JSON form of this API.
pub fn error_response(
    status: StatusCode,
    code: &'static str,
    message: String,
    fields: Option<&[FieldError]>,
) -> Response {
    (status, Json(Envelope { error: ErrorBody { code, message, fields } })).into_response()
}

#[derive(Serialize)]
struct Envelope<'e> {
    error: ErrorBody<'e>,
}

#[derive(Serialize)]
struct ErrorBody<'e> {
    code: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fields: Option<&'e [FieldError]>,
}

fn allowed_parameters(allowed: &[&'static str]) -> String {
    if allowed.is_empty() { "this route takes none".to_owned() } else { format!("allowed: {}", allowed.join(", ")) }
}

fn join_fields(fields: &[FieldError]) -> String {
    let sentences: Vec<String> = fields.iter().map(|wrong| format!("`{}` {}", wrong.field, wrong.message)).collect();
    sentences.join("; ")
}
