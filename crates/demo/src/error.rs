//! Every way a request can be refused, and its JSON: `{"error": {"code", "message"}}`.
//! Invariant: the status and the code follow from the variant alone; the message says what to write instead.

use std::fmt;

use axum::Json;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

#[derive(Debug)]
pub enum ApiError {
    NoRoute { path: String },
    NoProject { key: String },
    NoPerson { id: String },
    NoTicket { project: String, number: u64 },
    WrongMethod { method: Method, path: String },
    BadPath { reason: String },
    BadQuery { reason: String },
    UnknownParameter { name: String, allowed: Vec<&'static str> },
    RepeatedParameter { name: String },
    EmptyParameter { name: &'static str },
    NotOneOf { name: &'static str, value: String, allowed: Vec<&'static str> },
    NotInRange { name: &'static str, value: String, range: &'static str },
}

impl ApiError {
    fn kind(&self) -> (StatusCode, &'static str) {
        use ApiError::*;
        match self {
            NoRoute { .. } | NoProject { .. } | NoPerson { .. } | NoTicket { .. } => {
                (StatusCode::NOT_FOUND, "not_found")
            }
            WrongMethod { .. } => (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed"),
            BadPath { .. }
            | BadQuery { .. }
            | UnknownParameter { .. }
            | RepeatedParameter { .. }
            | EmptyParameter { .. }
            | NotOneOf { .. }
            | NotInRange { .. } => (StatusCode::BAD_REQUEST, "bad_request"),
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
        }
    }
}

impl std::error::Error for ApiError {}

#[derive(Serialize)]
struct Envelope {
    error: Shown,
}

#[derive(Serialize)]
struct Shown {
    code: &'static str,
    message: String,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, code) = self.kind();
        let message = self.to_string();
        (status, Json(Envelope { error: Shown { code, message } })).into_response()
    }
}
