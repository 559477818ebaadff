//! Immutable bytes named by their digest.
//! Invariant: `get` returns bytes whose digest is the one asked for, or an error; never other bytes.

use std::time::Duration;

use async_trait::async_trait;
use base::Digest;

#[async_trait]
pub trait Blobs: Send + Sync {
    /// Durable when it returns. Putting equal bytes twice is one blob.
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error>;
    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error>;

    /// What is stored, in the order of digests, after `after` (exclusive).
    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<Stored>, Error>;

    /// Removes a blob that nobody has put for `idle`; whether it did. A `put` of the same bytes at the same moment wins: when it
    /// has returned, the blob is there.
    async fn delete(&self, digest: &Digest, idle: Duration) -> Result<bool, Error>;
}

/// A blob without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub digest: Digest,
    pub bytes: u64,
    /// Since it was last put.
    pub idle: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("blob {0} does not exist")]
    Missing(Digest),
    /// The stored bytes are not the ones that were put; the blob is set aside and the rest goes on.
    #[error("blob {0} is damaged")]
    Damaged(Digest),
    #[error("blob storage is full")]
    Full(#[source] crate::Cause),
    #[error("blob storage is unavailable")]
    Unavailable(#[source] crate::Cause),
}
