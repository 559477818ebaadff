//! The demo API that the `tokamak` binary serves on loopback: an issue tracker with projects, people, tickets and comments.
//! Invariants: no clock, disk, environment or network beyond the listener that is passed in; every answer is JSON, errors
//! included; two servers of one build answer every request with the same bytes.

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

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;

pub use world::{Choice, Comment, Person, PersonRef, Project, State, Team, Ticket, TicketRef, World};

/// The seed of the world that `router` serves. Shipped catalogs, their cases and the documentation quote its data.
pub const SEED: u64 = 20_260_331;

/// Serves the demo API until `shutdown` resolves, then finishes the requests under way and returns.
pub async fn serve(listener: TcpListener, shutdown: impl Future<Output = ()> + Send + 'static) -> std::io::Result<()> {
    axum::serve(listener, router()).with_graceful_shutdown(shutdown).await
}

/// All routes over a world of their own, seeded with `SEED`.
pub fn router() -> Router {
    routes::all().with_state(Arc::new(World::seeded(SEED)))
}
