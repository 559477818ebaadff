//! Failures of reading and writing API keys.
//! Invariant: both kinds are faults of the storage, never of the caller.

/// Reading or writing a stored API key failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] ports::store::Error),
    /// A stored key does not read back as it was written.
    #[error("stored row {0} is damaged")]
    Damaged(String),
}
