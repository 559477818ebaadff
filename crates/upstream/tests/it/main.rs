//! Tests of the HTTP adapter against real sockets on loopback.
//! Invariant: the test server is a few lines of TCP, so that it can send wrong bytes, stall, and break off at any byte.

// why: a failed expectation is the test's own failure, in the shared modules too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod auth;
mod cache;
mod calls;
mod fixture;
mod hostile;
mod limits;
mod origin;
mod pace;
mod private;
mod retries;
mod server;
