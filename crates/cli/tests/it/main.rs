//! Tests of the binary `tokamak`: each test runs it with arguments, and checks the output and the exit code.
//! Invariant: the tests use only the loopback network, and leave no file and no process behind.
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
