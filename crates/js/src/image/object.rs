//! The byte layout of an object: writes and parses the header, the list of changed pages and the checksum.
//! Invariant: a [`ParsedObject`] exists only if the key and the checksum of the object match. The content of the packed
//! pages is verified by the codec (`codec.rs`).

use base::Digest;

use super::digest_tree::Image;
use super::payload::{HeapPayload, PAYLOAD_BYTES, PageDigest, array_at, memory_bytes};
use super::{Damage, Error};

pub const MAGIC: [u8; 8] = *b"TOKAHEAP";

/// The form in which an object packs its changed pages. The key of a heap does not depend on the packing. Every packing
/// stays readable, because stored objects are never rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// The difference of each page is packed as a whole page.
    Whole = 1,
    /// Only the runs of words that differ are packed (`page_diff.rs`).
    Runs = 2,
}

impl Packing {
    fn of(number: u16) -> Option<Self> {
        [Self::Whole, Self::Runs].into_iter().find(|packing| *packing as u16 == number)
    }
}

const KEY_OFFSET: usize = 10;
const PAYLOAD_OFFSET: usize = 42;
/// The length of an entry in the list of changed pages: page number (4) and digest (32).
const LIST_ENTRY_BYTES: usize = 36;
const CHECKSUM_BYTES: usize = 32;

/// The number of a changed page, and the digest of its new content.
pub(super) type ChangedPage = (u32, PageDigest);

/// The parts of an object whose key and checksum match.
#[derive(Debug, Clone)]
pub struct ParsedObject<'a> {
    /// The key of the heap that the object contains.
    pub key: Digest,
    /// The key of the parent: the object is a difference to the parent. `None` means the engine's base image.
    pub parent: Option<Digest>,
    /// The name of the engine that made the heap.
    pub engine: Digest,
    /// The size of the heap's memory in bytes.
    pub memory_bytes: u64,
    /// The size of the heap's memory in pages.
    pub pages: u32,
    /// The root of the heap's digest tree.
    root: [u8; 32],
    /// The list of changed pages, in its stored form.
    entries: &'a [u8],
    pub(super) packing: Packing,
    /// The zstd frame with the differences of the changed pages.
    pub(super) packed: &'a [u8],
}

impl<'a> ParsedObject<'a> {
    pub fn parse(object: &'a [u8]) -> Result<Self, Error> {
        let mut rest = ObjectReader { bytes: object, key: None };
        if rest.array::<8>()? != MAGIC {
            return Err(Error::NotAHeap);
        }
        let packing = u16::from_be_bytes(rest.array()?);
        let key = Digest::from_bytes(rest.array()?);
        rest.key = Some(key);
        let damaged = |damage| Error::Damaged { key, damage };
        let packing = Packing::of(packing).ok_or(damaged(Damage::Format(packing)))?;
        let payload: [u8; PAYLOAD_BYTES] = rest.array()?;
        if Digest::of(&payload) != key {
            return Err(damaged(Damage::Payload));
        }
        let HeapPayload { engine, pages, root } = HeapPayload::parse(&payload).map_err(damaged)?;
        let body_bytes = rest.bytes.len().checked_sub(CHECKSUM_BYTES).ok_or(damaged(Damage::Truncated))?;
        let (body, checksum) = rest.bytes.split_at(body_bytes);
        if Digest::of(&object[..object.len() - CHECKSUM_BYTES]).as_bytes().as_slice() != checksum {
            return Err(damaged(Damage::Checksum));
        }
        rest.bytes = body;
        let parent = match rest.array::<1>()? {
            [0] => None,
            [1] => Some(Digest::from_bytes(rest.array()?)),
            _ => return Err(damaged(Damage::ParentMark)),
        };
        if parent == Some(key) {
            return Err(damaged(Damage::OwnParent));
        }
        let count = u32::from_be_bytes(rest.array()?) as usize;
        let entries = rest.take(count.saturating_mul(LIST_ENTRY_BYTES))?;
        let memory_bytes = memory_bytes(pages);
        Ok(Self { key, parent, engine, memory_bytes, pages, root, entries, packing, packed: rest.bytes })
    }

