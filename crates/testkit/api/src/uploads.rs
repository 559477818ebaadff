//! The routes for uploads: a client sends a file as multipart, and the name, type, size and SHA-256 of the file are stored.
//! Invariant: the bytes of a file are not stored. A test compares the SHA-256 to check which bytes arrived.

use std::sync::{Arc, PoisonError};

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use demo::{ApiError, FieldError, PathSegments, UncheckedQuery, WriteAnswer, WriteRequest, parse_positive, sha256};

use crate::error::{HandlerResult, TestApiError};
use crate::form::{Part, parse_multipart};
use crate::state::{ApiState, TestApi, Upload};

pub fn routes() -> Router<Arc<TestApi>> {
    Router::new().route("/uploads", get(list).post(create)).route("/uploads/{id}", get(get_one))
}

async fn list(State(api): ApiState, query: UncheckedQuery) -> HandlerResult {
    let (_, window) = query.list(&[])?;
    Ok(window.answer(api.uploads.lock().unwrap_or_else(PoisonError::into_inner).iter()))
}

async fn get_one(State(api): ApiState, PathSegments(id): PathSegments<String>, query: UncheckedQuery) -> HandlerResult {
    query.none()?;
    let id = parse_positive("id", &id)?;
    let uploads = api.uploads.lock().unwrap_or_else(PoisonError::into_inner);
    let upload = uploads.iter().find(|upload| upload.id == id).ok_or(TestApiError::NoUpload { id })?;
    Ok(Json(upload).into_response())
}

async fn create(State(api): ApiState, query: UncheckedQuery, request: WriteRequest) -> HandlerResult {
    query.none()?;
    let upload = read_upload(parse_multipart(&request.headers, &request.body)?)?;
    let answer = request.apply_once(&api.tracker, |_| {
        let mut uploads = api.uploads.lock().unwrap_or_else(PoisonError::into_inner);
        let upload = Upload { id: uploads.len() as u64 + 1, ..upload };
        let answer = WriteAnswer::json(StatusCode::CREATED, &upload).with_location(&format!("/uploads/{}", upload.id));
        uploads.push(upload);
        Ok(answer)
    })?;
    Ok(answer)
}

/// Reads an upload from the parts of a multipart body. The caller sets the id of the upload.
fn read_upload(parts: Vec<Part>) -> Result<Upload, ApiError> {
    let mut file = None;
    let mut note = None;
    let mut mistakes = Vec::new();
    let mut refuse = |field: &str, message: &str| {
        mistakes.push(FieldError { field: field.to_owned(), message: message.to_owned() });
    };
    for part in parts {
        match part.name.as_str() {
            "file" if part.file_name.is_none() => refuse("file", "must have a filename"),
            "file" if file.is_some() => refuse("file", "must come once"),
            "file" => file = Some(part),
            "note" => note = Some(String::from_utf8_lossy(&part.body).into_owned()),
            other => refuse(other, "is not a field of this"),
        }
    }
    if file.is_none() && mistakes.is_empty() {
        mistakes.push(FieldError { field: "file".to_owned(), message: "is required".to_owned() });
    }
    match file {
        Some(file) if mistakes.is_empty() => Ok(Upload {
            id: 0,
            name: file.file_name.unwrap_or_default(),
            content_type: file.content_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            size: file.body.len(),
            sha256: sha256(&file.body),
            note,
        }),
        _ => Err(ApiError::Invalid { fields: mistakes }),
    }
}
