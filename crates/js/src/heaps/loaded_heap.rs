//! A loaded heap: the digests of its pages, a memory file that related heaps share, and an overlay. The overlay is the
//! list of the pages that differ from the memory file.
//! Invariant: the content of each page matches its digest in the image. A page that is in neither the overlay nor the
//! file is zero.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::Digest;

use crate::image::{Image, PAGE_BYTES, ZERO_PAGE};
use crate::machine::MemoryFile;

use super::page::{Charge, HeapPage, PagePool};

/// The largest number of objects in the chain from a heap to the base image. A reader of the heap needs all of them.
pub const MAX_LINKS: u32 = 32;
/// The number of consecutive objects of equal weight that the next object replaces. The weight is about the number of
/// steps that an object covers.
const OBJECTS_PER_GROUP: u32 = 3;
/// A step that writes more pages than this number does not change the prediction of written pages ([`LikelyWrites`]).
const MAX_LIKELY_PAGES: usize = 96;
/// The number of steps of each kind that contribute to the prediction of written pages. Without this bound the
/// prediction would grow with each step.
const MAX_SAMPLES_PER_KIND: u32 = 2;

/// An immutable heap in memory.
pub struct LoadedHeap {
    pub image: Image,
    backing: Arc<Backing>,
    /// The pages that differ from the memory file, in rising order. Each page is copied when the heap is mapped into a
    /// guest.
    overlay: Vec<(u32, Arc<HeapPage>)>,
    /// The parent: this heap's object stores the difference to the parent. It is `None` for the base image, and until
    /// the object is made.
    object_parent: Option<Arc<LoadedHeap>>,
    /// The number of objects that a reader needs to load this heap. The base image needs no object.
    pub links: u32,
    /// The approximate number of steps that this heap's object covers, rounded to a power of four.
    weight: u32,
    /// Counts the memory of the digests and of the overlay's list in the pool. Each overlay page has a charge of its
    /// own.
    _charge: Charge,
}

/// The memory file of related heaps, and the prediction of the pages that guests on this file write.
struct Backing {
    file: MemoryFile,
    likely: Mutex<LikelyWrites>,
    /// Counts the memory of the file's pages in the pool.
    _charge: Charge,
}

/// A prediction of the pages that a guest on this memory file writes. A new guest copies these pages before its step
/// starts, which saves one page fault for each page.
struct LikelyWrites {
    /// The predicted pages, in rising order. Until the first sample is recorded, they are the prediction of the earlier
    /// memory file.
    pages: Arc<[u32]>,
    /// The number of recorded steps that started a script, and of recorded steps that resumed a script. The two kinds
    /// write different pages.
    samples: [u32; 2],
    /// Whether the pages of a trial run were recorded. A trial run executes a short script on a new guest, to learn
    /// which pages scripts write.
    has_trial: bool,
}

/// The heap that the next object is encoded against.
pub struct ObjectParent {
    pub heap: Arc<LoadedHeap>,
    /// The weight of the next object, if it is encoded against `heap`.
    pub weight: u32,
}

impl LoadedHeap {
    /// Returns the base image of an engine as a loaded heap.
    pub fn base(pool: &Arc<PagePool>, image: Image, memory: &[u8]) -> io::Result<Self> {
        let pages = (0..).zip(memory.chunks_exact(PAGE_BYTES)).filter(|(_, page)| *page != ZERO_PAGE);
        let backing = Arc::new(Backing::create(pool, memory.len(), pages, Arc::default())?);
        // The digests of the base image are not counted: an engine has one base image, and it lives as long as the
        // engine.
        let _charge = pool.charge(0);
        Ok(Self { image, backing, overlay: Vec::new(), object_parent: None, links: 0, weight: 0, _charge })
    }

    /// Returns the heap that has the pages `changed` instead of the pages of `self`. `changed` is in rising order. The
    /// new heap has no object yet.
    pub fn with_changes(&self, pool: &Arc<PagePool>, image: Image, changed: &[(u32, Arc<HeapPage>)]) -> Self {
        let mut overlay = Vec::with_capacity(self.overlay.len() + changed.len());
        let mut old = self.overlay.iter().peekable();
        for (at, page) in changed {
            while let Some(entry) = old.next_if(|(old_at, _)| old_at < at) {
                overlay.push(entry.clone());
            }
            old.next_if(|(old_at, _)| old_at == at);
            overlay.push((*at, page.clone()));
        }
        overlay.extend(old.cloned());
        let list_bytes = overlay.len() * size_of::<(u32, Arc<HeapPage>)>();
        let _charge = pool.charge(image.unshared_bytes(&self.image) + list_bytes);
        Self { image, backing: self.backing.clone(), overlay, object_parent: None, links: 0, weight: 0, _charge }
    }

    /// Returns the heap whose pages are all in `file`. `written_bytes` is the size of the part of the file that uses
    /// memory.
    pub(super) fn with_file(&self, pool: &Arc<PagePool>, image: Image, file: MemoryFile, written_bytes: usize) -> Self {
        let _charge = pool.charge(image.unshared_bytes(&self.image));
        let backing = Arc::new(Backing::new(file, self.likely_writes(), pool.charge(written_bytes)));
        Self { image, backing, overlay: Vec::new(), object_parent: None, links: 0, weight: 0, _charge }
    }

