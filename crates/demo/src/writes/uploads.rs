//! Uploads: a file in multipart, of which its name, type, size and SHA-256 are kept.
//! Invariant: the bytes themselves are not kept; their digest proves what arrived.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use super::once::{Done, Write};
use crate::body::{Part, parts};
use crate::digest::sha256;
use crate::error::{Answer, ApiError, FieldError};
use crate::path::Segments;
use crate::query::{Asked, positive};
use crate::state::{Shared, Upload};

pub async fn list(State(app): Shared, asked: Asked) -> Answer {
    let (_, window) = asked.list(&[])?;
    Ok(window.answer(app.read().uploads.iter()))
}

pub async fn one(State(app): Shared, Segments(id): Segments<String>, asked: Asked) -> Answer {
    asked.none()?;
    let id = positive("id", &id)?;
    let data = app.read();
    let found = data.uploads.iter().find(|upload| upload.id == id).ok_or(ApiError::NoUpload { id })?;
    Ok(Json(found).into_response())
}

pub async fn create(State(app): Shared, asked: Asked, write: Write) -> Answer {
    asked.none()?;
    let upload = read(parts(&write.headers, &write.body)?)?;
    write.once(&app, |data| {
        let upload = Upload { id: data.uploads.len() as u64 + 1, ..upload };
        let done = Done::new(StatusCode::CREATED, &upload).at(&format!("/uploads/{}", upload.id));
        data.uploads.push(upload);
        Ok(done)
    })
}

fn read(parts: Vec<Part>) -> Result<Upload, ApiError> {
    let (mut file, mut note, mut fields) = (None, None, Vec::new());
    let mut refuse = |field: &str, message: &str| {
        fields.push(FieldError { field: field.to_owned(), message: message.to_owned() });
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
    match file {
        Some(file) if fields.is_empty() => Ok(Upload {
            id: 0,
            name: file.file_name.unwrap_or_default(),
            content_type: file.content_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            size: file.body.len(),
            sha256: sha256(&file.body),
            note,
        }),
        None if fields.is_empty() => {
            let missing = FieldError { field: "file".to_owned(), message: "is required".to_owned() };
            Err(ApiError::Invalid { fields: vec![missing] })
        }
        _ => Err(ApiError::Invalid { fields }),
    }
}
