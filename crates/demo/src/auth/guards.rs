//! The credentials, and one check for each way of sending them.
//! Invariant: a check passes for its own credential in its own place only; a token in the wrong header is no token.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use crate::digest::decode;
use crate::error::ApiError;
use crate::state::tokens::{Standing, Tokens};

const TOKEN: &str = "demo-token";
const API_KEY: &str = "demo-key";
const USER: &str = "demo";
const PASSWORD: &str = "demo-password";

pub const CLIENT_ID: &str = "demo-client";
pub const CLIENT_SECRET: &str = "demo-secret";

pub fn bearer(headers: &HeaderMap) -> Result<(), ApiError> {
    match scheme(headers, "bearer") {
        Some(TOKEN) => Ok(()),
        Some(_) => refuse("Bearer realm=\"demo\", error=\"invalid_token\"", "the bearer token is wrong"),
        None => refuse("Bearer realm=\"demo\"", "send `Authorization: Bearer <token>`"),
    }
}

pub fn header(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.get("x-api-key").map(|value| value.as_bytes()) {
        Some(key) if key == API_KEY.as_bytes() => Ok(()),
        Some(_) => refuse("ApiKey realm=\"demo\", in=\"header\", name=\"X-Api-Key\"", "the API key is wrong"),
        None => refuse("ApiKey realm=\"demo\", in=\"header\", name=\"X-Api-Key\"", "send `X-Api-Key: <key>`"),
    }
}

pub fn query(key: Option<&str>) -> Result<(), ApiError> {
    match key {
        Some(API_KEY) => Ok(()),
        Some(_) => refuse("ApiKey realm=\"demo\", in=\"query\", name=\"api_key\"", "the API key is wrong"),
        None => refuse("ApiKey realm=\"demo\", in=\"query\", name=\"api_key\"", "send `?api_key=<key>`"),
    }
}

pub fn basic(headers: &HeaderMap) -> Result<(), ApiError> {
    const CHALLENGE: &str = "Basic realm=\"demo\", charset=\"UTF-8\"";
    match basic_pair(headers) {
        Some((user, password)) if user == USER && password == PASSWORD => Ok(()),
        Some(_) => refuse(CHALLENGE, "the user or the password is wrong"),
        None => refuse(CHALLENGE, "send `Authorization: Basic <base64 of user:password>`"),
    }
}

pub fn oauth2(tokens: &Tokens, headers: &HeaderMap) -> Result<(), ApiError> {
    const INVALID: &str = "Bearer realm=\"demo\", error=\"invalid_token\"";
    match scheme(headers, "bearer").map(|token| tokens.standing(token)) {
        Some(Standing::Live) => Ok(()),
        Some(Standing::Expired) => refuse(INVALID, "the access token has expired; get a new one at /oauth/token"),
        Some(Standing::Unknown) => refuse(INVALID, "the access token is unknown or revoked; get one at /oauth/token"),
        None => refuse("Bearer realm=\"demo\"", "get an access token at /oauth/token"),
    }
}

/// User and password out of the Authorization header.
pub fn basic_pair(headers: &HeaderMap) -> Option<(String, String)> {
    let plain = String::from_utf8(decode(scheme(headers, "basic")?)?).ok()?;
    let (user, password) = plain.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// What follows the scheme's name, which may have any case.
fn scheme<'h>(headers: &'h HeaderMap, wanted: &str) -> Option<&'h str> {
    let (name, rest) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    name.eq_ignore_ascii_case(wanted).then(|| rest.trim())
}

fn refuse(challenge: &'static str, reason: &'static str) -> Result<(), ApiError> {
    Err(ApiError::Unauthorized { challenge, reason })
}
