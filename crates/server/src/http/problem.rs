//! Errors as `application/problem+json`.
//! Invariant: `type` and `code` are stable; `detail` says what to do.

use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base::printable;
use serde_json::{Value, json};
use session::{Error, JsError};

#[derive(Debug)]
pub struct Problem {
    pub status: StatusCode,
    pub code: &'static str,
    pub detail: String,
    /// Members of its own: what a program needs to go on.
    pub more: Option<Box<(&'static str, Value)>>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), more: None }
    }

    pub fn unauthorized(detail: &str) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", detail)
    }

    pub fn bad_arguments(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_arguments", detail)
    }

    /// A defect of ours.
    pub fn internal() -> Self {
        let detail = "this call hit a defect of the server; its log has the place";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut body = json!({
            "type": format!("urn:tokamak:problem:{}", self.code),
            "title": self.status.canonical_reason().unwrap_or("error"),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        if let Some(more) = self.more {
            body[more.0] = more.1;
        }
        (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response()
    }
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        if error.is_fault() {
            tracing::error!(error = error as &dyn std::error::Error, "a call failed");
        }
        let mut problem = Self::new(status(error), error.code(), crate::text::error(error));
        if let Error::Review { commit, .. } = error {
            problem.more = Some(Box::new(("plan_commit_ref", json!(commit))));
        }
        problem
    }
}

fn status(error: &Error) -> StatusCode {
    match error {
        Error::Shared(error) => status(error),
        Error::NoSession(_)
        | Error::NoExecute(_)
        | Error::Seed(_)
        | Error::UnknownSlot { .. }
        | Error::NoArtifact(_)
        | Error::NoHandle(_)
        | Error::NoCommit(_) => StatusCode::NOT_FOUND,
        Error::Expired(_) | Error::Replaced | Error::CommitExpired(_) | Error::Gone { .. } => StatusCode::GONE,
        Error::Review { .. } | Error::OtherPlan(_) | Error::Interrupted { .. } | Error::TakenOver(_) => {
            StatusCode::CONFLICT
        }
        Error::Js(error) => of_js(error),
        Error::Lost => StatusCode::INTERNAL_SERVER_ERROR,
        Error::Busy => StatusCode::SERVICE_UNAVAILABLE,
        fault if fault.is_fault() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn of_js(error: &JsError) -> StatusCode {
    match error {
        JsError::NoScripts => StatusCode::NOT_IMPLEMENTED,
        JsError::Busy { .. } => StatusCode::TOO_MANY_REQUESTS,
        JsError::NoRoom { .. } => StatusCode::INSUFFICIENT_STORAGE,
        JsError::Ended { .. } | JsError::UnderWay | JsError::IntentTaken | JsError::Fenced { .. } => {
            StatusCode::CONFLICT
        }
        missing if missing.is_missing() => StatusCode::NOT_FOUND,
        fault if fault.is_fault() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    }
}

pub async fn no_route(uri: Uri) -> Problem {
    let path = printable(uri.path(), 200);
    let detail = format!("no route {path}; GET /openapi.json describes them all, MCP is at /mcp");
    Problem::new(StatusCode::NOT_FOUND, "no_route", detail)
}

pub async fn no_method(method: Method, uri: Uri) -> Problem {
    let detail = format!("{} does not take {method}", printable(uri.path(), 200));
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no_method", detail)
}
