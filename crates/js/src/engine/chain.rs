//! Captures the changes of a step: makes the new heap, and its object, which stores the difference to an ancestor. A
//! chain is a heap's object, the object of its parent and so on, up to the base image.
//! Invariant: a chain has at most [`MAX_LINKS`] objects. The time and the stored bytes of a step do not grow with the
//! number of steps before it.

use std::sync::Arc;

use base::Digest;
use ports::scripts::Error;

use crate::heaps::{HeapPage, LoadedHeap, MAX_LINKS, ObjectParent, gathered_parent};
use crate::image::{Codec, PageChange};
use crate::machine::{DirtyPageFinder, Guest};

use super::Core;
use super::boot::BootedEngine;
use super::errors::internal_error;
use super::workers::WorkerState;

/// A gathered object replaces several objects, so it contains pages that this step did not change. It is made only if
/// it has at most this number of pages plus `GATHERED_PAGES_PER_CHANGED_PAGE` for each page that the step changed. So
/// the cost of a step stays near the cost of its own changes.
const BASE_GATHERED_PAGES: usize = 64;
const GATHERED_PAGES_PER_CHANGED_PAGE: usize = 4;
/// The weight of an object that contains a whole heap. No group of objects reaches this weight, so such an object is
/// never gathered.
const WHOLE_HEAP_WEIGHT: u32 = u32::MAX;

/// A new heap and its object.
pub struct CapturedHeap {
    pub heap: Arc<LoadedHeap>,
    pub object: Arc<[u8]>,
}

/// Captures the memory of a guest whose step started from the heap `last`. Afterwards `worker.dirty_pages` contains the
/// numbers of the pages that the guest wrote.
pub fn capture(
    core: &Core,
    worker: &mut WorkerState,
    engine: &BootedEngine,
    last: &Arc<LoadedHeap>,
    guest: &mut Guest,
) -> Result<CapturedHeap, Error> {
    let pool = core.heaps.pool();
    let pages = guest.pages();
    let mut view = guest.view();
    DirtyPageFinder::get().find(view.0, &mut worker.dirty_pages);
    let mut changed = Vec::new();
    for at in worker.dirty_pages.iter().copied() {
        if at < engine.stack_pages {
            // Between two calls the stack is empty. The old bytes of the stack are cleared, because they would make
            // equal heaps differ and could contain secrets.
            view.page_mut(at).unwrap_or_default().fill(0);
        } else if let Some(page) = view.page(at)
            && page != last.page(at)
        {
            changed.push((at, HeapPage::copy_of(pool, page)));
        }
    }
    let contents = changed.iter().map(|(at, page)| (*at, page.bytes()));
    let image = last.image.with_changes(contents, pages).map_err(internal_error)?;
    let mut next = last.with_changes(pool, image, &changed);
    next.bound_overlay(pool).map_err(internal_error)?;
    let parent = choose_object_parent(last, &next, changed.len(), &engine.base);
    let object = encode_object(&mut worker.codec, &parent.heap, &next)?;
    next.set_object_parent(parent);
    Ok(CapturedHeap { heap: Arc::new(next), object: object.into() })
}

/// Encodes the object of `heap` again, as a difference to `start` or, if the chain of `start` is too long, to the base
/// image. The heaps between `start` and `heap` are not stored, so the object of `heap` must not depend on them.
pub fn capture_against(
    core: &Core,
    worker: &mut WorkerState,
    start: &Arc<LoadedHeap>,
    base: &Arc<LoadedHeap>,
    heap: Arc<LoadedHeap>,
) -> Result<CapturedHeap, Error> {
    let parent = if start.links < MAX_LINKS { start } else { base };
    let object = encode_object(&mut worker.codec, parent, &heap)?;
    let mut heap = heap.with_changes(core.heaps.pool(), heap.image.clone(), &[]);
    heap.set_object_parent(ObjectParent { heap: parent.clone(), weight: 1 });
    Ok(CapturedHeap { heap: Arc::new(heap), object: object.into() })
}

fn choose_object_parent(
    last: &Arc<LoadedHeap>,
    next: &LoadedHeap,
    changed_pages: usize,
    base: &Arc<LoadedHeap>,
) -> ObjectParent {
    let gathered = gathered_parent(last);
    let max_pages = BASE_GATHERED_PAGES + GATHERED_PAGES_PER_CHANGED_PAGE * changed_pages;
    if gathered.weight > 1 && gathered.heap.image.differing(&next.image).len() <= max_pages {
        return gathered;
    }
    if last.links < MAX_LINKS {
        return ObjectParent { heap: last.clone(), weight: 1 };
    }
    // The chain is too long. A gathered object shortens the chain. It is chosen only if it is much smaller than an
    // object of the whole heap.
    let gathered_pages = gathered.heap.image.differing(&next.image).len();
    let is_much_smaller = gathered_pages * 2 < base.image.differing(&next.image).len();
    if is_much_smaller && gathered.heap.links < MAX_LINKS {
        gathered
    } else {
        ObjectParent { heap: base.clone(), weight: WHOLE_HEAP_WEIGHT }
    }
}

pub fn encode_object(codec: &mut Codec, parent: &LoadedHeap, next: &LoadedHeap) -> Result<Vec<u8>, Error> {
    let pages = parent.image.differing(&next.image);
    let changes: Vec<PageChange<'_>> =
        pages.iter().map(|at| PageChange { page: *at, old: parent.page(*at), new: next.page(*at) }).collect();
    codec.encode(&parent.image, &next.image, &changes).map_err(internal_error)
}

impl Core {
    /// Returns one object that contains the whole heap, as a difference to the base image.
    pub fn standalone_object(&self, worker: &mut WorkerState, key: Digest) -> Result<Vec<u8>, Error> {
        let heap = self.loaded_heap(key)?;
        let engine = self.engine_of(&heap)?;
        encode_object(&mut worker.codec, &engine.base, &heap)
    }
}
