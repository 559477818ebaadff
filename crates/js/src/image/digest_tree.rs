//! The digests of one heap: of its pages, of groups of 64 pages, and their root.
//! Invariant: an image depends only on the engine and the memory, so equal memories have equal keys.

use std::sync::Arc;

use base::Digest;
use sha2::{Digest as _, Sha256};

use super::payload::{HeapPayload, PageDigest, check_page_count, memory_bytes, pages_of};
use super::{Error, PAGE_BYTES, ZERO_PAGE};

/// The number of pages of a group. A changed page costs the digest of its group and of all group digests.
const GROUP_PAGES: usize = 64;

/// The digest that stands for a page of zeros, so that untouched pages need no hashing. No page is known to have this
/// SHA-256.
const ZERO_DIGEST: PageDigest = [0; 32];

/// The digests of a heap and its key.
#[derive(Debug, Clone)]
pub struct Image {
    /// The engine that made the heap.
    engine: Digest,
    /// Whether this is the image that the engine booted with, at which every chain of objects ends.
    base: bool,
    /// The memory size in pages.
    pages: u32,
    /// The groups, shared with the images of ancestors, so that the next image needs memory only for the groups that
    /// changed.
    groups: Vec<Arc<PageGroup>>,
    /// The SHA-256 of all group digests.
    root: [u8; 32],
    key: Digest,
}

#[derive(Debug, Clone)]
struct PageGroup {
    pages: [PageDigest; GROUP_PAGES],
    /// The SHA-256 of the page digests that exist: the last group of a memory may be partial.
    digest: [u8; 32],
}

impl Image {
    /// Returns the image that an engine boots with.
    pub fn base(engine: Digest, memory: &[u8]) -> Result<Self, Error> {
        let pages = pages_of(memory)?;
        let empty = Self {
            engine,
            base: true,
            pages: 0,
            groups: Vec::new(),
            root: ZERO_DIGEST,
            key: Digest::from_bytes(ZERO_DIGEST),
        };
        let digests = memory.chunks_exact(PAGE_BYTES).zip(0..).map(|(page, at)| (at, digest_of(page)));
        empty.with_digests(digests, pages)
    }

    /// Returns the image after these pages were written and the memory has grown to `pages`. New pages that are not
    /// listed are zero.
    pub fn with_changes<'a>(
        &self,
        changes: impl IntoIterator<Item = (u32, &'a [u8])>,
        pages: u32,
    ) -> Result<Self, Error> {
        check_page_count(pages)?;
        let mut digests = Vec::new();
        for (at, page) in changes {
            if page.len() != PAGE_BYTES {
                return Err(Error::NoPage(at));
            }
            digests.push((at, digest_of(page)));
        }
        let next = self.with_digests(digests, pages)?;
        // A step that changes nothing stays on the base image. Any change leaves it.
        Ok(Self { base: self.base && next.key == self.key, ..next })
    }

    pub(super) fn with_digests(
        &self,
        digests: impl IntoIterator<Item = (u32, PageDigest)>,
        pages: u32,
    ) -> Result<Self, Error> {
        if pages < self.pages {
            return Err(Error::MemorySize(memory_bytes(pages)));
        }
        let mut groups = self.groups.clone();
        let mut touched: Vec<usize> = Vec::new();
        if pages > self.pages {
            let count = (pages as usize).div_ceil(GROUP_PAGES);
            // The last group may have been partial, and the new last group may be partial: both digests cover other
            // pages now.
            touched.extend(groups.len().checked_sub(1));
            let zero_pages = [ZERO_DIGEST; GROUP_PAGES];
            groups.resize(count, Arc::new(PageGroup { pages: zero_pages, digest: group_digest(&zero_pages) }));
            touched.push(count - 1);
        }
        for (at, digest) in digests {
            let group_index = at as usize / GROUP_PAGES;
            let group = groups.get_mut(group_index).filter(|_| at < pages).ok_or(Error::NoPage(at))?;
            Arc::make_mut(group).pages[at as usize % GROUP_PAGES] = digest;
            if touched.last() != Some(&group_index) {
                touched.push(group_index);
            }
        }
        touched.sort_unstable();
        touched.dedup();
        for group_index in touched {
            let group = Arc::make_mut(&mut groups[group_index]);
            let existing_pages = GROUP_PAGES.min(pages as usize - group_index * GROUP_PAGES);
            group.digest = group_digest(&group.pages[..existing_pages]);
        }
        let mut hash = Sha256::new();
        groups.iter().for_each(|group| hash.update(group.digest));
        let root = hash.finalize().into();
        let key = HeapPayload { engine: self.engine, pages, root }.key();
        Ok(Self { engine: self.engine, base: self.base, pages, groups, root, key })
    }

    /// Returns the bytes that this image needs in addition to those that it shares with `other`.
    pub fn own_bytes(&self, other: &Image) -> usize {
        let is_shared =
            |at: usize, group: &Arc<PageGroup>| other.groups.get(at).is_some_and(|other| Arc::ptr_eq(group, other));
        let own_groups = self.groups.iter().enumerate().filter(|(at, group)| !is_shared(*at, group)).count();
        own_groups * size_of::<PageGroup>() + self.groups.len() * size_of::<Arc<PageGroup>>()
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
        memory_bytes(self.pages)
    }

    /// Returns the pages of `next` whose digest differs from this image, in rising order. A page that this image does
    /// not have counts as zero.
    pub fn differing(&self, next: &Image) -> Vec<u32> {
        let mut differing = Vec::new();
        for (group_index, group) in next.groups.iter().enumerate() {
            let own_group = self.groups.get(group_index);
            if own_group.is_some_and(|own_group| Arc::ptr_eq(own_group, group)) {
                continue;
            }
            let first_page = (group_index * GROUP_PAGES) as u32;
            for (page, digest) in (first_page..).zip(&group.pages) {
                let own_digest =
                    own_group.map_or(ZERO_DIGEST, |own_group| own_group.pages[page as usize % GROUP_PAGES]);
                if page < next.pages && own_digest != *digest {
                    differing.push(page);
                }
            }
        }
        differing
    }

    pub(super) fn root(&self) -> [u8; 32] {
        self.root
    }

    /// Returns the same image, marked as not being the base image. An image that was read from an object never is.
    pub(super) fn into_descendant(self) -> Self {
        Self { base: false, ..self }
    }

    pub(super) fn digest(&self, page: u32) -> Option<PageDigest> {
        let group = self.groups.get(page as usize / GROUP_PAGES).filter(|_| page < self.pages)?;
        Some(group.pages[page as usize % GROUP_PAGES])
    }
}

pub(super) fn digest_of(page: &[u8]) -> PageDigest {
    if page == ZERO_PAGE { ZERO_DIGEST } else { Sha256::digest(page).into() }
}

fn group_digest(pages: &[PageDigest]) -> [u8; 32] {
    Sha256::digest(pages.as_flattened()).into()
}
