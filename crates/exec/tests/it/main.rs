//! Tests that run plans and whole programs, on a scripted upstream and on the demo API over loopback.
//! All tests are modules of one binary, because each binary is linked and stored separately.

// A panic in a shared test function fails the test that calls it, so these lints are allowed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod effects;
mod order;
mod paging;
mod pipelines;
mod programs;
mod reads;
mod runs;
mod schedule;
mod support;
