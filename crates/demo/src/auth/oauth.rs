//! The token endpoint of OAuth2 client credentials (RFC 6749, 4.4), in the shapes that the RFC fixes.
//! Invariant: the client proves itself in the body or by Basic, never both; no answer of this route may be cached.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::guards::{CLIENT_ID, CLIENT_SECRET, basic_pair};
use crate::body::{FORM, content_type, pairs};
use crate::error::{Answer, ApiError};
use crate::query::Asked;
use crate::state::Shared;

pub async fn token(State(app): Shared, asked: Asked, headers: HeaderMap, body: Bytes) -> Answer {
    asked.none()?;
    if content_type(&headers) != FORM {
        return Err(ApiError::WrongBodyType { expected: FORM });
    }
    let form = pairs(&body)?;
    let field = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let in_body = field("client_id").zip(field("client_secret"));
    let in_header = basic_pair(&headers);
    let is_client = match (&in_header, in_body) {
        (Some(_), Some(_)) => return Ok(refusal("invalid_request", "the client is named twice")),
        (Some((id, secret)), None) => (id.as_str(), secret.as_str()) == (CLIENT_ID, CLIENT_SECRET),
        (None, given) => given == Some((CLIENT_ID, CLIENT_SECRET)),
    };
    if !is_client {
        return Ok(refusal("invalid_client", "the client or its secret is wrong"));
    }
    match field("grant_type") {
        Some("client_credentials") => {}
        Some(_) => return Ok(refusal("unsupported_grant_type", "only client_credentials is granted here")),
        None => return Ok(refusal("invalid_request", "grant_type is required")),
    }
    let Ok(wanted) = field("expires_in").map(str::parse).transpose() else {
        return Ok(refusal("invalid_request", "expires_in must be a number of seconds"));
    };
    let (token, expires_in) = app.tokens.issue(wanted);
    let scope = field("scope").unwrap_or("demo");
    let body = json!({"access_token": token, "token_type": "Bearer", "expires_in": expires_in, "scope": scope});
    Ok(uncached(Json(body).into_response()))
}

fn refusal(error: &str, description: &str) -> Response {
    let status = if error == "invalid_client" { StatusCode::UNAUTHORIZED } else { StatusCode::BAD_REQUEST };
    let body = Json(json!({"error": error, "error_description": description}));
    let mut answer = uncached((status, body).into_response());
    if status == StatusCode::UNAUTHORIZED {
        // A 401 must name a scheme; Basic is the one that this route takes.
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"demo\""));
    }
    answer
}

fn uncached(mut answer: Response) -> Response {
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
