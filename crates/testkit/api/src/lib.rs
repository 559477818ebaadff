//! The test API: the demo's tracker with everything that a hostile or unusual API does around it. It has faults on request, every
//! form of paging and of credentials, forms and uploads, a store over GraphQL, and routes by which a test sees and sets its state.
//! It is a package apart from `testkit`, so that a crate that only needs ports in memory does not build axum and async-graphql.
//! Invariants: a request without a fault is answered as the demo answers it; no clock is in any answer but those of a rate limit;
//! every answer is JSON, errors included, except the GraphQL schema's text and the bodies that a fault breaks.

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

/// Serves the test API with a state of its own, seeded like the demo, for as long as the future is polled.
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
