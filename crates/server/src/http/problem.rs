//! Errors as `application/problem+json`.
//! Invariant: `type` and `code` are stable; `detail` names the remedy.

use axum::Json;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base::printable;
use session::JsError;

use super::openapi::ProblemBody;

/// An error as its client reads it.
#[derive(Debug)]
pub struct Problem {
    pub status: StatusCode,
    /// The stable code to branch on.
    pub code: &'static str,
    /// The mistake, and the remedy.
    pub detail: String,
    /// For a plan that needs a review: the plan commit with which it can be run.
    pub plan_commit_ref: Option<String>,
}

impl Problem {
    pub fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), plan_commit_ref: None }
    }

    /// Returns the problem of a request with a mistake in its arguments.
    pub fn bad_arguments(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_arguments", detail)
    }

    /// Returns the problem of a call that hit a defect of the server.
    pub fn internal() -> Self {
        let detail = "this call hit a defect of the server; its log has the place";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = ProblemBody {
            kind: format!("urn:tokamak:problem:{}", self.code),
            title: self.status.canonical_reason().unwrap_or("error"),
            status: self.status.as_u16(),
            code: self.code,
            detail: self.detail,
            plan_commit_ref: self.plan_commit_ref,
        };
        (self.status, [(header::CONTENT_TYPE, "application/problem+json")], Json(body)).into_response()
    }
}

impl From<app::Error> for Problem {
    fn from(error: app::Error) -> Self {
        match &error {
            app::Error::Session(error) => Self::of_session(error),
            app::Error::BadArguments(mistake) => Self::bad_arguments(mistake),
            app::Error::NoCatalog(_) | app::Error::NotOperator => {
                Self::new(StatusCode::NOT_FOUND, error.code(), error.to_string())
            }
            // A client that withdrew its request reads no answer. The status is for the log.
            app::Error::Withdrawn => Self::new(StatusCode::BAD_REQUEST, error.code(), error.to_string()),
            app::Error::Panicked => Self::internal(),
        }
    }
}

impl Problem {
    /// Returns the problem of a use case that failed.
    pub fn of_session(error: &session::Error) -> Self {
        let problem = Self::new(status(error), error.code(), crate::text::session_error(error));
        match error {
            session::Error::Review { commit, .. } => Self { plan_commit_ref: Some(commit.clone()), ..problem },
            _ => problem,
        }
    }
}

/// Returns the status of a failure. Only variants decide it, never words.
fn status(error: &session::Error) -> StatusCode {
    use session::Error;
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
        Error::Review { .. } | Error::OtherPlan(_) | Error::TakenOver(_) => StatusCode::CONFLICT,
        Error::Js(error) => script_status(error),
        // Before the guard on faults below: this one is a defect, and trying again does not help.
        Error::Lost => StatusCode::INTERNAL_SERVER_ERROR,
        Error::Busy => StatusCode::SERVICE_UNAVAILABLE,
        Error::TooManyDetached { .. } | Error::TooManySlots { .. } => StatusCode::TOO_MANY_REQUESTS,
        fault if fault.is_fault() => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// Returns the status of a failure around scripts.
fn script_status(error: &JsError) -> StatusCode {
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

/// Answers a path that no route has.
pub async fn no_route(uri: Uri) -> Problem {
    let path = printable(uri.path(), 200);
    let detail = format!("no route {path}; GET /openapi.json describes them all, MCP is at /mcp");
    Problem::new(StatusCode::NOT_FOUND, "no_route", detail)
}

/// The answer (405) to a request whose path exists but does not accept the request's method.
pub async fn no_method(method: Method, uri: Uri) -> Problem {
    let detail = format!("{} does not take {method}", printable(uri.path(), 200));
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "no_method", detail)
}
