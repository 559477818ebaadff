//! Provides guests for heaps that have no live guest: moves a live guest of another heap to the heap, or maps the heap
//! into a new guest.
//! Invariant: a guest that was moved contains no byte of its earlier heap.
//!
//! A move is cheaper than a new guest. The first write to a page costs the kernel about 3 µs, and five times as much if
//! the page was read before and another thread runs. Copying a page costs 0.5 µs. A guest of another heap on the same
//! memory file has already written most of the pages that a step writes. The bytes of its earlier heap are only in the
//! pages that the guest has written, and all these pages are compared and rewritten. The other state of a guest is its
//! stack pointer, which every function restores before it returns, and a table that no function writes. This is known
//! for the guest of this build only, so guests of other builds are never moved.

use std::sync::Arc;

use base::Digest;
use ports::scripts::{Error, Limits, Stop, Surroundings};

use crate::heaps::{LiveGuest, LoadedHeap};
use crate::image::PAGE_BYTES;
use crate::machine::{DirtyPageFinder, Guest, GuestError};

use super::Core;
use super::boot::BootedEngine;
use super::errors::guest_error;
use super::workers::WorkerState;

/// The limits of the trial run, which executes `TRIAL_SCRIPT`.
const TRIAL_LIMITS: Limits = Limits { memory_bytes: 64 << 20, deadline_ms: 1_000, output_bytes: 0 };
/// A script that waits once. The script writes the pages that most scripts write when they start and when they resume.
const TRIAL_SCRIPT: &str = "await new Promise(done => setTimeout(done)); 0";

const NO_SUCH_PAGE: GuestError = GuestError::Invalid("a page of the heap is outside the memory of the guest");

/// Returns a guest whose memory equals the heap: a moved guest or a new guest.
pub fn guest_for(
    core: &Core,
    worker: &mut WorkerState,
    engine: &BootedEngine,
    heap: &LoadedHeap,
    limits: &Limits,
) -> Result<Guest, GuestError> {
    // If the kernel does not report the written pages, a move must compare all pages, which costs more than a new
    // guest.
    let may_move = engine.name == core.own_engine.name && DirtyPageFinder::get().is_exact();
    match may_move.then(|| core.heaps.take_reusable(heap, &engine.base)).flatten() {
        Some(mut reused) => move_guest(&mut reused.guest, worker, heap, limits).map(|()| reused.guest),
        None => new_guest(engine, heap, limits),
    }
}

/// Moves a guest of another heap on the same memory file to this heap.
fn move_guest(
    guest: &mut Guest,
    worker: &mut WorkerState,
    heap: &LoadedHeap,
    limits: &Limits,
) -> Result<(), GuestError> {
    guest.set_memory_limit(limits.memory_bytes);
    guest.grow_to(heap.image.memory_bytes())?;
    let mut view = guest.view();
    DirtyPageFinder::get().find(view.0, &mut worker.dirty_pages);
    let overlay = heap.overlay().iter().map(|(at, _)| *at);
    for at in worker.dirty_pages.iter().copied().chain(overlay) {
        let guest_page = view.page_mut(at).ok_or(NO_SUCH_PAGE)?;
        let heap_page = heap.page(at);
        if guest_page != heap_page {
            guest_page.copy_from_slice(heap_page);
        }
    }
    Ok(())
}

/// Creates a guest and maps the heap into its memory.
pub fn new_guest(engine: &BootedEngine, heap: &LoadedHeap, limits: &Limits) -> Result<Guest, GuestError> {
    let mut guest = Guest::instantiate(&engine.module)?;
    guest.set_memory_limit(limits.memory_bytes);
    guest.grow_to(heap.image.memory_bytes())?;
    let mut view = guest.view();
    view.map(heap.file()).map_err(|error| GuestError::Trap(wasmtime::Error::new(error)))?;
    for (at, page) in heap.overlay() {
        view.page_mut(*at).ok_or(NO_SUCH_PAGE)?.copy_from_slice(page.bytes());
    }
    // The pages that the step will probably write are copied now. A page that the step reads before it writes would
    // cost two page faults.
    for at in heap.likely_writes().iter().filter(|at| !heap.is_in_overlay(**at)) {
        if let Some(page) = view.page_mut(*at) {
            page.copy_from_slice(heap.page(*at));
        }
    }
    Ok(guest)
}

impl Core {
    /// Adds a live guest for the heap `key` to the heap cache, so that the next step on the heap starts at once.
    pub fn prepare_live_guest(&self, worker: &mut WorkerState, key: Digest) -> Result<(), Error> {
        if self.heaps.has_guest(&key) {
            return Ok(());
        }
        let heap = self.loaded_heap(key)?;
        let engine = self.engine_of(&heap)?;
        let limits = Limits { memory_bytes: heap.image.memory_bytes(), ..TRIAL_LIMITS };
        let guest = guest_for(self, worker, &engine, &heap, &limits).map_err(|error| guest_error(error, &limits))?;
        self.keep_guest(worker, guest, heap);
        Ok(())
    }

    /// Adds a guest that has not run on its heap yet to the heap cache.
    fn keep_guest(&self, worker: &mut WorkerState, mut guest: Guest, heap: Arc<LoadedHeap>) {
        DirtyPageFinder::get().find(guest.view().0, &mut worker.dirty_pages);
        let charge = self.heaps.pool().charge(worker.dirty_pages.len() * PAGE_BYTES);
        worker.retired_guests.extend(self.heaps.put_guest(LiveGuest::new(guest, heap, charge)));
    }

