//! The demo API that the `tokamak` binary serves on loopback: an issue tracker with projects, people, tickets and comments.
//! The shipped catalog `demo` calls it: lists with page numbers, single items, and writes with idempotency keys.
//! Invariants: the crate uses no disk, environment, clock or network, except the listener of the caller. Every answer is JSON, including
//! errors. Two servers of one build that get the same requests in the same order answer with the same bodies.
//!
//! The public items below `serve` are for `testapi` (crates/testkit/api), which serves the same tracker with more routes and with faults.
//! With these items `testapi` adds routes (`router_with`), reads and changes the data (`Tracker`), and answers like this API.

pub mod calendar;
mod error;
mod etag;
mod fields;
mod guard;
mod idempotency;
mod reads;
mod replays;
mod request;
mod seed;
mod tracker;
mod world;
mod writes;

use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, Uri};
use axum::middleware::from_fn;
use axum::routing::any;
use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub use error::{ApiError, FieldError, HandlerResult, error_response};
pub use fields::Fields;
pub use idempotency::WriteRequest;
pub use replays::{WriteAnswer, WriteCall, sha256};
pub use request::{
    JSON, MAX_BODY, PageWindow, PathSegments, QueryParams, UncheckedQuery, content_type, parse_json, parse_positive,
};
pub use seed::Prng;
pub use tracker::{Tracker, TrackerData};
pub use world::{Choice, Comment, Person, PersonRef, Project, State, Team, Ticket, TicketRef, World};
pub use writes::open_ticket;

/// The number from which `router` generates its data (see `seed`). The tests of the shipped catalog and the documentation quote this data.
pub const SEED: u64 = 20_260_331;

/// The longest time for which running requests delay a stop. Every answer takes far less, and a user waits this long after Ctrl-C.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Serves the demo API until `shutdown` resolves. Then it waits until running requests are answered, for `STOP_GRACE` at most.
pub async fn serve(listener: TcpListener, shutdown: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    let (stop, stopped) = oneshot::channel::<()>();
    let stopping = async move {
        shutdown.await;
        drop(stop);
    };
    // With Nagle's algorithm, a client that delays its acknowledgements would wait for the second part of an answer. If the option
    // cannot be set, the answer is only slower.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let server = axum::serve(listener, router()).with_graceful_shutdown(stopping);
    // Without this limit, axum would wait forever for a client that sent only half of a request.
    let grace_is_over = async move {
        drop(stopped.await);
        tokio::time::sleep(STOP_GRACE).await;
    };
    tokio::select! {
        ended = server.into_future() => ended,
        () = grace_is_over => Ok(()),
    }
}

/// Returns all routes of the demo API on a new tracker with the data of `SEED`. Requests of web pages are refused.
pub fn router() -> Router {
    let former_store = Router::new().route("/graphql", any(async || ApiError::StoreIsGone));
    router_with(Arc::new(Tracker::seeded(SEED)), former_store).layer(from_fn(guard::check))
}

/// Returns the routes of the demo API on `tracker`, together with the routes `more`. A request with an unknown path or method gets a JSON
/// error.
pub fn router_with(tracker: Arc<Tracker>, more: Router) -> Router {
    Router::new()
        .merge(reads::routes())
        .merge(writes::routes())
        .with_state(tracker)
        .merge(more)
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(unknown_route)
        .layer(DefaultBodyLimit::max(MAX_BODY))
}

async fn unknown_route(uri: Uri) -> ApiError {
    ApiError::UnknownRoute { path: uri.path().to_owned() }
}

async fn method_not_allowed(method: Method, uri: Uri) -> ApiError {
    ApiError::MethodNotAllowed { method, path: uri.path().to_owned() }
}
