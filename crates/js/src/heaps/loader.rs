//! Builds a loaded heap from the verified pages of an object.
//! Invariant: [`HeapLoader::finish`] is called only after the whole object was verified. A loader that is dropped
//! leaves no heap.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::image::{Image, PAGE_BYTES, ParsedObject, ZERO_PAGE};
use crate::machine::MemoryFileWriter;

use super::loaded_heap::{LoadedHeap, max_overlay_pages};
use super::page::{HeapPage, PagePool};

pub struct HeapLoader<'a> {
    /// The heap that the object is a difference to.
    parent: &'a LoadedHeap,
    pool: &'a Arc<PagePool>,
    /// One page for all pages that became zero. A script that frees much memory leaves many of them.
    zero_page: Arc<HeapPage>,
    destination: Destination,
}

/// Where the changed pages are collected. Pages arrive from several threads, hence the locks.
enum Destination {
    /// Becomes an overlay of the parent's memory file.
    Overlay(Mutex<Vec<(u32, Arc<HeapPage>)>>),
    /// A new memory file, for a heap whose overlay would be too large in any case. Pages are written to it as they
    /// arrive, without a copy in between, because most of the cost of a large heap is the first write to new memory.
    File(MemoryFileWriter, Mutex<WrittenPages>),
}

/// The progress of a [`Destination::File`].
#[derive(Default)]
struct WrittenPages {
    /// The pages that arrived, also those that are zero. The file needs all other pages from the parent.
    runs: Vec<Range<u32>>,
    /// The bytes that were written. Pages of zeros use no memory in the file.
    bytes: usize,
    /// The first error, reported by `finish`, because the codec's callback cannot fail.
    error: Option<io::Error>,
}

/// Whether guests will run on the heap, or it is only needed to load its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadAs {
    Target,
    Ancestor,
}

impl<'a> HeapLoader<'a> {
    pub fn new(
        parent: &'a LoadedHeap,
        pool: &'a Arc<PagePool>,
        object: &ParsedObject<'_>,
        load_as: LoadAs,
    ) -> io::Result<Self> {
        // A memory file for each link of a chain would hold the whole heap once for each link, for as long as the last
        // heap lives.
        let may_have_file = load_as == LoadAs::Target || parent.image.is_base();
        let destination = if may_have_file && object.changed_count() > max_overlay_pages(object.pages) {
            Destination::File(MemoryFileWriter::new(object.memory_bytes as usize)?, Mutex::default())
        } else {
            Destination::Overlay(Mutex::new(Vec::with_capacity(object.changed_count())))
        };
        Ok(Self { parent, pool, zero_page: HeapPage::copy_of(pool, &ZERO_PAGE), destination })
    }

    /// Adds consecutive pages. It may be called from any thread and in any order.
    pub fn add_pages(&self, first: u32, pages: &[u8]) {
        let (pages, _) = pages.as_chunks::<PAGE_BYTES>();
        match &self.destination {
            Destination::Overlay(overlay) => {
                let heap_page = |page: &[u8; PAGE_BYTES]| {
                    if *page == ZERO_PAGE { self.zero_page.clone() } else { HeapPage::copy_of(self.pool, page) }
                };
                // The copies are made before the lock is taken, so that threads do not wait for each other.
                let copies: Vec<_> = (first..).zip(pages.iter().map(heap_page)).collect();
                lock(overlay).extend(copies);
            }
            Destination::File(file, progress) => {
                let mut at = first;
                let mut written_bytes = 0;
                let mut error = None;
                for run in pages.chunk_by(|page, next| (*page == ZERO_PAGE) == (*next == ZERO_PAGE)) {
                    // The new file is zero already. A page that is never written uses no memory.
                    if run[0] != ZERO_PAGE && error.is_none() {
                        error = file.write_run(at, run.as_flattened()).err();
                        written_bytes += run.len() * PAGE_BYTES;
                    }
                    at += run.len() as u32;
                }
                let mut progress = lock(progress);
                progress.runs.push(first..at);
                progress.bytes += written_bytes;
                progress.error = progress.error.take().or(error);
            }
        }
    }

    /// Returns the heap, whose digests are `image`.
    pub fn finish(self, image: Image) -> io::Result<LoadedHeap> {
        let (file, progress) = match self.destination {
            Destination::Overlay(overlay) => {
                let mut overlay = overlay.into_inner().unwrap_or_else(PoisonError::into_inner);
                overlay.sort_unstable_by_key(|(at, _)| *at);
                return Ok(self.parent.with_changes(self.pool, image, &overlay));
            }
            Destination::File(file, progress) => (file, progress.into_inner().unwrap_or_else(PoisonError::into_inner)),
        };
        let WrittenPages { mut runs, bytes: mut written_bytes, error } = progress;
        error.map_or(Ok(()), Err)?;
        runs.sort_unstable_by_key(|run| run.start);
        let mut runs = runs.into_iter().peekable();
        let is_unchanged = |at: &u32| {
            while runs.next_if(|run| run.end <= *at).is_some() {}
            !runs.peek().is_some_and(|run| run.contains(at))
        };
        let unchanged = (0..self.parent.image.pages()).filter(is_unchanged).map(|at| (at, self.parent.page(at)));
        file.write_pages(unchanged.filter(|(_, page)| *page != ZERO_PAGE).inspect(|_| written_bytes += PAGE_BYTES))?;
        Ok(self.parent.with_file(self.pool, image, file.finish()?, written_bytes))
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change under the lock is complete or did not happen, so the value of a thread that panicked is usable.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
