//! Where rows, blobs and secrets are kept: the embedded default, one data folder with SQLite, blob files and one
//! encrypted file of secrets.
//!
//! Invariants:
//! - What was answered with `Ok` survives kill -9 and a power cut; what was answered with an error may have happened only
//!   where the error is `Unavailable`.
//! - Several processes may share one data folder; none needs repair after another was killed.
//! - A fault (full, locked, read-only, gone) is an error of the call; when the fault is gone, the same handle goes on.
//! - Rows and blobs pass `testkit::conformance`.

pub mod blobs;
mod folder;
mod open_error;
pub mod secrets;
pub mod sqlite;

pub use open_error::OpenError;
