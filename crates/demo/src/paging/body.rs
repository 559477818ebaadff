//! By a cursor in a JSON body: POST `{"cursor", "limit"}`, answered with `next_cursor` and `has_more`.
//! Invariant: the POST reads; it is no effect.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde::Deserialize;
use serde_json::json;

use super::cursor::cut;
use super::size;
use crate::body::JsonBody;
use crate::error::{Answer, ApiError};
use crate::query::Asked;
use crate::state::Shared;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    cursor: Option<String>,
    limit: Option<u64>,
}

pub async fn list(State(app): Shared, asked: Asked, JsonBody(wanted): JsonBody<Wanted>) -> Answer {
    let params = asked.only(&["repeat"])?;
    if wanted.limit == Some(0) {
        return Err(ApiError::NotInRange { name: "limit", value: "0".to_owned(), range: "a positive integer" });
    }
    let data = app.read();
    let cut = cut(&data.world.tickets, wanted.cursor.as_deref(), size(wanted.limit))?;
    let next = if params.text("repeat").is_some() { cut.repeated(wanted.cursor.as_deref()) } else { cut.next };
    Ok(Json(json!({"data": cut.data, "has_more": next.is_some(), "next_cursor": next})).into_response())
}
