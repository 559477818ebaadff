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
    /// Storage that is reached over a network. Whatever was asked may have happened there.
    #[error(transparent)]
    Remote(Box<Remote>),
}

/// What went wrong with storage over a network, and where.
#[derive(Debug, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct Remote {
    /// As an operator names it: `s3://bucket/key`.
    pub place: String,
    pub problem: Problem,
    #[source]
    pub cause: Option<crate::Cause>,
}

/// Each is something else to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("the storage cannot be reached; look whether its endpoint is right and whether it is up")]
    Unreachable,
    #[error("there is no such bucket; make it, or name another one")]
    NoBucket,
    #[error(
        "the storage refuses these credentials ({0}); look at the access key, its rights, the region and this machine's clock"
    )]
    Denied(String),
    #[error(
        "there are no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or store them with `tokamak secret set`"
    )]
    NoCredentials,
    #[error(
        "the storage did not answer within {ms} ms; look what slows it down, or give it longer with `timeout_ms` of [blobs]"
    )]
    Slow { ms: u128 },
    #[error("the storage fails ({0}), also when asked again; look at its own log")]
    Failing(String),
    #[error("the storage refuses the request ({0}); look whether bucket, region and endpoint belong together")]
    Refused(String),
    #[error(
        "the storage answered that it keeps these bytes, and does not; look at its own log, and do not rely on it until that is mended"
    )]
    NotKept,
    #[error(
        "another database keeps its blobs here; give each a prefix of its own, or, where this is the same database in another place, bring its `.owner` file along"
    )]
    Taken,
    #[error("the answer is not S3's; look whether the endpoint is that of an S3 storage")]
    Foreign,
}

impl Problem {
    /// Stable, for whoever reads errors by their code.
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

    /// Nothing but a change of the settings, or of what they name, will help.
    pub fn is_lasting(&self) -> bool {
        !matches!(self, Problem::Unreachable | Problem::Slow { .. } | Problem::Failing(_))
    }
}
