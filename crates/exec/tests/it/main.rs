//! Tests that run plans and whole programs, on a scripted upstream and on the demo API over loopback.
//! All are modules of one binary, because each further binary would be linked and stored with tens of megabytes.

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