    /// Parses the object of the heap `key`. A valid object of another heap is an error.
    pub fn parse_as(key: Digest, object: &'a [u8]) -> Result<Self, Error> {
        let object = Self::parse(object)?;
        if object.key != key {
            return Err(Error::Damaged { key, damage: Damage::Swapped(object.key) });
        }
        Ok(object)
    }

    /// Returns the number of changed pages.
    pub fn changed_count(&self) -> usize {
        self.entries.len() / LIST_ENTRY_BYTES
    }

    /// Returns the image of the object's heap, and the changed pages with their digests. The digests are verified
    /// against the key. The content of the pages is still packed and not verified.
    pub(super) fn image(&self, parent: &Image) -> Result<(Image, Vec<ChangedPage>), Error> {
        if self.engine != parent.engine() {
            return Err(Error::Engine { key: self.key, engine: self.engine });
        }
        let given_parent = (!parent.is_base()).then(|| parent.key());
        if self.parent != given_parent {
            return Err(Error::Parent { key: self.key, parent: self.parent });
        }
        // A WebAssembly memory never shrinks.
        self.ensure(self.pages >= parent.pages(), Damage::Shrunk)?;
        let changed = self.changed_pages()?;
        let image = parent.with_digests(changed.iter().copied(), self.pages)?.into_descendant();
        self.ensure(image.key() == self.key && image.root() == self.root, Damage::Root)?;
        Ok((image, changed))
    }

    /// Decodes the list of changed pages. The page numbers must rise and lie inside the memory.
    fn changed_pages(&self) -> Result<Vec<ChangedPage>, Error> {
        let mut changed = Vec::with_capacity(self.changed_count());
        let mut lowest_allowed = 0;
        for entry in self.entries.chunks_exact(LIST_ENTRY_BYTES) {
            let page = u32::from_be_bytes(array_at(entry, 0));
            self.ensure(page >= lowest_allowed, Damage::Order(page))?;
            self.ensure(page < self.pages, Damage::Range(page))?;
            changed.push((page, array_at(entry, 4)));
            lowest_allowed = page + 1;
        }
        Ok(changed)
    }

    /// Returns `Damaged` with this damage if the condition is false.
    pub(super) fn ensure(&self, condition: bool, damage: Damage) -> Result<(), Error> {
        if condition { Ok(()) } else { Err(Error::Damaged { key: self.key, damage }) }
    }
}

/// Writes the part of an object before its packed pages. The caller appends the packed pages and then calls
/// [`append_checksum`].
pub(super) fn start_object(payload: &HeapPayload, parent: Option<Digest>, changed: &[ChangedPage]) -> Vec<u8> {
    let mut object = Vec::with_capacity(PAYLOAD_OFFSET + PAYLOAD_BYTES + 37 + changed.len() * LIST_ENTRY_BYTES + 1024);
    object.extend_from_slice(&MAGIC);
    object.extend_from_slice(&(Packing::Runs as u16).to_be_bytes());
    debug_assert_eq!(object.len(), KEY_OFFSET);
    object.extend_from_slice(payload.key().as_bytes());
    object.extend_from_slice(&payload.to_bytes());
    object.push(u8::from(parent.is_some()));
    object.extend(parent.iter().flat_map(|key| key.as_bytes()));
    object.extend_from_slice(&(changed.len() as u32).to_be_bytes());
    for (page, digest) in changed {
        object.extend_from_slice(&page.to_be_bytes());
        object.extend_from_slice(digest);
    }
    object
}

pub(super) fn append_checksum(object: &mut Vec<u8>) {
    let checksum = Digest::of(object);
    object.extend_from_slice(checksum.as_bytes());
}

/// Reads an object from its beginning.
struct ObjectReader<'a> {
    /// The bytes of the object that have not been read yet.
    bytes: &'a [u8],
    /// The key of the object. It is `None` until the key was read; an error before that is `NotAHeap`.
    key: Option<Digest>,
}

impl<'a> ObjectReader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let truncated = self.key.map_or(Error::NotAHeap, |key| Error::Damaged { key, damage: Damage::Truncated });
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        Ok(array_at(self.take(N)?, 0))
    }
}
