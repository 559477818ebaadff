//! Storage of rows (SQLite), blobs (files or S3) and secrets (an encrypted file) in one data folder.
//!
//! Invariants:
//! - A write that returned `Ok` survives kill -9 and a power cut. A write that returned an error may have happened only if
//!   the error is `Unavailable` or `Remote`.
//! - Several processes may share one data folder. None needs a repair after another was killed.
//! - A fault (full, locked, read-only, missing) is an error of the call. When the fault is gone, the same handle works again.
//! - Rows and blobs pass `testkit::conformance`.

pub mod blobs;
mod folder;
mod open_error;
pub mod secrets;
pub mod sqlite;

pub use open_error::OpenError;
