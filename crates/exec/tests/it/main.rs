//! Plans and whole programs at work: on a scripted upstream, and on the demo API over loopback.
//! One binary for all of them: each more is linked and stored once more, tens of megabytes at a time.

// why: a failed expectation is the test's own failure, in what tests share too.
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
