//! Tests of the storage adapters on real files and against an S3 server: conformance, faults, damage and killed processes.
//! All tests are in one binary, because each binary is linked and stored separately, with tens of megabytes.

// why: a failed expectation is the test's own failure, in the shared modules too.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod blobs;
mod damage;
mod indexes;
mod kill;
mod migration;
mod s3;
mod secrets;
mod sqlite;