    /// Copies the heap to a memory file of its own if its overlay has more than [`max_overlay_pages`].
    pub fn bound_overlay(&mut self, pool: &Arc<PagePool>) -> io::Result<()> {
        if self.overlay.len() <= max_overlay_pages(self.image.pages()) {
            return Ok(());
        }
        let pages = (0..self.image.pages()).map(|at| (at, self.page(at))).filter(|(_, page)| *page != ZERO_PAGE);
        let backing = Backing::create(pool, self.image.memory_bytes() as usize, pages, self.likely_writes())?;
        self.backing = Arc::new(backing);
        self.overlay = Vec::new();
        Ok(())
    }

    pub fn key(&self) -> Digest {
        self.image.key()
    }

    pub fn file(&self) -> &MemoryFile {
        &self.backing.file
    }

    /// Returns whether both heaps are overlays of the same memory file.
    pub fn shares_file_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.backing, &other.backing)
    }

    pub fn overlay(&self) -> &[(u32, Arc<HeapPage>)] {
        &self.overlay
    }

    pub fn is_in_overlay(&self, at: u32) -> bool {
        self.overlay.binary_search_by_key(&at, |(page, _)| *page).is_ok()
    }

    pub fn page(&self, at: u32) -> &[u8] {
        match self.overlay.binary_search_by_key(&at, |(page, _)| *page) {
            Ok(index) => self.overlay[index].1.bytes(),
            Err(_) => self.backing.file.page(at).unwrap_or(&ZERO_PAGE),
        }
    }

    /// Returns the pages that a guest on this heap is likely to write, in rising order.
    pub fn likely_writes(&self) -> Arc<[u32]> {
        self.backing.likely().pages.clone()
    }

    pub fn has_trial(&self) -> bool {
        self.backing.likely().has_trial
    }

    /// Records the pages that a trial run wrote. They are the prediction until the first step of a script is recorded.
    pub fn record_trial(&self, pages: &[u32]) {
        let mut likely = self.backing.likely();
        likely.has_trial = true;
        if likely.samples == [0; 2] && pages.len() <= MAX_LIKELY_PAGES {
            likely.pages = pages.into();
        }
    }

    /// Records the pages that a step wrote. `resumes` is true if the step resumed a script that waited.
    pub fn record_writes(&self, resumes: bool, pages: &[u32]) {
        let mut likely = self.backing.likely();
        let kind = usize::from(resumes);
        if likely.samples[kind] == MAX_SAMPLES_PER_KIND || pages.len() > MAX_LIKELY_PAGES {
            return;
        }
        // The first sample replaces the pages of the trial or of the earlier file.
        let is_first = likely.samples == [0; 2];
        likely.samples[kind] += 1;
        likely.pages = if is_first { pages.into() } else { bounded_union(&likely.pages, pages) };
    }

    pub fn set_object_parent(&mut self, parent: ObjectParent) {
        self.links = parent.heap.links + 1;
        self.object_parent = Some(parent.heap);
        self.weight = parent.weight;
    }

    pub fn object_parent(&self) -> Option<&Arc<LoadedHeap>> {
        self.object_parent.as_ref()
    }

    /// Returns the key of the object's parent, unless that is the base image, which objects do not name.
    pub fn object_parent_key(&self) -> Option<Digest> {
        self.object_parent.as_ref().filter(|parent| !parent.image.is_base()).map(|parent| parent.key())
    }
}

/// Returns the best parent for the object of the heap after `last`. Three consecutive objects of equal weight and the
/// next object become one object of four times the weight, as digits carry in counting. A chain of ten thousand steps
/// then has about twenty objects, and the cost of a step does not grow with the number of steps before it.
pub fn gathered_parent(last: &Arc<LoadedHeap>) -> ObjectParent {
    let mut heap = last.clone();
    let mut weight = 1;
    loop {
        let mut before_group = heap.clone();
        let mut count = 0;
        while count < OBJECTS_PER_GROUP && before_group.weight == weight {
            let Some(parent) = before_group.object_parent.clone() else { break };
            before_group = parent;
            count += 1;
        }
        if count < OBJECTS_PER_GROUP {
            return ObjectParent { heap, weight };
        }
        heap = before_group;
        weight = weight.saturating_mul(OBJECTS_PER_GROUP + 1);
    }
}

/// Returns the largest overlay of a heap with this number of pages. Each overlay page is copied when the heap is mapped
/// and compared in every step, while the cost of a new file grows with the heap. The sum of both costs is smallest at
/// the square root.
pub fn max_overlay_pages(memory_pages: u32) -> usize {
    (memory_pages as usize * 16).isqrt()
}

impl Backing {
    fn create<'a>(
        pool: &Arc<PagePool>,
        bytes: usize,
        pages: impl Iterator<Item = (u32, &'a [u8])>,
        likely_pages: Arc<[u32]>,
    ) -> io::Result<Self> {
        let mut written_bytes = 0;
        let file = MemoryFile::create(bytes, pages.inspect(|_| written_bytes += PAGE_BYTES))?;
        Ok(Self::new(file, likely_pages, pool.charge(written_bytes)))
    }

    fn new(file: MemoryFile, likely_pages: Arc<[u32]>, charge: Charge) -> Self {
        let likely = LikelyWrites { pages: likely_pages, samples: [0; 2], has_trial: false };
        Self { file, likely: Mutex::new(likely), _charge: charge }
    }

    fn likely(&self) -> MutexGuard<'_, LikelyWrites> {
        // A wrong prediction costs time only, so the prediction is usable even if a thread panicked while it held the
        // lock.
        self.likely.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the union of both lists, or the first list if the union is too large.
fn bounded_union(pages: &Arc<[u32]>, more: &[u32]) -> Arc<[u32]> {
    let union: BTreeSet<u32> = pages.iter().chain(more).copied().collect();
    if union.len() <= MAX_LIKELY_PAGES { union.into_iter().collect() } else { pages.clone() }
}
