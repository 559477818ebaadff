//! Specifications to drafts: the golden ones, hostile ones, ones that grew, and real ones against catalogs written by hand.
//! One binary for all of them: each more is linked and stored once more, tens of megabytes at a time.

// why: a failed expectation is the test's own failure, in what tests share too.
#![allow(clippy::unwrap_used, clippy::panic)]

mod golden;
mod hostile;
mod reports;
mod semantics;
mod update;
