//! The type `Image`: the digests of a heap's pages, of its groups of 64 pages, and the root, which is the digest of the
//! group digests.
//! Invariant: an image depends only on the engine and the memory, so equal memories of one engine have equal keys.

use std::sync::Arc;

use base::Digest;
use sha2::{Digest as _, Sha256};

use super::payload::{HeapPayload, PageDigest, check_page_count, memory_bytes, pages_of};
use super::{Error, PAGE_BYTES, ZERO_PAGE};

/// The number of pages in a group. If a page changes, the digest of its group and the root are computed again.
const PAGES_PER_GROUP: usize = 64;

/// The digest of a page of zeros. It is a fixed value, so that pages that were never written need no hashing. No page
/// is known whose SHA-256 is this value.
const ZERO_PAGE_DIGEST: PageDigest = [0; 32];

/// The key of a heap and the digests that the key is computed from.
#[derive(Debug, Clone)]
pub struct Image {
    /// The name of the engine that made the heap.
    engine: Digest,
    /// Whether this is the engine's base image, at which every chain of objects ends.
    is_base: bool,
    /// The memory size in pages.
    pages: u32,
    /// The groups of pages. Images of ancestors share unchanged groups, so an image needs new memory only for the
    /// groups that changed.
    groups: Vec<Arc<PageGroup>>,
    /// The SHA-256 of all group digests.
    root: [u8; 32],
    key: Digest,
}

#[derive(Debug, Clone)]
struct PageGroup {
    pages: [PageDigest; PAGES_PER_GROUP],
    /// The SHA-256 of the digests of the pages that exist. The last group of a memory may have fewer pages.
    digest: [u8; 32],
}

impl Image {
    /// Returns the base image of an engine, which has this memory after the boot.
    pub fn base(engine: Digest, memory: &[u8]) -> Result<Self, Error> {
        let pages = pages_of(memory)?;
        let empty = Self {
            engine,
            is_base: true,
            pages: 0,
            groups: Vec::new(),
            root: ZERO_PAGE_DIGEST,
            key: Digest::from_bytes(ZERO_PAGE_DIGEST),
        };
        let digests = memory.chunks_exact(PAGE_BYTES).zip(0..).map(|(page, at)| (at, digest_of(page)));
        empty.with_digests(digests, pages)
    }

    /// Returns the image of a heap that has the pages `changes` instead of the pages of `self`, and `pages` pages in
    /// total. Each change is a page number and the whole page. New pages that are not in `changes` are zero.
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
        // If a step on the base image changes no page, its image is still the base image.
        Ok(Self { is_base: self.is_base && next.key == self.key, ..next })
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
        let mut changed_groups: Vec<usize> = Vec::new();
        if pages > self.pages {
            let count = (pages as usize).div_ceil(PAGES_PER_GROUP);
            // The old last group may have been partial, and the new last group may be partial. Their digests now cover
            // other pages, so both are computed again.
            changed_groups.extend(groups.len().checked_sub(1));
            let zero_pages = [ZERO_PAGE_DIGEST; PAGES_PER_GROUP];
            groups.resize(count, Arc::new(PageGroup { pages: zero_pages, digest: group_digest(&zero_pages) }));
            changed_groups.push(count - 1);
        }
        for (at, digest) in digests {
            let group_index = at as usize / PAGES_PER_GROUP;
            let group = groups.get_mut(group_index).filter(|_| at < pages).ok_or(Error::NoPage(at))?;
            Arc::make_mut(group).pages[at as usize % PAGES_PER_GROUP] = digest;
            if changed_groups.last() != Some(&group_index) {
                changed_groups.push(group_index);
            }
        }
        changed_groups.sort_unstable();
        changed_groups.dedup();
        for group_index in changed_groups {
            let group = Arc::make_mut(&mut groups[group_index]);
            let existing_pages = PAGES_PER_GROUP.min(pages as usize - group_index * PAGES_PER_GROUP);
            group.digest = group_digest(&group.pages[..existing_pages]);
        }
        let mut hash = Sha256::new();
        groups.iter().for_each(|group| hash.update(group.digest));
        let root = hash.finalize().into();
        let key = HeapPayload { engine: self.engine, pages, root }.key();
        Ok(Self { engine: self.engine, is_base: self.is_base, pages, groups, root, key })
    }

    /// Returns the memory in bytes that this image does not share with `other`.
    pub fn unshared_bytes(&self, other: &Image) -> usize {
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
        self.is_base
    }

    pub fn pages(&self) -> u32 {
        self.pages
    }

    pub fn memory_bytes(&self) -> u64 {
        memory_bytes(self.pages)
    }

    /// Returns the numbers of the pages of `next` whose digest differs from the digest in `self`, in rising order. A
    /// page that `self` does not have counts as a page of zeros.
    pub fn differing(&self, next: &Image) -> Vec<u32> {
        let mut differing = Vec::new();
        for (group_index, group) in next.groups.iter().enumerate() {
            let own_group = self.groups.get(group_index);
            if own_group.is_some_and(|own_group| Arc::ptr_eq(own_group, group)) {
                continue;
            }
            let first_page = (group_index * PAGES_PER_GROUP) as u32;
            for (page, digest) in (first_page..).zip(&group.pages) {
                let own_digest =
                    own_group.map_or(ZERO_PAGE_DIGEST, |own_group| own_group.pages[page as usize % PAGES_PER_GROUP]);
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

    /// Returns the same image, marked as a descendant of the base image. An image that was read from an object is
    /// always a descendant.
    pub(super) fn into_descendant(self) -> Self {
        Self { is_base: false, ..self }
    }

    pub(super) fn digest(&self, page: u32) -> Option<PageDigest> {
        let group = self.groups.get(page as usize / PAGES_PER_GROUP).filter(|_| page < self.pages)?;
        Some(group.pages[page as usize % PAGES_PER_GROUP])
    }
}

pub(super) fn digest_of(page: &[u8]) -> PageDigest {
    if page == ZERO_PAGE { ZERO_PAGE_DIGEST } else { Sha256::digest(page).into() }
}

fn group_digest(pages: &[PageDigest]) -> [u8; 32] {
    Sha256::digest(pages.as_flattened()).into()
}
