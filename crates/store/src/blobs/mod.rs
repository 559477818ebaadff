//! Blobs of the embedded store.
//! Invariant: an implementation per kind of storage, each behind `ports::Blobs`; none knows of another.

mod files;
mod shelves;

pub use files::FileBlobs;
