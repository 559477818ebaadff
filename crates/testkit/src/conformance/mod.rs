//! What every implementation of a storage port must do, run the same on memory, files, SQLite and whatever comes.
//! Invariant: a rule of `ports::store` or `ports::blobs` that a caller relies on has its check here, not in one adapter's tests.

mod blobs_suite;
mod store_suite;

pub use blobs_suite::blobs;
pub use store_suite::store;
