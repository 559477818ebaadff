//! The list of tickets in six forms of paging: by page number, by offset, by a cursor in the query, by a cursor in the body, by a Link
//! header, and by the whole URL of the next page.
//! Invariants: in each form, all pages together have every ticket once and in the same order. A page has 20 items by default and 100 at
//! most. Paging misleads the client only on request: `repeat` returns the same position forever, and `next` sets another origin.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{HOST, LINK};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use demo::{ApiError, QueryParams, Ticket, UncheckedQuery, parse_json};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::json;

use crate::error::{HandlerResult, TestApiError};
use crate::state::{ApiState, TestApi};

pub const DEFAULT_PAGE_SIZE: u64 = 20;
pub const MAX_PAGE_SIZE: u64 = 100;

/// An origin whose host name never resolves, because RFC 2606 reserves it. A request that follows such a link fails and reaches no host.
const FOREIGN_ORIGIN: &str = "http://foreign.invalid";

pub fn routes() -> Router<Arc<TestApi>> {
    Router::new()
        .route("/paging/page", get(by_page))
        .route("/paging/offset", get(by_offset))
        .route("/paging/cursor", get(by_cursor))
        .route("/paging/body", post(by_body))
        .route("/paging/link", get(by_link))
        .route("/paging/next-url", get(by_next_url))
}

/// Pages by `page` and `per_page`, as the lists under `/api` do.
async fn by_page(State(api): ApiState, query: UncheckedQuery) -> HandlerResult {
    let (_, window) = query.list(&[])?;
    Ok(window.answer(api.tracker.read().world.tickets.iter()))
}

/// Pages by `offset` and `limit`, with the total in the body. For an offset past the end the page is empty.
async fn by_offset(State(api): ApiState, query: UncheckedQuery) -> HandlerResult {
    let params = query.only(&["offset", "limit"])?;
    let limit = page_size(params.positive("limit")?);
    let offset = match params.text("offset") {
        Some("0") | None => 0,
        Some(_) => params.positive("offset")?.unwrap_or(0),
    };
    let tickets = &api.tracker.read().world.tickets;
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(tickets.len());
    let end = (start + limit).min(tickets.len());
    let body = json!({"data": tickets[start..end], "offset": offset, "limit": limit, "total": tickets.len()});
    Ok(Json(body).into_response())
}

/// Pages by an opaque cursor: the client sends `next_cursor` of the body as the parameter `cursor`. The last page has null there.
async fn by_cursor(State(api): ApiState, query: UncheckedQuery) -> HandlerResult {
    let params = query.only(&["cursor", "limit", "repeat"])?;
    let limit = page_size(params.positive("limit")?);
    let data = api.tracker.read();
    let page = page_after(&data.world.tickets, params.text("cursor"), limit)?;
    let next = page.next_cursor(params.text("cursor"), params.text("repeat").is_some());
    Ok(Json(json!({"data": page.tickets, "next_cursor": next})).into_response())
}

/// The body of a request to `/paging/body`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CursorBody {
    cursor: Option<String>,
    limit: Option<u64>,
}

/// Pages by a cursor in the JSON body of a POST. The answer has `next_cursor` and `has_more`. This POST only reads and has no effect.
async fn by_body(State(api): ApiState, query: UncheckedQuery, headers: HeaderMap, body: Bytes) -> HandlerResult {
    let position: CursorBody = parse_json(&headers, &body)?;
    let params = query.only(&["repeat"])?;
    if position.limit == Some(0) {
        let range = "a positive integer";
        return Err(ApiError::NotInRange { name: "limit", value: "0".to_owned(), range }.into());
    }
    let data = api.tracker.read();
    let page = page_after(&data.world.tickets, position.cursor.as_deref(), page_size(position.limit))?;
    let next = page.next_cursor(position.cursor.as_deref(), params.text("repeat").is_some());
    Ok(Json(json!({"data": page.tickets, "has_more": next.is_some(), "next_cursor": next})).into_response())
}

/// Pages by the Link header (RFC 8288): the body is only the array of items, and `rel="next"` has the URL of the next page.
async fn by_link(State(api): ApiState, query: UncheckedQuery, headers: HeaderMap) -> HandlerResult {
    let params = query.only(&["page", "per_page", "next", "repeat"])?;
    let given_page = params.positive("page")?;
    let page = given_page.unwrap_or(1);
    let size = page_size(params.positive("per_page")?) as u64;
    let data = api.tracker.read();
    let tickets = &data.world.tickets;
    let total = tickets.len() as u64;
    let start = (page - 1).saturating_mul(size).min(total);
    let end = (start + size).min(total);
    let target = LinkTarget::new("/paging/link", &headers, &params)?;
    let link = |page: u64, relation: &str| {
        let url = target.url(&[("page", &page.to_string()), ("per_page", &size.to_string())]);
        format!("<{url}>; rel=\"{relation}\"")
    };
    let last = total.div_ceil(size).max(1);
    let mut links = Vec::new();
    if target.repeats {
        links.push(link(given_page.unwrap_or(2), "next"));
    } else if end < total {
        links.push(link(page + 1, "next"));
    }
    links.extend([link(1, "first"), link(last, "last")]);
    if page > 1 {
        links.push(link((page - 1).min(last), "prev"));
    }
    let mut answer = Json(&tickets[start as usize..end as usize]).into_response();
    if let Ok(value) = HeaderValue::from_str(&links.join(", ")) {
        answer.headers_mut().insert(LINK, value);
    }
    Ok(answer)
}

