//! By the next page's whole URL in the body: `next`, null at the end.
//! Invariant: the URL is absolute and goes to the host that was asked, unless `next` sends it elsewhere.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use serde_json::json;

use super::cursor::cut;
use super::size;
use super::target::Target;
use crate::error::Answer;
use crate::query::Asked;
use crate::state::Shared;

pub async fn list(State(app): Shared, asked: Asked, headers: HeaderMap) -> Answer {
    let params = asked.only(&["after", "limit", "next", "repeat"])?;
    let limit = size(params.positive("limit")?);
    let target = Target::new("/paging/next-url", &headers, &params)?;
    let data = app.read();
    let cut = cut(&data.world.tickets, params.text("after"), limit)?;
    let next = if target.repeats { cut.repeated(params.text("after")) } else { cut.next };
    let next = next.map(|cursor| target.url(&[("after", &cursor), ("limit", &limit.to_string())]));
    Ok(Json(json!({"data": cut.data, "next": next})).into_response())
}
