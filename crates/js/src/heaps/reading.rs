//! A heap on its way from its object into memory.
//! Invariant: it is a heap only after all of its object was verified; what was laid for one that is not is thrown away.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::image::{Frame, Image, PAGE, ZERO_PAGE};
use crate::machine::Laying;

use super::held::{Held, over_most};
use super::page::{Ledger, Page};

pub struct Reading<'a> {
    parent: &'a Held,
    ledger: &'a Arc<Ledger>,
    into: Into,
}

enum Into {
    Pages(Vec<(u32, Arc<Page>)>),
    /// As much as would need a ground of its own in any case is laid there as it comes, without being pages first: most of what
    /// a large heap costs is memory that was never touched before.
    Ground {
        laying: Laying,
        laid: Vec<Range<u32>>,
        failed: Option<io::Error>,
    },
}

impl<'a> Reading<'a> {
    pub fn new(parent: &'a Held, ledger: &'a Arc<Ledger>, frame: &Frame<'_>) -> io::Result<Self> {
        let into = if frame.count() <= over_most(frame.pages) {
            Into::Pages(Vec::with_capacity(frame.count()))
        } else {
            let laying = Laying::new(frame.memory_bytes as usize)?;
            Into::Ground { laying, laid: Vec::new(), failed: None }
        };
        Ok(Self { parent, ledger, into })
    }

    /// Pages that follow each other, in rising order.
    pub fn take(&mut self, first: u32, pages: &[u8]) {
        match &mut self.into {
            Into::Pages(taken) => {
                let pages = pages.chunks_exact(PAGE).map(|page| Page::copy(self.ledger, page));
                taken.extend((first..).zip(pages));
            }
            Into::Ground { laying, laid, failed } => {
                laid.push(first..first + (pages.len() / PAGE) as u32);
                if failed.is_none() {
                    *failed = laying.put(first, pages).err();
                }
            }
        }
    }

    pub fn done(self, image: Image) -> io::Result<Held> {
        let (laying, laid, failed) = match self.into {
            Into::Pages(changed) => return Ok(self.parent.next(self.ledger, image, &changed)),
            Into::Ground { laying, laid, failed } => (laying, laid, failed),
        };
        failed.map_or(Ok(()), Err)?;
        let mut written: usize = laid.iter().map(|run| run.len() * PAGE).sum();
        let (mut laid, mut at) = (laid.into_iter().peekable(), 0);
        // What it has of its parent.
        while at < self.parent.image.pages() {
            if let Some(run) = laid.next_if(|run| run.start == at) {
                at = run.end;
                continue;
            }
            let page = self.parent.page(at);
            if *page != ZERO_PAGE {
                laying.put(at, page)?;
                written += PAGE;
            }
            at += 1;
        }
        Ok(self.parent.grounded(self.ledger, image, laying.done()?, written))
    }
}
