//! The pages of loaded heaps, and the pool that counts the memory of all heaps and reuses freed pages.
//! Invariant: a reused page is overwritten completely before it can be read, so no heap contains bytes of another heap.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::image::{PAGE_BYTES, ZERO_PAGE};

type PageBuffer = Box<[u8; PAGE_BYTES]>;

/// The number of freed pages that the pool keeps for the next heap. A page that was returned to the allocator is new
/// memory when it is allocated again, and the first write to new memory costs four times as much as copying a page.
const MAX_FREE_PAGES: usize = 256;

/// The number of free pages that an idle thread prepares for the next steps.
const PREPARED_PAGES: usize = 64;

/// Counts the bytes of all heaps of an engine, and keeps freed pages for reuse.
#[derive(Default)]
pub struct PagePool {
    /// The sum of the bytes of all [`Charge`]s that are not dropped. The heap cache compares the sum with its budget.
    charged_bytes: AtomicUsize,
    /// Pages that no heap uses. They are not charged.
    free_pages: Mutex<Vec<PageBuffer>>,
}

impl PagePool {
    pub fn charged_bytes(&self) -> usize {
        self.charged_bytes.load(Ordering::Relaxed)
    }

    /// Counts `bytes` as used memory until the returned charge is dropped.
    pub fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.charged_bytes.fetch_add(bytes, Ordering::Relaxed);
        Charge { pool: self.clone(), bytes }
    }

    /// Allocates free pages in advance, so that the next steps need no new memory.
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
        // The lock covers one push or pop, which a panic cannot leave half done, so the list stays usable after a
        // panic.
        self.free_pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for PagePool {
    /// Writes the size only, because pages can hold secrets of scripts.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "PagePool({} bytes)", self.charged_bytes())
    }
}

/// A number of bytes that the pool counts as used until this value is dropped.
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
    /// The bytes of the page. It is `None` only during `drop`, which returns the buffer to the pool.
    content: Option<PageBuffer>,
    charge: Charge,
}

impl HeapPage {
    /// Returns a page with a copy of `content`. If `content` is shorter than a page, the remaining bytes are zero.
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
