//! Immutable bytes named by their digest.
//! Invariant: `get` returns bytes with the requested digest, or an error; never other bytes.

use std::time::Duration;

use async_trait::async_trait;
use base::Digest;

/// Storage of immutable bytes.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores bytes. They are durable when this returns, and equal bytes are one blob.
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error>;
    /// Reads a blob and verifies its digest.
    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error>;

    /// Returns stored blobs in the order of their digests, after `after` (exclusive).
    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<Stored>, Error>;

    /// Deletes a blob that was not put for at least `idle`, and returns whether it did. A concurrent `put` of the
    /// same bytes wins: when `put` has returned, the blob exists.
    async fn delete(&self, digest: &Digest, idle: Duration) -> Result<bool, Error>;
}

/// A blob without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    pub digest: Digest,
    pub bytes: u64,
    /// The time since its last `put`.
    pub idle: Duration,
}

/// Why an operation on blobs failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("blob {0} does not exist")]
    Missing(Digest),
    /// The stored bytes differ from those that were put. The blob is set aside, and other blobs stay usable.
    #[error("blob {0} is damaged")]
    Damaged(Digest),
    #[error("blob storage is full")]
    Full(#[source] crate::Cause),
    #[error("blob storage is unavailable")]
    Unavailable(#[source] crate::Cause),
    /// Storage that is reached over a network. The operation may have happened there.
    #[error(transparent)]
    Remote(Box<Remote>),
}

/// A problem with storage over a network, and its address.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Remote {
    /// The address as an operator writes it: `s3://bucket/key`.
    pub place: String,
    pub problem: Problem,
    #[source]
    pub cause: Option<crate::Cause>,
}

/// The kinds of problem. Each needs a different action of the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("the storage cannot be reached; check that its endpoint is right and that it is running")]
    Unreachable,
    #[error("the bucket does not exist; create it, or name another one")]
    NoBucket,
    #[error(
        "the storage refuses these credentials ({0}); check the access key, its rights, the region and this machine's clock"
    )]
    Denied(String),
    #[error(
        "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or store them with `tokamak secret set`"
    )]
    NoCredentials,
    #[error("the storage did not answer within {ms} ms; find out what slows it down, or raise `timeout_ms` of [blobs]")]
    Slow { ms: u128 },
    #[error("the storage keeps failing ({0}); check its own log")]
    Failing(String),
    #[error("the storage refuses the request ({0}); check that bucket, region and endpoint belong together")]
    Refused(String),
    #[error(
        "the storage confirmed a write but does not have the bytes; check its own log, and do not rely on it until the cause is fixed"
    )]
    NotKept,
    #[error(
        "another database stores its blobs here; give each database its own prefix, or, if this database was moved, copy its `.owner` file as well"
    )]
    Taken,
    #[error("the answer does not come from an S3 storage; check the endpoint")]
    Foreign,
}

impl Problem {
    /// Returns a stable code for programs that read errors.
    pub fn code(&self) -> &'static str {
        match self {
            Problem::Unreachable => "blobs_unreachable",
            Problem::NoBucket => "blobs_no_bucket",
            Problem::Denied(_) | Problem::NoCredentials => "blobs_denied",
            Problem::Slow { .. } => "blobs_slow",
            Problem::Failing(_) => "blobs_failing",
            Problem::Refused(_) => "blobs_refused",
            Problem::NotKept => "blobs_not_kept",
            Problem::Taken => "blobs_taken",
            Problem::Foreign => "blobs_foreign",
        }
    }

    /// Whether only a change of the settings, or of the storage they name, will help.
    pub fn is_lasting(&self) -> bool {
        !matches!(self, Problem::Unreachable | Problem::Slow { .. } | Problem::Failing(_))
    }
}
