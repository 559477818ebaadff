//! One list of tickets, paged in every way that APIs page.
//! Invariants: each form, walked from its first page to its last, gives every ticket once and in the same order; 20 items
//! unless asked, 100 at most; only `repeat` and `next` make a form misbehave, and only for who asks.

mod body;
mod cursor;
mod link;
mod next_url;
mod offset;
mod page;
mod target;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::state::App;

const DEFAULT_SIZE: u64 = 20;
const MAX_SIZE: u64 = 100;

pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/paging/page", get(page::list))
        .route("/paging/offset", get(offset::list))
        .route("/paging/cursor", get(cursor::list))
        .route("/paging/link", get(link::list))
        .route("/paging/next-url", get(next_url::list))
        .route("/paging/body", post(body::list))
}

fn size(asked: Option<u64>) -> usize {
    asked.unwrap_or(DEFAULT_SIZE).clamp(1, MAX_SIZE) as usize
}
