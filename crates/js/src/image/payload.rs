//! The payload of a heap and the check of memory sizes. The payload is the part of an object whose SHA-256 is the key
//! of the heap.
//! Invariant: the payload layout of a format number never changes, because every stored key depends on the layout.

use base::Digest;

use super::{Damage, Error, MAX_PAGES, PAGE_BYTES, PAGES_PER_WASM_PAGE};

/// The format number of the payload. With another number every heap would have another key.
const PAYLOAD_FORMAT: u16 = 1;

/// The length of a payload in bytes: format (2), engine (32), memory size (8), root (32).
pub(super) const PAYLOAD_BYTES: usize = 74;

/// The SHA-256 of a page, or zeros for a page of zeros.
pub(super) type PageDigest = [u8; 32];

pub(super) struct HeapPayload {
    /// The name of the engine that made the heap.
    pub engine: Digest,
    /// The memory size in pages.
    pub pages: u32,
    /// The root of the digest tree.
    pub root: [u8; 32],
}

impl HeapPayload {
    pub fn parse(bytes: &[u8; PAYLOAD_BYTES]) -> Result<Self, Damage> {
        let memory_bytes = u64::from_be_bytes(array_at(bytes, 34));
        let pages = page_count(memory_bytes).map_err(|_| Damage::MemorySize(memory_bytes))?;
        let format = u16::from_be_bytes(array_at(bytes, 0));
        if format != PAYLOAD_FORMAT {
            return Err(Damage::Format(format));
        }
        Ok(Self { engine: Digest::from_bytes(array_at(bytes, 2)), pages, root: array_at(bytes, 42) })
    }

    pub fn to_bytes(&self) -> [u8; PAYLOAD_BYTES] {
        let mut bytes = [0; PAYLOAD_BYTES];
        bytes[..2].copy_from_slice(&PAYLOAD_FORMAT.to_be_bytes());
        bytes[2..34].copy_from_slice(self.engine.as_bytes());
        bytes[34..42].copy_from_slice(&memory_bytes(self.pages).to_be_bytes());
        bytes[42..].copy_from_slice(&self.root);
        bytes
    }

    pub fn key(&self) -> Digest {
        Digest::of(&self.to_bytes())
    }
}

/// Returns the number of pages of a memory with `bytes` bytes, or an error if a heap cannot have this size.
fn page_count(bytes: u64) -> Result<u32, Error> {
    let pages = u32::try_from(bytes / PAGE_BYTES as u64).map_err(|_| Error::MemorySize(bytes))?;
    check_page_count(pages)?;
    if bytes.is_multiple_of(PAGE_BYTES as u64) { Ok(pages) } else { Err(Error::MemorySize(bytes)) }
}

/// Returns the number of pages of this memory, or an error if a heap cannot have its size.
pub(super) fn pages_of(memory: &[u8]) -> Result<u32, Error> {
    page_count(memory.len() as u64)
}

pub(super) fn check_page_count(pages: u32) -> Result<(), Error> {
    let is_possible = pages > 0 && pages <= MAX_PAGES && pages.is_multiple_of(PAGES_PER_WASM_PAGE);
    if is_possible { Ok(()) } else { Err(Error::MemorySize(memory_bytes(pages))) }
}

pub(super) fn memory_bytes(pages: u32) -> u64 {
    u64::from(pages) * PAGE_BYTES as u64
}

/// Copies `N` bytes from a position. The caller has checked that `bytes` is long enough.
pub(super) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}
