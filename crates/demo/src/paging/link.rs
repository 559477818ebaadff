//! By the Link header (RFC 8288): the body is the bare array, `rel="next"` says where the rest is.
//! Invariant: the links are absolute and go to the host that was asked, unless `next` sends them elsewhere.

use axum::Json;
use axum::extract::State;
use axum::http::header::LINK;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::IntoResponse;

use super::size;
use super::target::Target;
use crate::error::Answer;
use crate::query::Asked;
use crate::state::Shared;

pub async fn list(State(app): Shared, asked: Asked, headers: HeaderMap) -> Answer {
    let params = asked.only(&["page", "per_page", "next", "repeat"])?;
    let (given, size) = (params.positive("page")?, size(params.positive("per_page")?) as u64);
    let page = given.unwrap_or(1);
    let data = app.read();
    let tickets = &data.world.tickets;
    let total = tickets.len() as u64;
    let start = (page - 1).saturating_mul(size).min(total);
    let end = (start + size).min(total);
    let target = Target::new("/paging/link", &headers, &params)?;
    let link = |page: u64, relation: &str| {
        let url = target.url(&[("page", &page.to_string()), ("per_page", &size.to_string())]);
        format!("<{url}>; rel=\"{relation}\"")
    };
    let last = total.div_ceil(size).max(1);
    let mut links = vec![link(1, "first"), link(last, "last")];
    if page > 1 {
        links.push(link((page - 1).min(last), "prev"));
    }
    if target.repeats {
        links.insert(0, link(given.unwrap_or(2), "next"));
    } else if end < total {
        links.insert(0, link(page + 1, "next"));
    }
    let mut answer = Json(&tickets[start as usize..end as usize]).into_response();
    if let Ok(value) = HeaderValue::from_str(&links.join(", ")) {
        answer.headers_mut().insert(LINK, value);
    }
    Ok(answer)
}
