//! The table of routes; each subject's handlers are in its own file.
//! Invariants: a handler reads its whole query before it looks anything up (a bad query is a 400 even where the item is
//! missing); an unknown path or method is answered in JSON too.

mod people;
mod projects;
mod search;
mod tickets;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::routing::get;

use crate::error::ApiError;
use crate::state::App;
use crate::{auth, control, graphql, paging, writes};

/// Every route over `app`, behind the watch that records requests and breaks answers.
pub fn all(app: Arc<App>) -> Router {
    Router::new()
        .merge(reads())
        .merge(writes::routes())
        .merge(paging::routes())
        .merge(auth::routes())
        .merge(graphql::routes())
        .merge(control::routes())
        .method_not_allowed_fallback(wrong_method)
        .fallback(no_route)
        // The watch has read the body whole and has its own limit.
        .layer(DefaultBodyLimit::disable())
        .layer(from_fn_with_state(app.clone(), control::watch))
        .with_state(app)
}

fn reads() -> Router<Arc<App>> {
    Router::new()
        .route("/api/projects", get(projects::list))
        .route("/api/projects/{key}", get(projects::one))
        .route("/api/projects/{project}/tickets", get(tickets::list_in_project))
        .route("/api/projects/{project}/tickets/{number}", get(tickets::one))
        .route("/api/projects/{project}/tickets/{number}/comments", get(tickets::comments))
        .route("/api/people", get(people::list))
        .route("/api/people/{id}", get(people::one))
        .route("/api/people/{id}/tickets", get(people::tickets))
        .route("/api/tickets", get(tickets::list))
        .route("/api/search/tickets", get(search::tickets))
}

async fn no_route(uri: Uri) -> ApiError {
    ApiError::NoRoute { path: uri.path().to_owned() }
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    ApiError::WrongMethod { method, path: uri.path().to_owned() }
}
