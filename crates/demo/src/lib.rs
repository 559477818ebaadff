//! The demo API that the `tokamak` binary serves on loopback: an issue tracker with projects, people, tickets and comments,
//! a store over GraphQL, and every kind of paging, credential and fault that a client must cope with.
//! Invariants: no disk, environment or network beyond the listener that is passed in; no clock in any answer but those of a
//! rate limit; every answer is JSON, errors included, except the GraphQL schema's text and what a fault was asked to break;
//! two servers of one build that were asked the same in the same order answer with the same bodies.

mod auth;
mod body;
mod control;
mod date;
mod digest;
mod error;
mod etag;
mod faults;
mod find;
mod graphql;
mod line;
mod page;
mod paging;
mod path;
mod prng;
mod query;
mod routes;
mod seed;
mod state;
mod store;
mod text;
mod words;
mod world;
mod writes;

use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use line::{Line, Lines};
use state::App;

pub use world::{Choice, Comment, Person, PersonRef, Project, State, Team, Ticket, TicketRef, World};

/// The seed of the world that `router` serves. Shipped catalogs, their cases and the documentation quote its data.
pub const SEED: u64 = 20_260_331;

/// How long a request under way may keep a stopped server: far longer than any answer takes, short enough for Ctrl-C.
const DRAIN: Duration = Duration::from_secs(2);

/// Serves the demo API until `shutdown` resolves, then finishes the requests under way (for `DRAIN` at most) and returns.
pub async fn serve(listener: TcpListener, shutdown: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    let (stop, stopped) = oneshot::channel::<()>();
    let stopping = async move {
        shutdown.await;
        drop(stop);
    };
    let service = router().into_make_service_with_connect_info::<Line>();
    let server = axum::serve(Lines(listener), service).with_graceful_shutdown(stopping);
    // The framework alone would wait forever for a client that sent half a request and went quiet.
    let drained = async move {
        drop(stopped.await);
        tokio::time::sleep(DRAIN).await;
    };
    tokio::select! {
        ended = server.into_future() => ended,
        () = drained => Ok(()),
    }
}

/// All routes over a state of their own, seeded with `SEED`.
pub fn router() -> Router {
    routes::all(Arc::new(App::seeded(SEED)))
}
