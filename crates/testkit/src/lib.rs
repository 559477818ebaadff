//! Support for tests: ports in memory, faults on request, a scripted upstream, a raw HTTP client, golden files, conformance suites.
//!
//! Invariants:
//! - Only tests depend on this crate; the binary contains no part of it.
//! - The ports are deterministic: they use no system clock, no randomness and no network.
//! - A test that checks nothing fails, such as a golden folder without cases, an unused rule of a script, or damage to a missing blob.

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

/// Locks a mutex, even if another thread panicked while it held the lock. The panicked test has failed, and other tests may continue.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
