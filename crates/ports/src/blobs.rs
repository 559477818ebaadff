//! The port of blobs: immutable bytes named by their digest.
//! Invariant: `get` returns bytes with the requested digest, or an error; never other bytes.

use std::time::Duration;

use async_trait::async_trait;
use base::Digest;

/// Storage of immutable bytes. Blobs have no tenant: a caller reaches one only through a row of its own tenant.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores bytes. They are durable when this returns, and equal bytes are one blob.
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error>;

    /// Reads a blob and verifies its digest.
    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error>;

    /// Returns at most `limit` stored blobs in the order of their digests, after `after` (exclusive).
    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>, Error>;

    /// Deletes a blob whose last `put` is at least `min_idle` ago, and returns whether it did. A concurrent `put` of the
    /// same bytes wins: when `put` has returned, the blob exists. Without that rule, collection could delete a blob
    /// between its `put` and the row that names it.
    async fn delete(&self, digest: &Digest, min_idle: Duration) -> Result<bool, Error>;
}

/// A blob without its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredBlob {
    pub digest: Digest,
    /// The size.
    pub bytes: u64,
    /// The time since its last `put`. Collection leaves young blobs alone, because their row may still be on its way.
    pub idle: Duration,
}

/// Why an operation on blobs failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("blob {0} does not exist")]
    Missing(Digest),
    /// The stored bytes differ from those that were put. Other blobs stay usable.
    #[error("blob {0} is damaged")]
    Damaged(Digest),
    #[error("blob storage is full")]
    Full(#[source] crate::Cause),
    #[error("blob storage is unavailable")]
    Unavailable(#[source] crate::Cause),
    /// Storage that is reached over a network. The operation may have happened there.
    #[error(transparent)]
    Remote(Box<RemoteError>),
}

/// A problem with storage over a network, and the address of the object or bucket.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {problem}")]
pub struct RemoteError {
    /// The address as an operator writes it: `s3://bucket/key`.
    pub address: String,
    pub problem: RemoteProblem,
    /// The client's own error, for the log. It is missing where the adapter itself found the problem.
    #[source]
    pub cause: Option<crate::Cause>,
}

/// The kinds of problem with storage over a network. Each needs a different action of the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteProblem {
    #[error("the storage cannot be reached; check that its endpoint is right and that it is running")]
    Unreachable,
    #[error("the bucket does not exist; create it, or name another one")]
    NoBucket,
    #[error(
        "the storage refuses these credentials ({0}); check the access key, its rights, the region and this machine's clock"
    )]
    /// With the storage's own code, such as `AccessDenied`.
    Denied(String),
    #[error(
        "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or store them with `tokamak secret set`"
    )]
    NoCredentials,
    #[error("the storage did not answer within {ms} ms; find out what slows it down, or raise `timeout_ms` of [blobs]")]
    Slow { ms: u128 },
    #[error("the storage keeps failing ({0}); check its own log")]
    /// With the status and the storage's own code.
    Failing(String),
    #[error("the storage refuses the request ({0}); check that bucket, region and endpoint belong together")]
    /// With the status and the storage's own code.
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

impl RemoteProblem {
    /// Returns a stable code for programs that read errors.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreachable => "blobs_unreachable",
            Self::NoBucket => "blobs_no_bucket",
            Self::Denied(_) | Self::NoCredentials => "blobs_denied",
            Self::Slow { .. } => "blobs_slow",
            Self::Failing(_) => "blobs_failing",
            Self::Refused(_) => "blobs_refused",
            Self::NotKept => "blobs_not_kept",
            Self::Taken => "blobs_taken",
            Self::Foreign => "blobs_foreign",
        }
    }

    /// Returns whether only a change of the settings, or of the storage they name, will help. The other problems may pass
    /// by themselves.
    pub fn is_lasting(&self) -> bool {
        !matches!(self, Self::Unreachable | Self::Slow { .. } | Self::Failing(_))
    }
}
