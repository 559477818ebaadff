//! Storage of rows (SQLite), blobs (files or S3) and secrets (an encrypted file) in one data folder.
//!
//! Invariants:
//! - A write that returned `Ok` survives kill -9 and a power cut. If a write returned `Unavailable` or `Remote`, it may
//!   still have happened. If it returned another error, it has not happened.
//! - Several processes may share one data folder. After one of them was killed, the other processes go on without a
//!   repair.
//! - A fault of the disk (full, locked, read-only, missing) is an error of the call. When the fault is gone, calls on
//!   the same store succeed again.
//! - Every folder and file is readable by this user only, whatever the umask is.
//! - Each implementation of a store of rows or blobs passes the tests of `testkit::conformance`.

pub mod blobs;
pub mod folder;
pub mod network;
mod open_error;
pub mod secrets;
pub mod sqlite;

pub use open_error::OpenError;
