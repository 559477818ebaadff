//! By an opaque cursor: the body's `next_cursor` is sent back as `cursor`; null ends the list.
//! Invariants: a cursor names the last ticket that was given, so what is created or deleted meanwhile neither repeats nor
//! skips another; with `repeat` the page and its cursor are the same for ever.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use serde_json::json;

use super::size;
use crate::digest::{decode, encode};
use crate::error::{Answer, ApiError};
use crate::query::Asked;
use crate::state::Shared;
use crate::world::Ticket;

pub async fn list(State(app): Shared, asked: Asked) -> Answer {
    let params = asked.only(&["cursor", "limit", "repeat"])?;
    let limit = size(params.positive("limit")?);
    let data = app.read();
    let cut = cut(&data.world.tickets, params.text("cursor"), limit)?;
    let next = if params.text("repeat").is_some() { cut.repeated(params.text("cursor")) } else { cut.next };
    Ok(Json(json!({"data": cut.data, "next_cursor": next})).into_response())
}

/// One page of the list.
pub struct Cut<'t> {
    pub data: &'t [Ticket],
    pub next: Option<String>,
}

impl Cut<'_> {
    /// The cursor that never gets anywhere.
    pub fn repeated(&self, sent: Option<&str>) -> Option<String> {
        sent.map(str::to_owned).or_else(|| self.next.clone())
    }
}

pub fn cut<'t>(tickets: &'t [Ticket], cursor: Option<&str>, limit: usize) -> Result<Cut<'t>, ApiError> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let (project, number) = read(cursor).ok_or_else(|| ApiError::BadCursor { cursor: cursor.to_owned() })?;
            tickets.partition_point(|one| (one.project.as_str(), one.number) <= (project.as_str(), number))
        }
    };
    let end = (start + limit).min(tickets.len());
    let data = &tickets[start..end];
    let next = data.last().filter(|_| end < tickets.len()).map(write);
    Ok(Cut { data, next })
}

fn write(last: &Ticket) -> String {
    encode(format!("after:{}/{}", last.project, last.number).as_bytes())
}

fn read(cursor: &str) -> Option<(String, u64)> {
    let text = String::from_utf8(decode(cursor)?).ok()?;
    let (project, number) = text.strip_prefix("after:")?.split_once('/')?;
    Some((project.to_owned(), number.parse().ok()?))
}
