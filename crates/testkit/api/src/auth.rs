//! The routes under `/auth`: each returns the list of projects and requires another kind of credential.
//! Invariants: the credentials are constants for tests. A route accepts only its own kind of credential, and only in the right place.
//! A request without this credential gets a 401 whose WWW-Authenticate names the expected scheme, whatever else is wrong with it.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::routing::get;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use demo::UncheckedQuery;

use crate::error::{HandlerResult, TestApiError};
use crate::state::{ApiState, TestApi};
use crate::tokens::{TokenStatus, Tokens};

const TOKEN: &str = "demo-token";
const API_KEY: &str = "demo-key";
const USER: &str = "demo";
const PASSWORD: &str = "demo-password";

pub fn routes() -> Router<Arc<TestApi>> {
    Router::new()
        .route("/auth/bearer", get(with_bearer))
        .route("/auth/header", get(with_header))
        .route("/auth/query", get(with_query))
        .route("/auth/basic", get(with_basic))
        .route("/auth/oauth2", get(with_oauth2))
}

async fn with_bearer(State(api): ApiState, headers: HeaderMap, query: UncheckedQuery) -> HandlerResult {
    check_bearer(&headers)?;
    list_projects(&api, query, &[])
}

async fn with_header(State(api): ApiState, headers: HeaderMap, query: UncheckedQuery) -> HandlerResult {
    check_header(&headers)?;
    list_projects(&api, query, &[])
}

async fn with_query(State(api): ApiState, query: UncheckedQuery) -> HandlerResult {
    check_query(query.peek("api_key"))?;
    list_projects(&api, query, &["api_key"])
}

async fn with_basic(State(api): ApiState, headers: HeaderMap, query: UncheckedQuery) -> HandlerResult {
    check_basic(&headers)?;
    list_projects(&api, query, &[])
}

async fn with_oauth2(State(api): ApiState, headers: HeaderMap, query: UncheckedQuery) -> HandlerResult {
    check_oauth2(&api.tokens, &headers)?;
    list_projects(&api, query, &[])
}

fn list_projects(api: &TestApi, query: UncheckedQuery, other_params: &[&'static str]) -> HandlerResult {
    let (_, window) = query.list(other_params)?;
    Ok(window.answer(api.tracker.read().world.projects.iter()))
}

fn check_bearer(headers: &HeaderMap) -> Result<(), TestApiError> {
    match after_scheme(headers, "bearer") {
        Some(TOKEN) => Ok(()),
        Some(_) => refuse("Bearer realm=\"demo\", error=\"invalid_token\"", "the bearer token is wrong"),
        None => refuse("Bearer realm=\"demo\"", "send `Authorization: Bearer <token>`"),
    }
}

fn check_header(headers: &HeaderMap) -> Result<(), TestApiError> {
    const CHALLENGE: &str = "ApiKey realm=\"demo\", in=\"header\", name=\"X-Api-Key\"";
    match headers.get("x-api-key").map(|value| value.as_bytes()) {
        Some(key) if key == API_KEY.as_bytes() => Ok(()),
        Some(_) => refuse(CHALLENGE, "the API key is wrong"),
        None => refuse(CHALLENGE, "send `X-Api-Key: <key>`"),
    }
}

fn check_query(key: Option<&str>) -> Result<(), TestApiError> {
    const CHALLENGE: &str = "ApiKey realm=\"demo\", in=\"query\", name=\"api_key\"";
    match key {
        Some(API_KEY) => Ok(()),
        Some(_) => refuse(CHALLENGE, "the API key is wrong"),
        None => refuse(CHALLENGE, "send `?api_key=<key>`"),
    }
}

fn check_basic(headers: &HeaderMap) -> Result<(), TestApiError> {
    const CHALLENGE: &str = "Basic realm=\"demo\", charset=\"UTF-8\"";
    match basic_credentials(headers) {
        Some((user, password)) if user == USER && password == PASSWORD => Ok(()),
        Some(_) => refuse(CHALLENGE, "the user or the password is wrong"),
        None => refuse(CHALLENGE, "send `Authorization: Basic <base64 of user:password>`"),
    }
}

fn check_oauth2(tokens: &Tokens, headers: &HeaderMap) -> Result<(), TestApiError> {
    const INVALID: &str = "Bearer realm=\"demo\", error=\"invalid_token\"";
    match after_scheme(headers, "bearer").map(|token| tokens.status(token)) {
        Some(TokenStatus::Live) => Ok(()),
        Some(TokenStatus::Expired) => refuse(INVALID, "the access token has expired; get a new one at /oauth/token"),
        Some(TokenStatus::Unknown) => {
            refuse(INVALID, "the access token is unknown or revoked; get one at /oauth/token")
        }
        None => refuse("Bearer realm=\"demo\"", "get an access token at /oauth/token"),
    }
}

/// Returns the user and the password of the Authorization header.
pub fn basic_credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let plain = String::from_utf8(STANDARD.decode(after_scheme(headers, "basic")?).ok()?).ok()?;
    let (user, password) = plain.split_once(':')?;
    Some((user.to_owned(), password.to_owned()))
}

/// Returns the part of the Authorization header after the name of the scheme. Upper and lower case of the name are equal.
fn after_scheme<'h>(headers: &'h HeaderMap, scheme: &str) -> Option<&'h str> {
    let (name, rest) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    name.eq_ignore_ascii_case(scheme).then(|| rest.trim())
}

fn refuse(challenge: &'static str, reason: &'static str) -> Result<(), TestApiError> {
    Err(TestApiError::Unauthorized { challenge, reason })
}
