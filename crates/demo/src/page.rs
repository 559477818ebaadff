//! Cuts one page out of a list: `{"data", "page", "per_page", "total"}`.
//! Invariant: walking the pages from 1 until `page * per_page >= total` gives every item once; a page past the end is empty,
//! not an error.

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

const DEFAULT_PER_PAGE: u64 = 20;
const MAX_PER_PAGE: u64 = 100;

/// The part of a list that a request asks for.
pub struct Window {
    page: u64,
    per_page: u64,
}

#[derive(Serialize)]
struct Page<'a, T> {
    data: &'a [&'a T],
    page: u64,
    per_page: u64,
    total: usize,
}

impl Window {
    /// From what the query said, if anything; both count from 1.
    pub fn new(page: Option<u64>, per_page: Option<u64>) -> Window {
        Window { page: page.unwrap_or(1), per_page: per_page.unwrap_or(DEFAULT_PER_PAGE).min(MAX_PER_PAGE) }
    }

    /// Answers with this part of `all`, which is in its stable order.
    pub fn answer<'a, T: Serialize + 'a>(&self, all: impl Iterator<Item = &'a T>) -> Response {
        let all: Vec<&T> = all.collect();
        // Saturating: `page` may be any integer, and every start past the end means the same.
        let start = (self.page - 1).saturating_mul(self.per_page).min(all.len() as u64);
        let end = (start + self.per_page).min(all.len() as u64);
        let data = &all[start as usize..end as usize];
        Json(Page { data, page: self.page, per_page: self.per_page, total: all.len() }).into_response()
    }
}
