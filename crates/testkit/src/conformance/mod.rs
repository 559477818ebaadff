//! The conformance suites of the storage ports, which run on every implementation: in memory, in files, in SQLite, in S3.
//! Invariant: a rule of `ports::store` or `ports::blobs` that a caller relies on has its check here, not in one adapter's tests.

mod blobs_suite;
mod store_suite;

pub use blobs_suite::blobs;
pub use store_suite::store;
