//! The layout of an object: what stands around the packed pages.
//! Invariant: a frame exists only for an object whose checksums add up; what its pages hold is not looked at here.

use base::Digest;

use super::tree::{PageDigest, pages_of};
use super::{Damage, Error, PAGE};

pub const MAGIC: [u8; 8] = *b"TOKAHEAP";
/// How a key is made.
const FORMAT: u16 = 1;

/// How pages are packed: what the format before the key says. Old objects are read for ever; the key tells nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    /// Whole pages.
    Whole = 1,
    /// What of them differs (`runs.rs`).
    Runs = 2,
}

impl Packing {
    fn of(format: u16) -> Option<Self> {
        [Self::Whole, Self::Runs].into_iter().find(|packing| *packing as u16 == format)
    }
}

const KEY_AT: usize = 10;
const PAYLOAD_AT: usize = 42;
const PAYLOAD: usize = 74;
const ENTRY: usize = 36;
const CHECKSUM: usize = 32;

/// What a key is the digest of.
pub(super) struct Payload {
    pub engine: Digest,
    pub pages: u32,
    pub root: [u8; 32],
}

impl Payload {
    pub fn key(&self) -> Digest {
        Digest::of(&self.bytes())
    }

    pub fn bytes(&self) -> [u8; PAYLOAD] {
        let mut bytes = [0; PAYLOAD];
        bytes[..2].copy_from_slice(&FORMAT.to_be_bytes());
        bytes[2..34].copy_from_slice(self.engine.as_bytes());
        bytes[34..42].copy_from_slice(&(u64::from(self.pages) * PAGE as u64).to_be_bytes());
        bytes[42..].copy_from_slice(&self.root);
        bytes
    }
}

/// An object, read as far as its checksums reach.
#[derive(Debug, Clone)]
pub struct Frame<'a> {
    pub key: Digest,
    /// `None` is the engine's base image.
    pub parent: Option<Digest>,
    pub engine: Digest,
    pub memory_bytes: u64,
    pub pages: u32,
    pub(super) root: [u8; 32],
    entries: &'a [u8],
    pub(super) packing: Packing,
    pub(super) packed: &'a [u8],
}

impl<'a> Frame<'a> {
    pub fn read(object: &'a [u8]) -> Result<Self, Error> {
        let mut rest = Rest { bytes: object, key: None };
        if rest.array::<8>()? != MAGIC {
            return Err(Error::NotAHeap);
        }
        let format = u16::from_be_bytes(rest.array()?);
        let key = Digest::from_bytes(rest.array()?);
        rest.key = Some(key);
        let packing = Packing::of(format).ok_or(Error::Damaged { key, damage: Damage::Format(format) })?;
        let payload: [u8; PAYLOAD] = rest.array()?;
        rest.hold(Digest::of(&payload) == key, Damage::Payload)?;
        let engine = Digest::from_bytes(part(&payload, 2));
        let memory_bytes = u64::from_be_bytes(part(&payload, 34));
        let pages =
            pages_of(memory_bytes).map_err(|_| Error::Damaged { key, damage: Damage::MemorySize(memory_bytes) })?;
        let inner = u16::from_be_bytes(part(&payload, 0));
        rest.hold(inner == FORMAT, Damage::Format(inner))?;
        let sum = rest.bytes.len().checked_sub(CHECKSUM).ok_or(Error::Damaged { key, damage: Damage::Truncated })?;
        let (body, checksum) = rest.bytes.split_at(sum);
        let all = &object[..object.len() - CHECKSUM];
        rest.hold(Digest::of(all).as_bytes().as_slice() == checksum, Damage::Checksum)?;
        rest.bytes = body;
        let parent = match rest.array::<1>()? {
            [0] => None,
            [1] => Some(Digest::from_bytes(rest.array()?)),
            _ => return Err(Error::Damaged { key, damage: Damage::ParentMark }),
        };
        rest.hold(parent != Some(key), Damage::OwnParent)?;
        let count = u32::from_be_bytes(rest.array()?) as usize;
        let entries = rest.take(count.saturating_mul(ENTRY))?;
        let root = part(&payload, 42);
        Ok(Frame { key, parent, engine, memory_bytes, pages, root, entries, packing, packed: rest.bytes })
    }

    /// The frame of an object that was asked for by this key.
    pub fn read_as(key: Digest, object: &'a [u8]) -> Result<Self, Error> {
        let frame = Self::read(object)?;
        let right = frame.key == key;
        if right { Ok(frame) } else { Err(Error::Damaged { key, damage: Damage::Swapped(frame.key) }) }
    }

    /// How many pages it changes.
    pub fn count(&self) -> usize {
        self.entries.len() / ENTRY
    }

    /// The changed pages, if their numbers rise and lie in the memory.
    pub(super) fn changed(&self) -> Result<Vec<(u32, PageDigest)>, Error> {
        let mut changed = Vec::with_capacity(self.count());
        let mut least = 0;
        for entry in self.entries.chunks_exact(ENTRY) {
            let page = u32::from_be_bytes(part(entry, 0));
            self.hold(page >= least, Damage::Order(page))?;
            self.hold(page < self.pages, Damage::Range(page))?;
            changed.push((page, part(entry, 4)));
            least = page + 1;
        }
        Ok(changed)
    }

    pub(super) fn hold(&self, holds: bool, damage: Damage) -> Result<(), Error> {
        if holds { Ok(()) } else { Err(Error::Damaged { key: self.key, damage }) }
    }
}

/// An object up to its packed pages, which the caller appends; then [`close`].
pub(super) fn open(payload: &Payload, parent: Option<Digest>, changed: &[(u32, PageDigest)]) -> Vec<u8> {
    let mut object = Vec::with_capacity(PAYLOAD_AT + PAYLOAD + 37 + changed.len() * ENTRY + 1024);
    object.extend_from_slice(&MAGIC);
    object.extend_from_slice(&(Packing::Runs as u16).to_be_bytes());
    debug_assert_eq!(object.len(), KEY_AT);
    object.extend_from_slice(payload.key().as_bytes());
    object.extend_from_slice(&payload.bytes());
    object.push(u8::from(parent.is_some()));
    object.extend(parent.iter().flat_map(|key| key.as_bytes()));
    object.extend_from_slice(&(changed.len() as u32).to_be_bytes());
    for (page, digest) in changed {
        object.extend_from_slice(&page.to_be_bytes());
        object.extend_from_slice(digest);
    }
    object
}

pub(super) fn close(object: &mut Vec<u8>) {
    let sum = Digest::of(object);
    object.extend_from_slice(sum.as_bytes());
}

/// What has not been read yet, and whose it is as far as that is known.
struct Rest<'a> {
    bytes: &'a [u8],
    key: Option<Digest>,
}

impl<'a> Rest<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let missing = self.key.map_or(Error::NotAHeap, |key| Error::Damaged { key, damage: Damage::Truncated });
        let (taken, bytes) = self.bytes.split_at_checked(count).ok_or(missing)?;
        self.bytes = bytes;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        Ok(part(self.take(N)?, 0))
    }

    fn hold(&self, holds: bool, damage: Damage) -> Result<(), Error> {
        match self.key {
            Some(key) if !holds => Err(Error::Damaged { key, damage }),
            _ => Ok(()),
        }
    }
}

/// `N` bytes from a place that is known to have them.
fn part<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}
