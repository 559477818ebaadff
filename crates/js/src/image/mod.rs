//! A heap as an object: what one step changed, and every check that makes a wrong heap impossible.
//! Invariant: pure. Bytes in, bytes out; no engine, no store. Nothing here trusts an object: it may be damaged or hostile.
//!
//! A heap is the memory of its engine, in pages of 4 KiB. [`Image`] holds the digest of every page, of every group of pages
//! and their root, so that the next image costs what changed and not what is there. The **key** of a heap is the SHA-256 of
//! its payload (format, engine, memory size, root): equal memories have equal keys, whichever way they came about.
//!
//! | bytes | what |
//! |---|---|
//! | 0-9 | `TOKAHEAP` and how pages are packed, as two bytes |
//! | 10-41 | SHA-256 of the payload: the key |
//! | 42-115 | payload: format (2), engine (32), memory in bytes (8), root (32) |
//! | 116 | 0: the parent is the engine's base image; 1: its key follows (32) |
//! | then | how many pages changed (4); for each, in rising order, its number (4) and its digest (32) |
//! | then | one zstd frame: each changed page XOR its parent's, whole (packing 1) or without what is the same (2, `runs.rs`) |
//! | last 32 | SHA-256 of all of the above |
//!
//! Numbers are big-endian. A memory may come back to what it once was, and so to a key that is already stored. A store must
//! then keep the object it has: the new one may descend from it, and a heap that descends from itself can never be read.

mod codec;
mod frame;
mod merge;
mod runs;
mod tree;

pub use codec::{Change, Codec};
pub use frame::{Frame, MAGIC};
pub use tree::Image;

use base::Digest;

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Pages that a memory grows by: WebAssembly counts in 64 KiB.
pub const GRAIN: u32 = 16;
/// As many as a 32-bit memory can have.
pub const MOST_PAGES: u32 = 1 << 20;
/// What a page holds that its parent did not have.
pub static ZERO_PAGE: [u8; PAGE] = [0; PAGE];

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    #[error("these bytes are not a heap")]
    NotAHeap,
    #[error("heap {key} is damaged: {damage}")]
    Damaged { key: Digest, damage: Damage },
    #[error("heap {key} was made by engine {engine}")]
    Engine { key: Digest, engine: Digest },
    #[error("heap {key} is a change to {parent:?}, which is not the heap at hand")]
    Parent { key: Digest, parent: Option<Digest> },
    #[error("a memory cannot have {0} bytes")]
    MemorySize(u64),
    #[error("page {0} is not a page of this memory")]
    NoPage(u32),
    #[error("heap {0} has not changed: it needs no object")]
    Same(Digest),
    #[error("the changes of heap {0} are not all there")]
    Incomplete(Digest),
    #[error("the heap could not be compressed")]
    Compress,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone, Copy)]
pub enum Damage {
    #[error("it ends too early")]
    Truncated,
    #[error("it is of an unknown format, {0}")]
    Format(u16),
    #[error("its payload is not what its name says")]
    Payload,
    #[error("its bytes do not add up to its checksum")]
    Checksum,
    #[error("it holds heap {0}")]
    Swapped(Digest),
    #[error("its memory cannot have {0} bytes")]
    MemorySize(u64),
    #[error("its memory is smaller than its parent's")]
    Shrunk,
    #[error("it is its own parent")]
    OwnParent,
    #[error("its parent is neither there nor absent")]
    ParentMark,
    #[error("page {0} is listed out of order")]
    Order(u32),
    #[error("page {0} is outside its memory")]
    Range(u32),
    #[error("its pages do not add up to its root")]
    Root,
    #[error("its pages cannot be unpacked")]
    Packed,
    #[error("page {0} is not what its digest says")]
    Page(u32),
}
