//! The demo API that the `tokamak` binary serves on loopback: an issue tracker with projects, people, tickets and comments.
//! It serves what the shipped catalog `demo` calls: page-numbered lists, single items, and writes with idempotency keys.
//! Invariants: it uses no disk, environment, clock or network beyond the listener that is passed in; every answer is JSON, errors
//! included; two servers of one build that get the same requests in the same order answer with the same bodies.
//!
//! The public items below `serve` are for `testapi` (crates/testkit/api), which serves the same tracker with more routes and with
//! faults. They let it add routes (`router_with`), read and change the same data (`Tracker`), and answer like this API.

pub mod calendar;
mod error;
mod etag;
mod fields;
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

/// The seed of the world that `router` serves. The shipped catalog, its cases and the documentation quote data of this world.
pub const SEED: u64 = 20_260_331;

/// How long a request under way may delay a stop. It is far longer than any answer takes, and short enough for Ctrl-C.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// Serves the demo API until `shutdown` resolves, then finishes the requests under way (for `STOP_GRACE` at most) and returns.
pub async fn serve(listener: TcpListener, shutdown: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    let (stop, stopped) = oneshot::channel::<()>();
    let stopping = async move {
        shutdown.await;
        drop(stop);
    };
    // With Nagle's algorithm, a client that delays its acknowledgements would wait for the second part of an answer. A socket
    // that refuses the option still works.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let server = axum::serve(listener, router()).with_graceful_shutdown(stopping);
    // axum alone would wait forever for a client that sent half a request and went silent.
    let grace_is_over = async move {
        drop(stopped.await);
        tokio::time::sleep(STOP_GRACE).await;
    };
    tokio::select! {
        ended = server.into_future() => ended,
        () = grace_is_over => Ok(()),
    }
}

/// Returns all routes over a tracker of their own, seeded with `SEED`.
pub fn router() -> Router {
    let former_store = Router::new().route("/graphql", any(async || ApiError::StoreIsGone));
    router_with(Arc::new(Tracker::seeded(SEED)), former_store)
}

/// Returns the routes of `tracker` together with `more`. An unknown path or method is answered in JSON for all of them.
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
