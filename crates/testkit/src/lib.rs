//! Support for tests: ports in memory, faults on request, a scripted upstream, a raw HTTP client, golden files, conformance suites.
//!
//! Invariants:
//! - Only tests depend on this crate; no part of it is in the binary.
//! - The ports are deterministic: they use no system clock, no randomness and no network.
//! - A test that would prove nothing fails: an empty golden folder, a script that was not followed, damage to a blob that is not stored.

// why: this is a library of assertions. A failed expectation here is the failure of the test that calls it.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

pub mod conformance;
pub mod faults;
pub mod golden;
pub mod memory;
pub mod paced;
pub mod raw_http;
pub mod scripts;
pub mod tiny;
pub mod upstream;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks a mutex, also after a panic under its lock: the test that panicked has failed, and the others may continue.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
