//! Cuts one page out of a list: `{"data", "page", "per_page", "total"}`.
//! Invariant: walking the pages from 1 until `page * per_page >= total` gives every item once; a page past the end is empty,
//! not an error.

use axum::Json;
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::error::ApiError;
use crate::query::Params;

pub const PARAMETERS: [&str; 2] = ["page", "per_page"];

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
    pub fn read(params: &Params) -> Result<Window, ApiError> {
        let page = params.positive("page")?.unwrap_or(1);
        let per_page = params
            .positive("per_page")?
            .unwrap_or(DEFAULT_PER_PAGE)
            .min(MAX_PER_PAGE);
        Ok(Window { page, per_page })
    }

    /// Answers with this part of `all`, which is in its stable order.
    pub fn answer<'a, T: Serialize + 'a>(&self, all: impl Iterator<Item = &'a T>) -> Response {
        let all: Vec<&T> = all.collect();
        // Saturating: `page` may be any integer, and every start past the end means the same.
        let start = (self.page - 1).saturating_mul(self.per_page).min(all.len() as u64);
        let end = (start + self.per_page).min(all.len() as u64);
        let data = &all[start as usize..end as usize];
        Json(Page {
            data,
            page: self.page,
            per_page: self.per_page,
            total: all.len(),
        })
        .into_response()
    }
}
