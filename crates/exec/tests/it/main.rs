//! Runs plans and whole programs, on a scripted upstream and on the demo API over loopback.
//! One binary for all of them, since every test binary costs tens of megabytes and a link.

// why: a failed expectation is the test's own failure, also in shared helpers.
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