/// Pages by the field `next` of the body, which has the whole URL of the next page and is null on the last page.
async fn by_next_url(State(api): ApiState, query: UncheckedQuery, headers: HeaderMap) -> HandlerResult {
    let params = query.only(&["after", "limit", "next", "repeat"])?;
    let limit = page_size(params.positive("limit")?);
    let target = LinkTarget::new("/paging/next-url", &headers, &params)?;
    let data = api.tracker.read();
    let page = page_after(&data.world.tickets, params.text("after"), limit)?;
    let next = page.next_cursor(params.text("after"), target.repeats);
    let next = next.map(|cursor| target.url(&[("after", &cursor), ("limit", &limit.to_string())]));
    Ok(Json(json!({"data": page.tickets, "next": next})).into_response())
}

fn page_size(requested: Option<u64>) -> usize {
    requested.unwrap_or(DEFAULT_PAGE_SIZE).clamp(1, MAX_PAGE_SIZE) as usize
}

/// A page of the list in a form with cursors.
struct CursorPage<'t> {
    tickets: &'t [Ticket],
    /// The cursor of the next page, if there is one.
    next: Option<String>,
}

impl CursorPage<'_> {
    /// Returns the cursor for the answer. If the list repeats, the answer has the cursor that the client sent, so the client never advances.
    fn next_cursor(&self, sent: Option<&str>, repeats: bool) -> Option<String> {
        match sent {
            Some(sent) if repeats => Some(sent.to_owned()),
            _ => self.next.clone(),
        }
    }
}

fn page_after<'t>(tickets: &'t [Ticket], cursor: Option<&str>, limit: usize) -> Result<CursorPage<'t>, TestApiError> {
    let start = match cursor {
        None => 0,
        Some(cursor) => {
            let (project, number) =
                parse_ticket_cursor(cursor).ok_or_else(|| TestApiError::BadCursor { cursor: cursor.to_owned() })?;
            // A cursor names the last ticket of the page before instead of an offset. If a ticket is created or deleted between two
            // pages, no other ticket is repeated or skipped.
            tickets.partition_point(|ticket| (ticket.project.as_str(), ticket.number) <= (project.as_str(), number))
        }
    };
    let end = (start + limit).min(tickets.len());
    let page = &tickets[start..end];
    let last = page.last().filter(|_| end < tickets.len());
    Ok(CursorPage { tickets: page, next: last.map(|ticket| encode_cursor("after", &ticket_key(ticket))) })
}

fn ticket_key(ticket: &Ticket) -> String {
    format!("{}/{}", ticket.project, ticket.number)
}

fn parse_ticket_cursor(cursor: &str) -> Option<(String, u64)> {
    let key = decode_cursor("after", cursor)?;
    let (project, number) = key.split_once('/')?;
    Some((project.to_owned(), number.parse().ok()?))
}

/// Encodes the key of an item as an opaque cursor. `kind` names the list, so that no other list accepts the cursor.
pub fn encode_cursor(kind: &str, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{kind}:{key}"))
}

/// Decodes the key in a cursor. Returns `None` if the cursor is not of this kind of list.
pub fn decode_cursor(kind: &str, cursor: &str) -> Option<String> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(cursor).ok()?).ok()?;
    Some(text.strip_prefix(kind)?.strip_prefix(':')?.to_owned())
}

/// The route and the origin of a link to the next page. The origin is the host of the request, unless the query names another one.
struct LinkTarget {
    origin: String,
    path: &'static str,
    /// The parameters that make a link misleading. Each link contains them, so that the next page has a misleading link too.
    kept_params: Vec<(&'static str, String)>,
    repeats: bool,
}

impl LinkTarget {
    fn new(path: &'static str, headers: &HeaderMap, params: &QueryParams) -> Result<LinkTarget, TestApiError> {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
        let origin = match params.text("next") {
            None => format!("http://{host}"),
            Some("foreign") => FOREIGN_ORIGIN.to_owned(),
            // The origin may be that of a test, which checks whether a client connects to it.
            Some(origin) if origin.starts_with("http://") || origin.starts_with("https://") => origin.to_owned(),
            Some(other) => {
                let range = "`foreign` or an origin";
                return Err(ApiError::NotInRange { name: "next", value: other.to_owned(), range }.into());
            }
        };
        let kept = ["next", "repeat"].into_iter();
        let kept_params = kept.filter_map(|name| params.text(name).map(|value| (name, value.to_owned()))).collect();
        Ok(LinkTarget { origin, path, kept_params, repeats: params.text("repeat").is_some() })
    }

    fn url(&self, query: &[(&str, &str)]) -> String {
        let kept = self.kept_params.iter().map(|(name, value)| (*name, value.as_str()));
        let pairs = query.iter().copied().chain(kept);
        let encoded = pairs.map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, NON_ALPHANUMERIC)));
        format!("{}{}?{}", self.origin, self.path, encoded.collect::<Vec<_>>().join("&"))
    }
}
