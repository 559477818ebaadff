//! Implementations of the port of blobs: files, an S3 storage, and copies in files before an S3 storage.
//! Invariant: each kind of storage has its own implementation of `ports::Blobs`, and none of them knows of another.

mod cache;
mod files;
pub mod s3;

pub use cache::CachedBlobs;
pub use files::FileBlobs;

/// The result of one read of a blob, after its digest was compared.
enum BlobRead {
    Intact(Vec<u8>),
    /// The stored bytes do not have the digest of their name.
    Damaged,
    Missing,
}
