//! The token endpoint of OAuth 2 client credentials (RFC 6749, 4.4), with the answers that the RFC prescribes.
//! Invariants: a client authenticates in the body or by Basic, never by both; no answer of this route may be cached.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use demo::{ApiError, UncheckedQuery, content_type};
use serde_json::json;

use crate::auth::basic_credentials;
use crate::error::HandlerResult;
use crate::form::{FORM, parse_form};
use crate::state::{ApiState, TestApi};

const CLIENT_ID: &str = "demo-client";
const CLIENT_SECRET: &str = "demo-secret";

pub fn routes() -> Router<Arc<TestApi>> {
    Router::new().route("/oauth/token", post(issue_token))
}

async fn issue_token(State(api): ApiState, query: UncheckedQuery, headers: HeaderMap, body: Bytes) -> HandlerResult {
    query.none()?;
    if content_type(&headers) != FORM {
        return Err(ApiError::WrongBodyType { expected: FORM }.into());
    }
    let form = parse_form(&body)?;
    let field = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let in_body = field("client_id").zip(field("client_secret"));
    let in_header = basic_credentials(&headers);
    let is_client = match (&in_header, in_body) {
        (Some(_), Some(_)) => return Ok(refusal("invalid_request", "the client is named twice")),
        (Some((id, secret)), None) => (id.as_str(), secret.as_str()) == (CLIENT_ID, CLIENT_SECRET),
        (None, credentials) => credentials == Some((CLIENT_ID, CLIENT_SECRET)),
    };
    if !is_client {
        return Ok(refusal("invalid_client", "the client or its secret is wrong"));
    }
    match field("grant_type") {
        Some("client_credentials") => {}
        Some(_) => return Ok(refusal("unsupported_grant_type", "only client_credentials is granted here")),
        None => return Ok(refusal("invalid_request", "grant_type is required")),
    }
    let Ok(lifetime) = field("expires_in").map(str::parse).transpose() else {
        return Ok(refusal("invalid_request", "expires_in must be a number of seconds"));
    };
    let issued = api.tokens.issue(lifetime);
    let body = json!({
        "access_token": issued.token,
        "token_type": "Bearer",
        "expires_in": issued.expires_in,
        "scope": field("scope").unwrap_or("demo"),
    });
    Ok(not_cached(Json(body).into_response()))
}

fn refusal(error: &str, description: &str) -> Response {
    let status = if error == "invalid_client" { StatusCode::UNAUTHORIZED } else { StatusCode::BAD_REQUEST };
    let body = Json(json!({"error": error, "error_description": description}));
    let mut answer = not_cached((status, body).into_response());
    if status == StatusCode::UNAUTHORIZED {
        // A 401 must name a scheme (RFC 9110, 15.5.2), and this route accepts Basic.
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"demo\""));
    }
    answer
}

fn not_cached(mut answer: Response) -> Response {
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
