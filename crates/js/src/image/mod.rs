//! The stored form of heaps. This module encodes the pages that a step changed as an object, and decodes and verifies
//! objects.
//! Invariant: this module has no effects and needs neither an engine nor a store. Objects are not trusted, because they
//! may be damaged or hostile.
//!
//! A heap is the memory of a guest, in pages of 4 KiB. An [`Image`] contains a digest of each page, a digest of each
//! group of 64 pages, and the root, which is the digest of the group digests. So the cost of the next image depends on
//! the number of changed pages and not on the size of the memory. The **key** of a heap is the SHA-256 of its payload
//! (format, engine, memory size, root). Equal memories of one engine therefore have equal keys, whichever steps made
//! them.
//!
//! An object stores a heap as the difference to a parent heap. It has these bytes, with big-endian numbers:
//!
//! | bytes | content |
//! |---|---|
//! | 0-9 | `TOKAHEAP`, and two bytes for the packing of the pages |
//! | 10-41 | SHA-256 of the payload: the key |
//! | 42-115 | payload: format (2), engine (32), memory size in bytes (8), root (32) |
//! | 116 | 0: the parent is the engine's base image; 1: the parent's key follows (32) |
//! | then | number of changed pages (4); for each, in rising order, its number (4) and its digest (32) |
//! | then | one zstd frame: each changed page XOR the parent's page, whole (packing 1) or as runs of words (packing 2, `page_diff.rs`) |
//! | last 32 | SHA-256 of all bytes above |
//!
//! The memory of a script can return to an earlier content, and so to a key that is already stored. A store must then
//! keep the stored object and discard the new one. The new object may descend from the stored one, and a chain of
//! objects that contains itself can never be read.

mod codec;
mod digest_tree;
mod merge;
mod object;
mod page_diff;
mod payload;

pub use codec::{Codec, PageChange};
pub use digest_tree::Image;
pub use object::{MAGIC, ParsedObject};

use base::Digest;

/// The size of a heap page, which is the page size of the kernel. A page of WebAssembly is larger (64 KiB).
pub const PAGE_BYTES: usize = 4096;
/// The number of heap pages in one WebAssembly page of 64 KiB.
pub const PAGES_PER_WASM_PAGE: u32 = 16;
/// The number of heap pages of the largest memory with 32-bit addresses.
pub const MAX_PAGES: u32 = 1 << 20;
/// The content of a page that was never written. A page that a parent's smaller memory does not have counts as this
/// page.
pub static ZERO_PAGE: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// The reason for which an object cannot be read or an image cannot be made.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("the bytes are not a stored heap, because they do not begin with TOKAHEAP")]
    NotAHeap,
    #[error("heap {key} is damaged: {damage}")]
    Damaged { key: Digest, damage: Damage },
    #[error("heap {key} was made by another JavaScript engine, {engine}")]
    Engine { key: Digest, engine: Digest },
    #[error("heap {key} is a difference to heap {parent:?}, which is not the given parent")]
    Parent { key: Digest, parent: Option<Digest> },
    #[error("the memory of a heap cannot have {0} bytes")]
    MemorySize(u64),
    #[error("page {0} is outside the memory of the heap")]
    NoPage(u32),
    #[error("heap {0} equals its parent, so no object can be made of it")]
    Same(Digest),
    #[error("the content of a changed page of heap {0} was not given")]
    Incomplete(Digest),
    #[error("zstd could not compress or decompress a heap")]
    Compress,
}

/// The check that an object failed.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone, Copy)]
pub enum Damage {
    #[error("the object ends too early")]
    Truncated,
    #[error("the format {0} of the object is unknown")]
    Format(u16),
    #[error("the payload of the object does not match its key")]
    Payload,
    #[error("the bytes of the object do not match its checksum")]
    Checksum,
    #[error("the object contains another heap, {0}")]
    Swapped(Digest),
    #[error("the memory of the heap cannot have {0} bytes")]
    MemorySize(u64),
    #[error("the memory of the heap is smaller than the memory of its parent")]
    Shrunk,
    #[error("the heap is its own parent")]
    OwnParent,
    #[error("the parent mark, byte 116 of the object, is neither 0 nor 1")]
    ParentMark,
    #[error("the list of changed pages has page {0} out of order")]
    Order(u32),
    #[error("the list of changed pages has page {0}, which is outside the memory")]
    Range(u32),
    #[error("the page digests of the object do not match its root")]
    Root,
    #[error("the packed pages of the object cannot be unpacked")]
    Packed,
    #[error("the content of page {0} does not match its digest")]
    Page(u32),
}
