//! The stored form of heaps: encodes what one step changed as an object, and decodes and verifies objects.
//! Invariant: this module is pure: it needs no engine and no store. It trusts no object, which may be damaged or
//! hostile.
//!
//! A heap is the memory of its engine, in pages of 4 KiB. [`Image`] holds a digest for each page, a digest for each
//! group of 64 pages, and their root, so the cost of the next image depends on the number of changed pages and not on
//! the size of the memory. The **key** of a heap is the SHA-256 of its payload (format, engine, memory size, root).
//! Equal memories therefore have equal keys, whichever steps led to them.
//!
//! An object has these bytes. Numbers are big-endian:
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
//! A memory can return to an earlier content, and so to a key that is already stored. A store must then keep the object
//! that it has: the new object may descend from the old one, and a heap that descends from itself can never be read.

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

/// The size of a page of a heap, which is the page size of the kernel. WebAssembly's own pages are larger.
pub const PAGE_BYTES: usize = 4096;
/// A WebAssembly memory has a multiple of 64 KiB, which is this number of heap pages.
pub const PAGES_PER_WASM_PAGE: u32 = 16;
/// The number of pages of the largest 32-bit memory.
pub const MAX_PAGES: u32 = 1 << 20;
/// The content of a page that was never written, also of a page that the parent's smaller memory does not have.
pub static ZERO_PAGE: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// Why an object cannot be read, or an image cannot be made.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("these bytes are not a heap")]
    NotAHeap,
    #[error("heap {key} is damaged: {damage}")]
    Damaged { key: Digest, damage: Damage },
    #[error("heap {key} was made by engine {engine}")]
    Engine { key: Digest, engine: Digest },
    #[error("heap {key} is a change to {parent:?}, which is not the given parent")]
    Parent { key: Digest, parent: Option<Digest> },
    #[error("a memory cannot have {0} bytes")]
    MemorySize(u64),
    #[error("page {0} is not a page of this memory")]
    NoPage(u32),
    #[error("heap {0} equals its parent, so it has no object")]
    Same(Digest),
    #[error("a changed page of heap {0} is missing")]
    Incomplete(Digest),
    #[error("the heap could not be compressed")]
    Compress,
}

/// The check that an object failed.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone, Copy)]
pub enum Damage {
    #[error("it ends too early")]
    Truncated,
    #[error("its format {0} is unknown")]
    Format(u16),
    #[error("its payload does not match its key")]
    Payload,
    #[error("its bytes do not match its checksum")]
    Checksum,
    #[error("it holds heap {0}")]
    Swapped(Digest),
    #[error("its memory cannot have {0} bytes")]
    MemorySize(u64),
    #[error("its memory is smaller than its parent's")]
    Shrunk,
    #[error("it is its own parent")]
    OwnParent,
    #[error("the byte that says whether it has a parent is neither 0 nor 1")]
    ParentMark,
    #[error("page {0} is listed out of order")]
    Order(u32),
    #[error("page {0} is outside its memory")]
    Range(u32),
    #[error("its page digests do not match its root")]
    Root,
    #[error("its pages cannot be unpacked")]
    Packed,
    #[error("page {0} does not match its digest")]
    Page(u32),
}
