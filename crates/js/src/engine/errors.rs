//! Converts errors of guests, objects and the operating system to errors of the port `ports::Scripts`.

use base::Digest;
use ports::scripts::{Error, Limits};

use crate::image;
use crate::machine::GuestError;

pub fn guest_error(error: GuestError, limits: &Limits) -> Error {
    match error {
        GuestError::Memory => Error::Memory(limits.memory_bytes),
        GuestError::Deadline => Error::Deadline(limits.deadline_ms),
        GuestError::Stopped => Error::Stopped,
        error @ (GuestError::Invalid(_) | GuestError::Trap(_)) => Error::Engine(error.into()),
    }
}

/// Converts the error of reading an object that should contain the heap `key`.
pub fn object_error(key: Digest, error: image::Error) -> Error {
    match error {
        image::Error::Engine { key, engine } => Error::NoEngine { heap: key, engine },
        image::Error::Damaged { key, .. } => Error::Damaged(key),
        // The compressor failed, so the object may be intact.
        image::Error::Compress => internal_error(error),
        _ => Error::Damaged(key),
    }
}

/// Converts an error whose cause is in this process: a failure of the operating system, or of a heap that this process
/// made or verified.
pub fn internal_error(error: impl Into<ports::Cause>) -> Error {
    Error::Engine(error.into())
}
