//! The port of blobs: immutable bytes named by their digest.
//! Invariant: `get` returns the bytes with the requested digest, or an error.

use std::time::Duration;

use async_trait::async_trait;
use base::Digest;

/// Storage of immutable bytes. Blobs have no tenant: a caller reaches one only through a row of its own tenant.
#[async_trait]
pub trait Blobs: Send + Sync {
    /// Stores bytes and returns their digest. The bytes are durable when this returns. Storing equal bytes twice
    /// creates one blob.
    async fn put(&self, bytes: &[u8]) -> Result<Digest, Error>;

    /// Reads a blob and verifies its digest.
    async fn get(&self, digest: &Digest) -> Result<Vec<u8>, Error>;

    /// Returns at most `limit` stored blobs in the order of their digests, after `after` (exclusive).
    async fn list(&self, after: Option<&Digest>, limit: usize) -> Result<Vec<StoredBlob>, Error>;

    /// Deletes a blob whose last `put` is at least `min_idle` ago, and returns whether the blob was deleted. A
    /// concurrent `put` of the same bytes wins: when `put` has returned, the blob exists. Otherwise collection could
    /// delete a blob after its `put` and before the commit of the row that names it.
    async fn delete(&self, digest: &Digest, min_idle: Duration) -> Result<bool, Error>;
}

/// A list entry for a blob: its digest, size and age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredBlob {
    pub digest: Digest,
    /// The number of bytes of the blob.
    pub bytes: u64,
    /// The time since the last `put` of these bytes. Collection keeps young blobs, because the row that names a young
    /// blob may not be committed yet.
    pub idle: Duration,
}

/// Why an operation on blobs failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("blob {0} does not exist in the blob storage")]
    Missing(Digest),
    /// The stored bytes do not have the blob's digest. Only a backup can restore the blob; other blobs stay usable.
    #[error("blob {0} is damaged: its stored bytes have another digest; restore it from a backup")]
    Damaged(Digest),
    #[error("the blob storage is full; free space on its disk")]
    Full(#[source] crate::Cause),
    #[error("the blob storage failed; check its disk")]
    Unavailable(#[source] crate::Cause),
    /// The storage is reached over a network and failed. The operation may have been carried out there.
    #[error(transparent)]
    Remote(Box<RemoteError>),
}

/// A problem with blob storage over a network, and the address of the object or bucket.
#[derive(Debug, thiserror::Error)]
#[error("{address}: {problem}")]
pub struct RemoteError {
    /// The address as an operator writes it: `s3://bucket/key`.
    pub address: String,
    pub problem: RemoteProblem,
    /// The error of the HTTP client, for the log. It is `None` if the adapter itself detected the problem.
    #[source]
    pub cause: Option<crate::Cause>,
}

/// The kinds of problem with blob storage over a network. Each kind needs a different action of the operator.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteProblem {
    #[error("the blob storage cannot be reached; check that its endpoint is right and that it is running")]
    Unreachable,
    #[error("the bucket does not exist; create it, or name another one")]
    NoBucket,
    #[error(
        "the blob storage refuses these credentials ({0}); check the access key, its rights, the region and this machine's clock"
    )]
    /// The storage denied access. The text is the storage's error code, such as `AccessDenied`.
    Denied(String),
    #[error(
        "there are no credentials for the blob storage; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or store them with `tokamak secret set`"
    )]
    NoCredentials,
    #[error(
        "the blob storage did not answer within {ms} ms; find out what slows it down, or raise `timeout_ms` of [blobs]"
    )]
    Slow { ms: u128 },
    #[error("the blob storage keeps failing ({0}); check the storage's own log")]
    /// The storage answered with a server error, also after retries. The text is the status and the storage's error code.
    Failing(String),
    #[error("the blob storage refuses the request ({0}); check that bucket, region and endpoint belong together")]
    /// The storage answered with a client error. The text is the status and the storage's error code.
    Refused(String),
    #[error(
        "the blob storage confirmed a write but does not have the bytes; check the storage's own log, and do not use the storage until the cause is fixed"
    )]
    NotKept,
    #[error(
        "another database stores its blobs here; give each database its own prefix, or, if this database was moved, copy its `.owner` file as well"
    )]
    Taken,
    #[error("the answer of the blob storage does not come from an S3 service; check the endpoint")]
    Foreign,
    #[error(
        "the answers of the blob storage do not come to an end ({0}); check the storage's own log, and what is between the storage and this server"
    )]
    /// A bound on the number, the time or the bytes of the storage's answers was reached. The text names it.
    Endless(&'static str),
}

impl RemoteProblem {
    /// Returns a stable code for client software that branches on errors.
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
            Self::Endless(_) => "blobs_endless",
        }
    }

    /// Returns whether the problem lasts until the operator changes the settings or the storage. The other problems
    /// may pass without a change.
    pub fn is_lasting(&self) -> bool {
        !matches!(self, Self::Unreachable | Self::Slow { .. } | Self::Failing(_))
    }
}
