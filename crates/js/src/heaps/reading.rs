//! A heap on its way from its object into memory.
//! Invariant: it is a heap only after all of its object was verified; what was laid for one that is not is thrown away.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::image::{Frame, Image, PAGE, ZERO_PAGE};
use crate::machine::Laying;

use super::held::{Held, over_most};
use super::page::{Ledger, Page};

pub struct Reading<'a> {
    parent: &'a Held,
    ledger: &'a Arc<Ledger>,
    /// For all pages that are: a program that lets go of much leaves many.
    zero: Arc<Page>,
    into: Into,
}

enum Into {
    Pages(Mutex<Vec<(u32, Arc<Page>)>>),
    /// As much as would need a ground of its own in any case is laid there as it comes, without being pages first: most of what
    /// a large heap costs is memory that was never touched before.
    Ground(Laying, Mutex<Laid>),
}

#[derive(Default)]
struct Laid {
    runs: Vec<Range<u32>>,
    written: usize,
    failed: Option<io::Error>,
}

/// Whether a heap is stood on for itself, or only on the way to others, whose changes are then pages over what it stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reads {
    Last,
    OnTheWay,
}

impl<'a> Reading<'a> {
    pub fn new(parent: &'a Held, ledger: &'a Arc<Ledger>, frame: &Frame<'_>, reads: Reads) -> io::Result<Self> {
        // A ground for each link of a chain would be the whole heap as often, for as long as the last one lives.
        let stays = reads == Reads::Last || parent.image.is_base();
        let into = if stays && frame.count() > over_most(frame.pages) {
            Into::Ground(Laying::new(frame.memory_bytes as usize)?, Mutex::default())
        } else {
            Into::Pages(Mutex::new(Vec::with_capacity(frame.count())))
        };
        Ok(Self { parent, ledger, zero: Page::copy(ledger, &ZERO_PAGE), into })
    }

    /// Pages that follow each other; from any thread, in any order.
    pub fn take(&self, first: u32, pages: &[u8]) {
        let (pages, _) = pages.as_chunks::<PAGE>();
        match &self.into {
            Into::Pages(taken) => {
                let page = |page: &[u8; PAGE]| {
                    if *page == ZERO_PAGE { self.zero.clone() } else { Page::copy(self.ledger, page) }
                };
                let pages: Vec<_> = (first..).zip(pages.iter().map(page)).collect();
                lock(taken).extend(pages);
            }
            Into::Ground(laying, laid) => {
                let (mut at, mut written, mut failed) = (first, 0, None);
                for alike in pages.chunk_by(|one, next| (*one == ZERO_PAGE) == (*next == ZERO_PAGE)) {
                    // What is zero is so already, and costs nothing as long as nobody writes it.
                    if alike[0] != ZERO_PAGE && failed.is_none() {
                        failed = laying.put(at, alike.as_flattened()).err();
                        written += alike.len() * PAGE;
                    }
                    at += alike.len() as u32;
                }
                let mut laid = lock(laid);
                laid.runs.push(first..at);
                laid.written += written;
                laid.failed = laid.failed.take().or(failed);
            }
        }
    }

    pub fn done(self, image: Image) -> io::Result<Held> {
        let (laying, laid) = match self.into {
            Into::Pages(changed) => {
                let mut changed = changed.into_inner().unwrap_or_else(PoisonError::into_inner);
                changed.sort_unstable_by_key(|(at, _)| *at);
                return Ok(self.parent.next(self.ledger, image, &changed));
            }
            Into::Ground(laying, laid) => (laying, laid.into_inner().unwrap_or_else(PoisonError::into_inner)),
        };
        let Laid { mut runs, mut written, failed } = laid;
        failed.map_or(Ok(()), Err)?;
        runs.sort_unstable_by_key(|run| run.start);
        let mut runs = runs.into_iter().peekable();
        let of_parent = |at: &u32| {
            while runs.next_if(|run| run.end <= *at).is_some() {}
            !runs.peek().is_some_and(|run| run.contains(at))
        };
        let rest = (0..self.parent.image.pages()).filter(of_parent).map(|at| (at, self.parent.page(at)));
        laying.fill(rest.filter(|(_, page)| *page != ZERO_PAGE).inspect(|_| written += PAGE))?;
        Ok(self.parent.grounded(self.ledger, image, laying.done()?, written))
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is one that is whole.
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
