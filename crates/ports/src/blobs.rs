//! Immutable bytes named by their digest.
//! Invariant: `get` returns bytes whose digest is the one asked for, or an error; never other bytes.

use async_trait::async_trait;
use base::Digest;

#[async_trait]
pub trait Blobs: Send + Sync {
    /// Durable when it returns. Putting equal bytes twice is one blob.
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error>;
    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error>;
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
