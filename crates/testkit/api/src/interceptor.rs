//! The interceptor before every route: it records each request, and applies the fault that a header or a rule selects.
//! Invariants: without a fault the answer is unchanged. Requests to `/control` are neither recorded nor broken, so a test can always
//! use them.

use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::connect_info::ConnectInfo;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use demo::{ApiError, MAX_BODY};
use serde_json::json;

use crate::connection::ConnectionHandle;
use crate::error::TestApiError;
use crate::faults::{
    ActiveFault, FAULT_HEADER, FaultKind, FaultTime, RequestLine, break_answer, limit_rate, no_answer,
};
use crate::state::TestApi;

pub async fn intercept(State(api): State<Arc<TestApi>>, request: Request, next: Next) -> Response {
    if request.uri().path().starts_with("/control/") {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let body = match read_body(body).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    api.requests.record(&parts, &body);
    let fault = pick_fault(&api, &parts);
    let connection = parts.extensions.get::<ConnectInfo<ConnectionHandle>>().map(|ConnectInfo(handle)| handle.clone());
    let request = Request::from_parts(parts, Body::from(body));
    match fault {
        Ok(None) => next.run(request).await,
        Ok(Some(active)) => apply_fault(active, connection, request, next).await,
        Err(error) => error.into_response(),
    }
}

fn pick_fault(api: &TestApi, parts: &Parts) -> Result<Option<ActiveFault>, TestApiError> {
    let header = match parts.headers.get(FAULT_HEADER).map(|value| value.to_str()).transpose() {
        Ok(header) => header,
        Err(_) => return Err(TestApiError::BadFault { reason: format!("`{FAULT_HEADER}` is not text") }),
    };
    let line = RequestLine { method: parts.method.as_str(), path: parts.uri.path(), fault_header: header };
    api.faults.pick(&line).map_err(|error| TestApiError::BadFault { reason: error.to_string() })
}

async fn read_body(body: Body) -> Result<Bytes, ApiError> {
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    // A body whose announced length exceeds the limit is refused at once. Otherwise the client would first have to send the whole body.
    if body.size_hint().lower() > MAX_BODY as u64 {
        return Err(ApiError::BodyTooLarge { max: MAX_BODY });
    }
    axum::body::to_bytes(body, MAX_BODY).await.map_err(|_| ApiError::BodyTooLarge { max: MAX_BODY })
}

async fn apply_fault(
    active: ActiveFault,
    connection: Option<ConnectionHandle>,
    request: Request,
    next: Next,
) -> Response {
    let ActiveFault { fault, rate } = active;
    if let Some(rate) = rate {
        let answer = if rate.allowed { Some(next.run(request).await) } else { None };
        return limit_rate(&rate, answer);
    }
    if let (FaultKind::Close, Some(connection)) = (&fault.kind, connection) {
        connection.end_with_reset();
    }
    match (&fault.kind, fault.time) {
        (FaultKind::Close, FaultTime::BeforeHandler) => no_answer(),
        (FaultKind::Slow(pause), FaultTime::BeforeHandler) => {
            tokio::time::sleep(*pause).await;
            next.run(request).await
        }
        (FaultKind::Late(pause), _) => {
            // A task of its own, because hyper drops this future when the client gives up.
            let pause = *pause;
            let late = tokio::spawn(async move {
                tokio::time::sleep(pause).await;
                next.run(request).await
            });
            late.await.unwrap_or_else(|_| no_answer())
        }
        (kind, FaultTime::BeforeHandler) => break_answer(kind, Json(json!({})).into_response()).await,
        (kind, FaultTime::AfterHandler) => break_answer(kind, next.run(request).await).await,
    }
}
