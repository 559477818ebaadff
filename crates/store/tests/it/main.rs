//! The adapter of storage on real files and in S3: what the ports promise, damage, and processes that are killed.
//! One binary for all of them: each more is linked and stored once more, tens of megabytes at a time.

// why: a failed expectation is the test's own failure, in what tests share too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod blobs;
mod damage;
mod kill;
mod s3;
mod secrets;
mod sqlite;
