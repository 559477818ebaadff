//! The demo API that the `tokamak` binary serves on loopback: an issue tracker with projects, people, tickets and comments.
//! Invariants: no disk, environment or network beyond the listener that is passed in, and no clock in any answer; every
//! answer is JSON, errors included; two servers of one build answer every request with the same body.

mod date;
mod error;
mod page;
mod path;
mod prng;
mod query;
mod routes;
mod seed;
mod text;
mod words;
mod world;

use std::future::{Future, IntoFuture};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

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
    let server = axum::serve(listener, router()).with_graceful_shutdown(stopping);
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

/// All routes over a world of their own, seeded with `SEED`.
pub fn router() -> Router {
    routes::all().with_state(Arc::new(World::seeded(SEED)))
}
