//! Builds a loaded heap from the verified pages of an object.
//! Invariant: [`HeapLoader::finish`] is called only after the whole object was verified. If a loader is dropped before
//! that, no heap is created.

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
    /// The page that all pages of zeros share. A script that frees much memory leaves many pages of zeros.
    zero_page: Arc<HeapPage>,
    destination: Destination,
}

/// The place where the loader collects the changed pages. The locks are needed because pages arrive from several
/// threads.
enum Destination {
    /// The changed pages with their numbers. They become an overlay of the parent's memory file.
    Overlay(Mutex<Vec<(u32, Arc<HeapPage>)>>),
    /// A new memory file, for a heap whose overlay would be too large. Each page is written to the file when it
    /// arrives, without a copy in between, because the first write to new memory is most of the cost of a large heap.
    File(MemoryFileWriter, Mutex<WrittenPages>),
}

/// The progress of a [`Destination::File`].
#[derive(Default)]
struct WrittenPages {
    /// The ranges of pages that arrived, including pages of zeros. All other pages of the file are copied from the
    /// parent.
    runs: Vec<Range<u32>>,
    /// The number of bytes that were written to the file. Pages of zeros are not written and use no memory.
    bytes: usize,
    /// The first error of a write. `finish` returns it, because the codec's callback has no result.
    error: Option<io::Error>,
}

/// The purpose of loading a heap: guests will run on a `Target`; an `Ancestor` is only needed to load its descendants.
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
        // An ancestor gets no memory file. Otherwise each object of the chain would keep a copy of the whole heap in
        // memory until the last heap is dropped.
        let may_have_file = load_as == LoadAs::Target || parent.image.is_base();
        let destination = if may_have_file && object.changed_count() > max_overlay_pages(object.pages) {
            Destination::File(MemoryFileWriter::new(object.memory_bytes as usize)?, Mutex::default())
        } else {
            Destination::Overlay(Mutex::new(Vec::with_capacity(object.changed_count())))
        };
        Ok(Self { parent, pool, zero_page: HeapPage::copy_of(pool, &ZERO_PAGE), destination })
    }

    /// Adds consecutive pages that begin at page `first`. It may be called from any thread and in any order.
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

    /// Returns the loaded heap. `image` holds the digests of its pages.
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
    // A panic cannot leave a change under the lock half done, so the value stays usable after a panic.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
