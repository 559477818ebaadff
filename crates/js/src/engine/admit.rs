//! Admits heaps and engines: loads heaps from stored or imported objects, boots imported guests, and examines the
//! globals of heaps.
//! Invariant: a heap or an engine is used only after all of its bytes were verified. An error contains the key of the
//! refused heap.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::Digest;
use ports::scripts::{Error, Global, Limits, Stop, Surroundings};

use crate::heaps::{HeapLoader, LoadAs, LoadedHeap, ObjectParent};
use crate::image::{PAGE_BYTES, ParsedObject};

use super::Core;
use super::boot::{BootedEngine, StartError};
use super::errors::{guest_error, internal_error, object_error};
use super::guests::new_guest;
use super::workers::WorkerState;

/// The time limit for examining the globals of a heap, in milliseconds.
const EXAMINATION_DEADLINE_MS: u64 = 5_000;
/// The memory limit for examining the globals of a heap is twice the size of the heap plus this number of bytes.
const EXTRA_EXAMINATION_BYTES: u64 = 64 << 20;

impl Core {
    /// Loads the heap `key` from its chain of objects, which begins with the oldest ancestor, and adds the heap to the
    /// heap cache.
    pub fn admit(&self, worker: &mut WorkerState, key: Digest, objects: &[Vec<u8>]) -> Result<(), Error> {
        let mut last: Option<LoadedHeap> = None;
        for (index, bytes) in objects.iter().enumerate() {
            let later_objects = &objects[index + 1..];
            let object = ParsedObject::parse(bytes).map_err(|_| Error::Damaged(expected_key(key, later_objects)))?;
            let engine = self.engines.get(&object.engine);
            let engine = engine.ok_or(Error::NoEngine { heap: key, engine: object.engine })?;
            let parent = match (last, object.parent) {
                (Some(last), _) => Arc::new(last),
                (None, None) => engine.base.clone(),
                (None, Some(parent)) => self.loaded_heap(parent)?,
            };
            let load_as = if later_objects.is_empty() { LoadAs::Target } else { LoadAs::Ancestor };
            last = Some(self.load(worker, &engine, &parent, &object, load_as)?);
        }
        let Some(mut heap) = last else { return self.loaded_heap(key).map(|_| ()) };
        if heap.key() != key {
            return Err(Error::Damaged(key));
        }
        // The overlay is bounded for this heap only, because no guest runs on its ancestors.
        heap.bound_overlay(self.heaps.pool()).map_err(internal_error)?;
        self.heaps.put(Arc::new(heap));
        Ok(())
    }

    /// Verifies an object and loads the heap that the object makes of its parent.
    pub fn load(
        &self,
        worker: &mut WorkerState,
        engine: &BootedEngine,
        parent: &Arc<LoadedHeap>,
        object: &ParsedObject<'_>,
        load_as: LoadAs,
    ) -> Result<LoadedHeap, Error> {
        let loader = HeapLoader::new(parent, self.heaps.pool(), object, load_as).map_err(internal_error)?;
        let stack_is_empty = AtomicBool::new(true);
        let accept = |first: u32, pages: &[u8]| {
            let stack_bytes = engine.stack_pages.saturating_sub(first) as usize * PAGE_BYTES;
            if pages.iter().take(stack_bytes).any(|byte| *byte != 0) {
                stack_is_empty.store(false, Ordering::Relaxed);
            }
            loader.add_pages(first, pages);
        };
        let image = worker.codec.decode(object, &parent.image, |at| parent.page(at), &accept);
        let image = image.map_err(|error| object_error(object.key, error))?;
        // `capture` clears the stack pages, so an object with other bytes in the stack was not made by this engine.
        if !stack_is_empty.into_inner() {
            return Err(Error::Damaged(object.key));
        }
        let mut heap = loader.finish(image).map_err(internal_error)?;
        heap.set_object_parent(ObjectParent { heap: parent.clone(), weight: 1 });
        Ok(heap)
    }

    pub fn admit_engine(&self, guest: &[u8]) -> Result<Digest, Error> {
        match self.engines.boot(guest, self.heaps.pool()) {
            Ok(engine) => Ok(engine.name),
            Err(StartError::Guest(error)) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "an imported JavaScript engine was refused, because its guest cannot run here"
                );
                Err(Error::NotAnEngine)
            }
            Err(error) => Err(internal_error(error)),
        }
    }

    /// Returns a copy of the whole memory of a heap.
    pub fn memory(&self, key: Digest) -> Result<Vec<u8>, Error> {
        let heap = self.loaded_heap(key)?;
        Ok((0..heap.image.pages()).flat_map(|at| heap.page(at)).copied().collect())
    }

    /// Returns the globals of a heap. A new guest examines the globals and is then dropped, because the examination
    /// writes to the guest's memory.
    pub fn globals(&self, key: Digest) -> Result<Vec<Global>, Error> {
        let heap = self.loaded_heap(key)?;
        let engine = self.engine_of(&heap)?;
        let _tick_guard = self.engines.ticker.keep_ticking();
        let memory_bytes = heap.image.memory_bytes() * 2 + EXTRA_EXAMINATION_BYTES;
        let limits = Limits { memory_bytes, deadline_ms: EXAMINATION_DEADLINE_MS, output_bytes: 0 };
        let mut guest = new_guest(&engine, &heap, &limits).map_err(|error| guest_error(error, &limits))?;
        let begun = guest.begin_step(&limits, [&Stop::default(), &self.closing], &Surroundings::default());
        begun.and_then(|()| guest.globals()).map_err(|error| guest_error(error, &limits))
    }
}

/// Returns the key of the heap that an unreadable object should contain: the parent that the next object names or, for
/// the last object, the requested heap. The key in the object may be the damaged part.
fn expected_key(key: Digest, later_objects: &[Vec<u8>]) -> Digest {
    let parent = |object: &Vec<u8>| ParsedObject::parse(object).ok().and_then(|object| object.parent);
    later_objects.first().and_then(parent).unwrap_or(key)
}
