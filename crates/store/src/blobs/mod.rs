//! The implementations of the port `ports::Blobs`: blobs in files, blobs in an S3 storage, and a cache in files before
//! an S3 storage.
//! Invariant: each kind of storage is an implementation of `ports::Blobs` of its own. The files and S3 implementations
//! do not depend on each other.

mod cache;
mod files;
pub mod s3;

pub use cache::CachedBlobs;
pub use files::FileBlobs;

/// The result of reading a blob and comparing the digest of its bytes with its name.
enum BlobRead {
    Intact(Vec<u8>),
    /// The digest of the stored bytes differs from the name of the blob.
    Damaged,
    Missing,
}
