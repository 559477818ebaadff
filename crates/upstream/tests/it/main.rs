//! The adapter against real sockets on loopback.
//! Invariant: every server here is a few lines of TCP, so that it can lie, stall and break off at any byte.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod auth;
mod cache;
mod calls;
mod hostile;
mod limits;
mod origin;
mod pace;
mod private;
mod retries;
mod server;
mod world;
