//! The binary as its users meet it: arguments in, text and an exit code out.
//! Invariant: nothing but the loopback is reached, and nothing is left behind.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod check;
mod discover;
mod explain;
mod heaps;
mod import;
mod live;
mod program;
mod schema;
mod secrets;
mod show;
