//! Pages that heaps share, and the count of the bytes they take.
//! Invariant: a page that is used again is overwritten whole before anyone sees it.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::image::{PAGE, ZERO_PAGE};

type Content = Box<[u8; PAGE]>;

/// So many pages that nobody uses any more are kept for the next heap: memory that was given back is new when it is asked for
/// again, and the first touch of a page costs four times what copying it does.
const SPARE: usize = 256;

/// So many are made ready when there is time.
const STOCK: usize = 64;

/// How many bytes all heaps of an engine take together.
#[derive(Default)]
pub struct Ledger {
    bytes: AtomicUsize,
    spare: Mutex<Vec<Content>>,
}

impl Ledger {
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn take(self: &Arc<Self>, bytes: usize) -> Entry {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Entry { ledger: self.clone(), bytes }
    }

    fn spare(&self) -> MutexGuard<'_, Vec<Content>> {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes pages ready for the next steps.
    pub fn stock(&self) {
        let lacking = STOCK.saturating_sub(self.spare().len());
        (0..lacking).for_each(|_| self.give_back(Box::new(ZERO_PAGE)));
    }

    fn give_back(&self, page: Content) {
        let mut spare = self.spare();
        if spare.len() < SPARE {
            spare.push(page);
        }
    }
}

impl fmt::Debug for Ledger {
    /// Nothing of what pages hold.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Ledger({} bytes)", self.bytes())
    }
}

/// Bytes that are counted as long as this lives.
#[derive(Debug)]
pub struct Entry {
    ledger: Arc<Ledger>,
    bytes: usize,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.ledger.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

pub struct Page {
    /// `None` only while dropping.
    content: Option<Content>,
    counted: Entry,
}

impl Page {
    /// A copy; what a short one lacks is zero.
    pub fn copy(ledger: &Arc<Ledger>, content: &[u8]) -> Arc<Self> {
        let spare = ledger.spare().pop();
        let mut page = spare.unwrap_or_else(|| Box::new(ZERO_PAGE));
        let length = content.len().min(PAGE);
        let (there, lacking) = page.split_at_mut(length);
        there.copy_from_slice(&content[..length]);
        lacking.fill(0);
        Arc::new(Self { content: Some(page), counted: ledger.take(PAGE) })
    }

    pub fn bytes(&self) -> &[u8] {
        self.content.as_deref().unwrap_or(&ZERO_PAGE)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if let Some(page) = self.content.take() {
            self.counted.ledger.give_back(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_that_is_used_again_shows_nothing_of_before_and_is_counted_once() {
        let ledger = Arc::new(Ledger::default());
        let secret = Page::copy(&ledger, &[7; PAGE]);
        let at = secret.bytes().as_ptr();
        assert_eq!(ledger.bytes(), PAGE);
        drop(secret);
        assert_eq!(ledger.bytes(), 0);
        let next = Page::copy(&ledger, b"short");
        assert_eq!(next.bytes().as_ptr(), at, "the same page");
        assert!(next.bytes().starts_with(b"short") && next.bytes()[5..] == ZERO_PAGE[5..]);
        ledger.stock();
        assert_eq!((ledger.spare().len(), ledger.bytes()), (STOCK, PAGE));
        let many: Vec<_> = (0..SPARE + 9).map(|_| Page::copy(&ledger, &[1; PAGE])).collect();
        drop(many);
        assert_eq!(ledger.spare().len(), SPARE, "no more than these are kept");
    }
}
