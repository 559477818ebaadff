//! The digests of one heap: of pages, of groups of 64 pages, and their root.
//! Invariant: an image is determined by its engine and its memory alone, so that equal memories have equal keys.

use std::sync::Arc;

use base::Digest;
use sha2::{Digest as _, Sha256};

use super::frame::Payload;
use super::{Error, GRAIN, MOST_PAGES, PAGE, ZERO_PAGE};

const GROUP: usize = 64;

pub(super) type PageDigest = [u8; 32];

/// Of a page of zeros. No SHA-256 is known to be this.
const ZERO: PageDigest = [0; 32];

/// Groups are shared between the images of a lineage: the next image costs memory for what changed.
#[derive(Debug, Clone)]
pub struct Image {
    engine: Digest,
    /// Whether this is the image that the engine booted with.
    base: bool,
    pages: u32,
    groups: Vec<Arc<Group>>,
    root: [u8; 32],
    key: Digest,
}

#[derive(Debug, Clone)]
struct Group {
    pages: [PageDigest; GROUP],
    digest: [u8; 32],
}

impl Image {
    /// The image an engine boots with: every chain of objects ends there.
    pub fn base(engine: Digest, memory: &[u8]) -> Result<Self, Error> {
        let pages = pages_of(memory.len() as u64)?;
        let nothing =
            Self { engine, base: true, pages: 0, groups: Vec::new(), root: ZERO, key: Digest::from_bytes(ZERO) };
        let digests = memory.chunks_exact(PAGE).zip(0..).map(|(page, at)| (at, digest_of(page)));
        nothing.with_digests(digests, pages)
    }

    /// The image after these pages were written, of a memory of so many pages now. Pages that were not there are zero.
    pub fn with_changes<'a>(
        &self,
        changes: impl IntoIterator<Item = (u32, &'a [u8])>,
        pages: u32,
    ) -> Result<Self, Error> {
        check_pages(pages)?;
        let mut digests = Vec::new();
        for (at, page) in changes {
            if page.len() != PAGE {
                return Err(Error::NoPage(at));
            }
            digests.push((at, digest_of(page)));
        }
        let next = self.with_digests(digests, pages)?;
        Ok(Self { base: self.base && next.key == self.key, ..next })
    }

    pub(super) fn with_digests(
        &self,
        digests: impl IntoIterator<Item = (u32, PageDigest)>,
        pages: u32,
    ) -> Result<Self, Error> {
        if pages < self.pages {
            return Err(Error::MemorySize(u64::from(pages) * PAGE as u64));
        }
        let mut groups = self.groups.clone();
        let mut touched: Vec<usize> = Vec::new();
        if pages > self.pages {
            let count = (pages as usize).div_ceil(GROUP);
            touched.extend(groups.len().checked_sub(1));
            let zero = Arc::new(Group { pages: [ZERO; GROUP], digest: group_digest(&[ZERO; GROUP]) });
            groups.resize(count, zero);
            touched.push(count - 1);
        }
        for (at, digest) in digests {
            let group = groups.get_mut(at as usize / GROUP).filter(|_| at < pages).ok_or(Error::NoPage(at))?;
            Arc::make_mut(group).pages[at as usize % GROUP] = digest;
            if touched.last() != Some(&(at as usize / GROUP)) {
                touched.push(at as usize / GROUP);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for at in touched {
            let group = Arc::make_mut(&mut groups[at]);
            group.digest = group_digest(&group.pages[..GROUP.min(pages as usize - at * GROUP)]);
        }
        let mut hash = Sha256::new();
        groups.iter().for_each(|group| hash.update(group.digest));
        let root = hash.finalize().into();
        let key = Payload { engine: self.engine, pages, root }.key();
        Ok(Self { engine: self.engine, base: self.base, pages, groups, root, key })
    }

    /// Bytes that this image has for itself beside those it shares with another one.
    pub fn own_bytes(&self, other: &Image) -> usize {
        let shared =
            |at: usize, group: &Arc<Group>| other.groups.get(at).is_some_and(|other| Arc::ptr_eq(group, other));
        let own = self.groups.iter().enumerate().filter(|(at, group)| !shared(*at, group)).count();
        own * size_of::<Group>() + self.groups.len() * size_of::<Arc<Group>>()
    }

    pub fn key(&self) -> Digest {
        self.key
    }

    pub fn engine(&self) -> Digest {
        self.engine
    }

    pub fn is_base(&self) -> bool {
        self.base
    }

    pub fn pages(&self) -> u32 {
        self.pages
    }

    pub fn memory_bytes(&self) -> u64 {
        u64::from(self.pages) * PAGE as u64
    }

    /// Whether this is what a page of the memory holds.
    pub fn holds(&self, page: u32, bytes: &[u8]) -> bool {
        bytes.len() == PAGE && self.digest(page) == Some(digest_of(bytes))
    }

    /// The pages of `next` that are not the same here, in rising order. A page that is not here counts as zero.
    pub fn differing(&self, next: &Image) -> Vec<u32> {
        let mut differing = Vec::new();
        for (at, group) in next.groups.iter().enumerate() {
            let here = self.groups.get(at);
            if here.is_some_and(|here| Arc::ptr_eq(here, group)) {
                continue;
            }
            let first = (at * GROUP) as u32;
            for (page, digest) in (first..).zip(&group.pages) {
                let old = here.map_or(ZERO, |here| here.pages[page as usize % GROUP]);
                if page < next.pages && old != *digest {
                    differing.push(page);
                }
            }
        }
        differing
    }

    pub(super) fn root(&self) -> [u8; 32] {
        self.root
    }

    /// Unlike everything made of it, an image that was made from the base image is not the base image.
    pub(super) fn descended(self) -> Self {
        Self { base: false, ..self }
    }

    pub(super) fn digest(&self, page: u32) -> Option<PageDigest> {
        let group = self.groups.get(page as usize / GROUP).filter(|_| page < self.pages)?;
        Some(group.pages[page as usize % GROUP])
    }
}

pub(super) fn digest_of(page: &[u8]) -> PageDigest {
    if page == ZERO_PAGE { ZERO } else { Sha256::digest(page).into() }
}

fn group_digest(pages: &[PageDigest]) -> [u8; 32] {
    Sha256::digest(pages.as_flattened()).into()
}

pub(super) fn pages_of(bytes: u64) -> Result<u32, Error> {
    let pages = u32::try_from(bytes / PAGE as u64).map_err(|_| Error::MemorySize(bytes))?;
    check_pages(pages)?;
    if bytes.is_multiple_of(PAGE as u64) { Ok(pages) } else { Err(Error::MemorySize(bytes)) }
}

fn check_pages(pages: u32) -> Result<(), Error> {
    let fits = pages > 0 && pages <= MOST_PAGES && pages.is_multiple_of(GRAIN);
    if fits { Ok(()) } else { Err(Error::MemorySize(u64::from(pages) * PAGE as u64)) }
}
