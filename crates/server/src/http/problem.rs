//! Errors as `application/problem+json`.
//! Invariant: `type` and `code` are stable; `detail` says what to do.

use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

pub struct Problem {
    pub status: StatusCode,
    pub code: &'static str,
    pub detail: String,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = json!({
            "type": format!("urn:tokamak:problem:{}", self.code),
            "title": self.status.canonical_reason().unwrap_or("error"),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        });
        (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response()
    }
}

impl From<&session::Error> for Problem {
    fn from(error: &session::Error) -> Self {
        let status = if error.is_fault() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::BAD_REQUEST };
        Self { status, code: error.code(), detail: crate::text::error(error) }
    }
}

pub async fn no_route(uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    let detail =
        format!("no route {path}; MCP is at /mcp, the registry at /v1/registry, health at /healthz and /readyz");
    Problem { status: StatusCode::NOT_FOUND, code: "no_route", detail }
}

pub async fn no_method(method: Method, uri: Uri) -> Problem {
    let detail = format!("{} does not take {method}", uri.path());
    Problem { status: StatusCode::METHOD_NOT_ALLOWED, code: "no_method", detail }
}
