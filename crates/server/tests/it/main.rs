//! Tests of the server: its texts as golden files, and the end of its calls.
//! One binary for all of them: each more is linked and stored once more, tens of megabytes at a time.

// why: a failed expectation is the test's own failure, in what tests share too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod golden_context;
mod golden_openapi;
mod golden_run;
mod golden_wire;
mod open_calls;
mod pages;
