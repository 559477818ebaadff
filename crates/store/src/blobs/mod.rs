//! Blobs: in files, in an S3 storage, and there with copies in files.
//! Invariant: an implementation per kind of storage, each behind `ports::Blobs`; none knows of another.

mod cache;
mod files;
pub mod s3;
mod shelves;

pub use cache::CachedBlobs;
pub use files::FileBlobs;