    /// Does the idle work of a worker thread: prepares free pages for the next steps, and a spare guest on the base
    /// image. The spare guest is moved to the next heap that has no guest.
    pub fn do_idle_work(&self, worker: &mut WorkerState) {
        let base = &self.own_engine.base;
        // Several threads may become idle at the same time. Only one of them does the idle work.
        let Ok(_guard) = self.idle_work_lock.try_lock() else { return };
        self.heaps.pool().prepare_pages();
        if !DirtyPageFinder::get().is_exact() || !self.heaps.needs_spare_guest(base) {
            return;
        }
        match self.create_spare_guest(worker, base) {
            Ok(guest) => self.keep_guest(worker, guest, base.clone()),
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "no spare JavaScript guest could be prepared; the next new session starts more slowly"
                );
            }
        }
    }

    fn create_spare_guest(&self, worker: &mut WorkerState, base: &Arc<LoadedHeap>) -> Result<Guest, GuestError> {
        if !base.has_trial() {
            // The pages that scripts write are known only after a script ran, so a trial script runs first. The guest
            // of the trial run is dropped, because its memory has grown and it could not be moved to smaller heaps.
            let mut guest = new_guest(&self.own_engine, base, &TRIAL_LIMITS)?;
            let _tick_guard = self.engines.ticker.keep_ticking();
            guest.begin_step(&TRIAL_LIMITS, [&Stop::default(), &self.closing], &Surroundings::default())?;
            guest.evaluate(TRIAL_SCRIPT)?;
            guest.advance()?;
            for call in guest.pending_calls()? {
                guest.settle(call.id, &Ok(serde_json::Value::Null))?;
            }
            guest.advance()?;
            DirtyPageFinder::get().find(guest.view().0, &mut worker.dirty_pages);
            base.record_trial(&worker.dirty_pages);
        }
        new_guest(&self.own_engine, base, &TRIAL_LIMITS)
    }
}

#[cfg(test)]
mod tests {
    use ports::scripts::{Input, Step};

    use super::super::workers::on_a_deep_stack;
    use super::super::{Engine, Settings};
    use super::*;

    fn run(core: &Core, worker: &mut WorkerState, heap: Option<Digest>, code: &str) -> Digest {
        let step = Step {
            heap,
            input: Input::Evaluate { code: code.to_owned() },
            limits: Limits { deadline_ms: 10_000, output_bytes: 1_000, ..TRIAL_LIMITS },
            surroundings: Arc::new(Surroundings::default()),
            stop: Stop::default(),
            turns: None,
        };
        core.step(worker, step).unwrap().heap.key
    }

    /// Starts an engine and waits until its spare guest is ready.
    fn engine_with_spare_guest(live_guests: usize) -> Engine {
        let engine = Engine::start(&Settings { live_guests, ..Settings::default() }).unwrap();
        while engine.core.heaps.needs_spare_guest(&engine.core.own_engine.base) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        engine
    }

    /// Returns the address of the memory of the guest on this heap, which identifies the guest.
    fn guest_address(core: &Core, key: Digest) -> Option<*const u8> {
        let mut live = core.heaps.take_guest(&key)?;
        let address = live.guest.view().0.as_ptr();
        let _ = core.heaps.put_guest(live);
        Some(address)
    }

    #[test]
    fn with_a_full_cache_the_longest_idle_guest_is_moved_to_the_next_heap() {
        let engine = engine_with_spare_guest(2);
        let _no_idle_work = engine.core.idle_work_lock.lock().unwrap();
        on_a_deep_stack(|| {
            let core = &*engine.core;
            let mut worker = WorkerState::new().unwrap();
            let heaps: Vec<Digest> = (0..3).map(|at| run(core, &mut worker, None, &format!("let n = {at}"))).collect();
            let addresses: Vec<_> = heaps.iter().map(|key| guest_address(core, *key)).collect();
            assert_eq!(addresses.iter().flatten().count(), 2, "two guests may live");
            let longest_idle = addresses.iter().position(|address| address.is_some()).unwrap();
            let without_guest = addresses.iter().position(|address| address.is_none()).unwrap();
            let next = run(core, &mut worker, Some(heaps[without_guest]), "n += 10; n");
            assert_eq!(guest_address(core, next), addresses[longest_idle], "the same guest, on another heap");
            assert_eq!(guest_address(core, heaps[longest_idle]), None);
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_guest_that_is_larger_than_a_heap_is_not_moved_to_it() {
        let engine = engine_with_spare_guest(1);
        let _no_idle_work = engine.core.idle_work_lock.lock().unwrap();
        on_a_deep_stack(|| {
            let core = &*engine.core;
            let mut worker = WorkerState::new().unwrap();
            let small = run(core, &mut worker, None, "let n = 1");
            let large = run(core, &mut worker, Some(small), "globalThis.big = new Uint8Array(900_000); 0");
            let after = run(core, &mut worker, Some(small), "++n");
            let pages = |key| core.loaded_heap(key).unwrap().image.pages();
            assert!(pages(after) + 100 < pages(large), "{} and {}", pages(after), pages(large));
            Ok(())
        })
        .unwrap();
    }
}
