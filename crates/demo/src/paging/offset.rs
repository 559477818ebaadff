//! By offset: `offset` and `limit`, with the total in the body.
//! Invariant: an offset past the end is an empty page, not an error.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde_json::json;

use super::size;
use crate::error::{Answer, ApiError};
use crate::query::Asked;
use crate::state::Shared;

pub async fn list(State(app): Shared, asked: Asked) -> Answer {
    let params = asked.only(&["offset", "limit"])?;
    let limit = size(params.positive("limit")?);
    let offset = match params.text("offset") {
        Some("0") | None => 0,
        Some(_) => params.positive("offset")?.unwrap_or(0),
    };
    let tickets = &app.read().world.tickets;
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(tickets.len());
    let end = (start + limit).min(tickets.len());
    let body = json!({"data": tickets[start..end], "offset": offset, "limit": limit, "total": tickets.len()});
    Ok::<_, ApiError>(Json(body).into_response())
}
