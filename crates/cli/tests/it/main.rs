//! Tests of the binary: they run it with arguments and check its output and exit code.
//! Invariant: only the loopback network is used, and no file or process is left behind.
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
