//! What a step changed, as a heap and as an object.
//! Invariant: an object's chain has at most [`LINKS_MOST`] links, and neither time nor bytes of a step grow with the number
//! of steps before it.

use std::sync::Arc;

use base::Digest;
use ports::scripts::Error;

use crate::heaps::{Held, LINKS_MOST, Page, gather};
use crate::image::{self, Change, Codec};
use crate::machine::{Dirty, Instance};

use super::Core;
use super::boot::Running;
use super::workers::Bench;

/// Gathering may bring in pages that this step did not touch: so many, and so many times what it touched.
const GATHER_PAGES: usize = 64;
const GATHER_TIMES: usize = 4;

pub fn commit(
    core: &Core,
    bench: &mut Bench,
    running: &Running,
    last: &Arc<Held>,
    instance: &mut Instance,
) -> Result<(Arc<Held>, Arc<[u8]>), Error> {
    let ledger = core.shelf.ledger();
    let pages = instance.pages();
    let mut view = instance.view();
    Dirty::here().pages(view.0, &mut bench.dirty);
    let mut changed = Vec::new();
    for at in bench.dirty.iter().copied() {
        if at < running.stack_pages {
            // The stack is empty: what lies there is dead.
            view.page_mut(at).unwrap_or_default().fill(0);
        } else if let Some(page) = view.page(at)
            && page != last.page(at)
        {
            changed.push((at, Page::copy(ledger, page)));
        }
    }
    let contents = changed.iter().map(|(at, page)| (*at, page.bytes()));
    let image = last.image.with_changes(contents, pages).map_err(fault)?;
    let mut next = last.next(ledger, image, &changed);
    next.settle(ledger).map_err(|error| Error::Engine(error.into()))?;
    let (onto, weight) = onto(last, &next, changed.len(), &running.base);
    let object = object(&mut bench.codec, &onto, &next)?;
    next.descend(&onto, weight);
    Ok((Arc::new(next), object.into()))
}

/// The same heap with an object made against another one: what lies between is known to nobody else.
pub fn against(
    core: &Core,
    bench: &mut Bench,
    (start, base): (&Arc<Held>, &Arc<Held>),
    next: Arc<Held>,
) -> Result<(Arc<Held>, Arc<[u8]>), Error> {
    let start = if start.links < LINKS_MOST { start } else { base };
    let object = object(&mut bench.codec, start, &next)?;
    let mut next = next.next(core.shelf.ledger(), next.image.clone(), &[]);
    next.descend(start, 1);
    Ok((Arc::new(next), object.into()))
}

/// What the object is made against.
fn onto(last: &Arc<Held>, next: &Held, changed: usize, base: &Arc<Held>) -> (Arc<Held>, u32) {
    let (gathered, weight) = gather(last);
    let most = GATHER_PAGES + GATHER_TIMES * changed;
    if weight > 1 && gathered.image.differing(&next.image).len() <= most {
        return (gathered, weight);
    }
    if last.links < LINKS_MOST {
        return (last.clone(), 1);
    }
    // Too long a chain: what it can be shortened to, unless that is no better than the whole.
    let shorter = gathered.image.differing(&next.image).len() * 2 < base.image.differing(&next.image).len();
    if shorter && gathered.links < LINKS_MOST { (gathered, weight) } else { (base.clone(), u32::MAX) }
}

pub fn object(codec: &mut Codec, parent: &Held, next: &Held) -> Result<Vec<u8>, Error> {
    let pages = parent.image.differing(&next.image);
    let changes: Vec<Change<'_>> =
        pages.iter().map(|at| Change { page: *at, old: parent.page(*at), new: next.page(*at) }).collect();
    codec.encode(&parent.image, &next.image, &changes).map_err(fault)
}

impl Core {
    /// One object for the whole heap.
    pub fn whole(&self, bench: &mut Bench, key: Digest) -> Result<Vec<u8>, Error> {
        let held = self.held(key)?;
        let running = self.engine_of(&held)?;
        object(&mut bench.codec, &running.base, &held)
    }
}

/// The heap at hand was made or verified by us, so that nothing is wrong with it but what is wrong with us.
fn fault(error: image::Error) -> Error {
    Error::Engine(error.into())
}
