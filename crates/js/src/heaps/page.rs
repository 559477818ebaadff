//! The pages of loaded heaps, and the pool that counts the memory of all heaps and reuses freed pages.
//! Invariant: a reused page is overwritten completely before it can be read, so no heap sees content of another one.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::image::{PAGE_BYTES, ZERO_PAGE};

type PageBuffer = Box<[u8; PAGE_BYTES]>;

/// The number of freed pages that are kept for the next heap. Memory that was returned to the allocator is new when it
/// is allocated again, and the first write to a new page costs four times as much as copying a page.
const MAX_FREE_PAGES: usize = 256;

/// The number of free pages that are prepared while a thread is idle.
const PREPARED_PAGES: usize = 64;

/// Counts the bytes of all heaps of an engine, and keeps freed pages for reuse.
#[derive(Default)]
pub struct PagePool {
    /// The bytes of all charges that are alive. The heap cache compares them with its budget.
    charged_bytes: AtomicUsize,
    /// Pages that no heap uses. They are not charged.
    free_pages: Mutex<Vec<PageBuffer>>,
}

impl PagePool {
    pub fn charged_bytes(&self) -> usize {
        self.charged_bytes.load(Ordering::Relaxed)
    }

    /// Counts these bytes until the charge is dropped.
    pub fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.charged_bytes.fetch_add(bytes, Ordering::Relaxed);
        Charge { pool: self.clone(), bytes }
    }

    /// Allocates free pages for the next steps, so that those need no new memory.
    pub fn prepare_pages(&self) {
        let missing = PREPARED_PAGES.saturating_sub(self.free_pages().len());
        (0..missing).for_each(|_| self.recycle(Box::new(ZERO_PAGE)));
    }

    fn recycle(&self, page: PageBuffer) {
        let mut free_pages = self.free_pages();
        if free_pages.len() < MAX_FREE_PAGES {
            free_pages.push(page);
        }
    }

    fn free_pages(&self) -> MutexGuard<'_, Vec<PageBuffer>> {
        // A push or a pop is complete or did not happen, so the list of a thread that panicked is usable.
        self.free_pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PagePool {
    /// Writes the size only, because pages can hold secrets of scripts.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "PagePool({} bytes)", self.charged_bytes())
    }
}

/// Bytes that a pool counts for as long as this value lives.
#[derive(Debug)]
pub struct Charge {
    pool: Arc<PagePool>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.pool.charged_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// An immutable page that heaps share.
pub struct HeapPage {
    /// `None` only while the page is dropped.
    content: Option<PageBuffer>,
    charge: Charge,
}

impl HeapPage {
    /// Copies this content. If it is shorter than a page, the rest of the page is zero.
    pub fn copy_of(pool: &Arc<PagePool>, content: &[u8]) -> Arc<Self> {
        let reused = pool.free_pages().pop();
        let mut page = reused.unwrap_or_else(|| Box::new(ZERO_PAGE));
        let length = content.len().min(PAGE_BYTES);
        let (copied, rest) = page.split_at_mut(length);
        copied.copy_from_slice(&content[..length]);
        rest.fill(0);
        Arc::new(Self { content: Some(page), charge: pool.charge(PAGE_BYTES) })
    }

    pub fn bytes(&self) -> &[u8] {
        self.content.as_deref().unwrap_or(&ZERO_PAGE)
    }
}

impl Drop for HeapPage {
    fn drop(&mut self) {
        if let Some(page) = self.content.take() {
            self.charge.pool.recycle(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_page_shows_no_earlier_content_and_is_counted_once() {
        let pool = Arc::new(PagePool::default());
        let secret = HeapPage::copy_of(&pool, &[7; PAGE_BYTES]);
        let address = secret.bytes().as_ptr();
        assert_eq!(pool.charged_bytes(), PAGE_BYTES);
        drop(secret);
        assert_eq!(pool.charged_bytes(), 0);
        let reused = HeapPage::copy_of(&pool, b"short");
        assert_eq!(reused.bytes().as_ptr(), address, "the same page");
        assert!(reused.bytes().starts_with(b"short") && reused.bytes()[5..] == ZERO_PAGE[5..]);
        pool.prepare_pages();
        assert_eq!((pool.free_pages().len(), pool.charged_bytes()), (PREPARED_PAGES, PAGE_BYTES));
        let many: Vec<_> = (0..MAX_FREE_PAGES + 9).map(|_| HeapPage::copy_of(&pool, &[1; PAGE_BYTES])).collect();
        drop(many);
        assert_eq!(pool.free_pages().len(), MAX_FREE_PAGES, "the list is bounded");
    }
}
