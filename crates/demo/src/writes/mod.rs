//! Writes: tickets, comments, forms and uploads.
//! Invariants: a write is checked, done, counted and remembered under one lock, so two at once with one key are one effect;
//! a write that is refused changes nothing and is not counted.

mod comments;
mod forms;
mod once;
mod tickets;
mod uploads;

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, patch, post};

use crate::state::App;

pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/api/projects/{project}/tickets", post(tickets::create))
        .route("/api/projects/{project}/tickets/{number}", patch(tickets::update).delete(tickets::delete))
        .route("/api/projects/{project}/tickets/{number}/close", post(tickets::close))
        .route("/api/projects/{project}/tickets/{number}/comments", post(comments::create))
        .route("/forms/tickets", post(forms::ticket))
        .route("/uploads", get(uploads::list).post(uploads::create))
        .route("/uploads/{id}", get(uploads::one))
}
