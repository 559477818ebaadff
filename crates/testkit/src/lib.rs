//! What tests stand on: ports in memory, faults on request, a scripted upstream, golden files and the conformance suites.
//!
//! Invariants:
//! - Only tests depend on this crate; nothing of it is in the binary.
//! - Everything is deterministic: no system clock, no randomness, no network.
//! - A test that would prove nothing fails: an empty golden folder, a script that was not followed, damage to a blob that is not there.

// why: this is a library of assertions; a failed expectation here is the failure of the test that calls it.
#![allow(clippy::panic, clippy::unwrap_used, clippy::expect_used)]

pub mod conformance;
pub mod faults;
pub mod golden;
pub mod memory;
pub mod paced;
pub mod scripts;
pub mod tiny;
pub mod upstream;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A test that panicked while holding a lock has already failed; the others may go on.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
