//! The conformance suites of the storage ports. They run on every implementation: in memory, in files, in SQLite, in S3.
//! Invariant: each rule of `ports::store` and `ports::blobs` has its check here and not in the tests of one adapter.

mod blob_rows_suite;
mod blobs_suite;
mod index_suite;
mod store_suite;

pub use blob_rows_suite::blob_rows;
pub use blobs_suite::blobs;
pub use index_suite::indexes;
pub use store_suite::store;
