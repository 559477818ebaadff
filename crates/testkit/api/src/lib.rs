//! The test API: the tracker of the demo API with the behaviour of hostile and unusual APIs. It has faults on request, every form of
//! paging and of credentials, forms and uploads, a store over GraphQL, and routes by which a test reads and sets its state.
//! This package is separate from `testkit`, so that a crate that needs only ports in memory does not build axum and async-graphql.
//! Invariants: a request without a fault is answered as by the demo API. Only the answers of a rate limit depend on a clock. Every
//! answer is JSON, including errors, except the text of the GraphQL schema and the bodies that a fault breaks.

mod auth;
mod connection;
mod control;
mod effects;
mod error;
mod faults;
mod form;
mod graphql;
mod interceptor;
mod oauth;
mod paging;
mod requests;
mod state;
mod store;
mod tokens;
mod uploads;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use tokio::net::TcpListener;

use connection::{ConnectionHandle, ResettableListener};
use state::TestApi;

/// Serves the test API with new state that has the seeded data of the demo API. The server ends when the future is dropped.
pub async fn serve(listener: TcpListener) -> std::io::Result<()> {
    let service = router().into_make_service_with_connect_info::<ConnectionHandle>();
    axum::serve(ResettableListener(listener), service).await
}

/// Returns every route behind the interceptor, which records requests and applies faults.
fn router() -> Router {
    let api = Arc::new(TestApi::seeded(demo::SEED));
    let more = Router::new()
        .merge(paging::routes())
        .merge(auth::routes())
        .merge(oauth::routes())
        .merge(form::routes())
        .merge(uploads::routes())
        .merge(graphql::routes())
        .merge(control::routes())
        .with_state(api.clone());
    demo::router_with(api.tracker.clone(), more).layer(from_fn_with_state(api, interceptor::intercept))
}
