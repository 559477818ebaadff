//! Guests for heaps that no guest stands on: one of another heap that is made to, or a new one.
//! Invariant: no byte of the heap that a guest stood on before is left in it.
//!
//! A page that a guest writes for the first time costs the kernel about 3 µs here, five times that where it was read before and
//! another thread runs, and copying it 0.5 µs: a guest of another heap over the same ground has most of the pages already. What
//! is left of the other heap is only in pages that the guest has written, all of which are looked at. The rest of a guest is
//! its stack pointer, which every function puts back before it returns, and a table that no function writes; that is known of
//! the guest of this build only, so guests of other builds are never used again.

use std::sync::Arc;

use base::Digest;
use ports::scripts::{Error, Limits, Stop, Surroundings};

use crate::heaps::{Held, Live};
use crate::image::PAGE;
use crate::machine::{Cut, Dirty, Instance};

use super::Core;
use super::boot::Running;
use super::step::ended;
use super::workers::Bench;

/// For the first program of an engine.
const TRIAL: Limits = Limits { memory_bytes: 64 << 20, deadline_ms: 1_000, output_bytes: 0 };

pub fn standing_on(
    core: &Core,
    bench: &mut Bench,
    (running, held): (&Running, &Held),
    limits: &Limits,
) -> Result<Instance, Cut> {
    let ours = running.name == core.ours.name && Dirty::here().is_exact();
    match ours.then(|| core.shelf.take_spare(held, &running.base)).flatten() {
        Some(mut spare) => move_to(&mut spare.instance, bench, held, limits).map(|()| spare.instance),
        None => restore(running, held, limits),
    }
}

/// Makes a guest of another heap over the same ground one of this heap.
fn move_to(instance: &mut Instance, bench: &mut Bench, held: &Held, limits: &Limits) -> Result<(), Cut> {
    instance.allow(limits.memory_bytes);
    instance.grow(held.image.memory_bytes())?;
    let mut view = instance.view();
    Dirty::here().pages(view.0, &mut bench.dirty);
    let over = held.over().iter().map(|(at, _)| *at);
    for at in bench.dirty.iter().copied().chain(over) {
        let (mine, page) = (view.page_mut(at).ok_or(OUTSIDE)?, held.page(at));
        if mine != page {
            mine.copy_from_slice(page);
        }
    }
    Ok(())
}

/// A new guest with this heap as its memory.
pub fn restore(running: &Running, held: &Held, limits: &Limits) -> Result<Instance, Cut> {
    let fails = |error: std::io::Error| Cut::Trap(wasmtime::Error::new(error));
    let mut instance = Instance::start(&running.linked)?;
    instance.allow(limits.memory_bytes);
    instance.grow(held.image.memory_bytes())?;
    let mut view = instance.view();
    view.stand_on(held.ground()).map_err(fails)?;
    for (at, page) in held.over() {
        view.page_mut(*at).ok_or(OUTSIDE)?.copy_from_slice(page.bytes());
    }
    // What will be written is written before it is read.
    for at in held.likely().iter().filter(|at| !held.is_over(**at)) {
        if let Some(page) = view.page_mut(*at) {
            page.copy_from_slice(held.page(*at));
        }
    }
    Ok(instance)
}

const OUTSIDE: Cut = Cut::Lied("a page outside its memory");

impl Core {
    /// A guest for the next step on this heap.
    pub fn ready(&self, bench: &mut Bench, key: Digest) -> Result<(), Error> {
        if self.shelf.has_live(&key) {
            return Ok(());
        }
        let held = self.held(key)?;
        let running = self.engine_of(&held)?;
        let limits = Limits { memory_bytes: held.image.memory_bytes(), ..TRIAL };
        let instance = standing_on(self, bench, (&running, &held), &limits).map_err(|cut| ended(cut, &limits))?;
        self.keep(bench, instance, held);
        Ok(())
    }

    fn keep(&self, bench: &mut Bench, mut instance: Instance, held: Arc<Held>) {
        Dirty::here().pages(instance.view().0, &mut bench.dirty);
        let counted = self.shelf.ledger().take(bench.dirty.len() * PAGE);
        bench.gone.extend(self.shelf.put_live(Live::new(instance, held, counted)));
    }

    /// Makes a guest that belongs to nobody, where there is none, so that the next heap that comes from storage has one; and pages
    /// for what steps change.
    pub fn prepare(&self, bench: &mut Bench) {
        let base = &self.ours.base;
        // Threads that have worked together rest together.
        let Ok(_one) = self.preparing.try_lock() else { return };
        self.shelf.ledger().stock();
        if !Dirty::here().is_exact() || !self.shelf.wants_spare(base) {
            return;
        }
        match self.prepared(bench, base) {
            Ok(instance) => self.keep(bench, instance, base.clone()),
            Err(error) => tracing::debug!(error = &error as &dyn std::error::Error, "no guest is kept ready"),
        }
    }

    fn prepared(&self, bench: &mut Bench, base: &Arc<Held>) -> Result<Instance, Cut> {
        if !base.is_tried() {
            // What a program writes is not known before one ran. That guest has grown: it is for no heap that has not.
            let mut trial = restore(&self.ours, base, &TRIAL)?;
            let _ticking = self.engines.ticker.running();
            trial.begin(&TRIAL, [&Stop::default(), &self.closing], &Surroundings::default())?;
            trial.evaluate("await new Promise(done => setTimeout(done)); 0")?;
            trial.advance()?;
            for call in trial.owed()? {
                trial.settle(call.id, &Ok(serde_json::Value::Null))?;
            }
            trial.advance()?;
            Dirty::here().pages(trial.view().0, &mut bench.dirty);
            base.was_tried(&bench.dirty);
        }
        restore(&self.ours, base, &TRIAL)
    }
}

#[cfg(test)]
mod tests {
    use ports::scripts::{Input, Step};

    use super::super::workers::on_a_deep_stack;
    use super::super::{Engine, Settings};
    use super::*;

    fn step(core: &Core, bench: &mut Bench, heap: Option<Digest>, code: &str) -> Digest {
        let input = Input::Evaluate { code: code.to_owned() };
        let (surroundings, stop) = (Arc::new(Surroundings::default()), Stop::default());
        let limits = Limits { deadline_ms: 10_000, output_bytes: 1_000, ..TRIAL };
        core.step(bench, Step { heap, input, limits, surroundings, stop, turns: None }).unwrap().heap.key
    }

    /// With the guest that belongs to nobody.
    fn started(live: usize) -> Engine {
        let engine = Engine::start(&Settings { live, ..Settings::default() }).unwrap();
        while engine.core.shelf.wants_spare(&engine.core.ours.base) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        engine
    }

    /// Where its memory lies tells which guest it is.
    fn place(core: &Core, key: Digest) -> Option<*const u8> {
        let mut live = core.shelf.take_live(&key)?;
        let place = live.instance.view().0.as_ptr();
        let _ = core.shelf.put_live(live);
        Some(place)
    }

    #[test]
    fn a_full_house_gives_the_guest_that_was_idle_longest_to_the_next_heap() {
        let engine = started(2);
        let _nobody_prepares = engine.core.preparing.lock().unwrap();
        on_a_deep_stack(|| {
            let (core, mut bench) = (&*engine.core, Bench::new().unwrap());
            let made: Vec<Digest> = (0..3).map(|at| step(core, &mut bench, None, &format!("let n = {at}"))).collect();
            let before: Vec<_> = made.iter().map(|key| place(core, *key)).collect();
            assert_eq!(before.iter().flatten().count(), 2, "two may live");
            let first = before.iter().position(|place| place.is_some()).unwrap();
            let gone = before.iter().position(|place| place.is_none()).unwrap();
            let next = step(core, &mut bench, Some(made[gone]), "n += 10; n");
            assert_eq!(place(core, next), before[first], "the same guest, on another heap");
            assert_eq!(place(core, made[first]), None);
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn one_that_is_larger_than_a_heap_is_not_for_it() {
        let engine = started(1);
        let _nobody_prepares = engine.core.preparing.lock().unwrap();
        on_a_deep_stack(|| {
            let (core, mut bench) = (&*engine.core, Bench::new().unwrap());
            let small = step(core, &mut bench, None, "let n = 1");
            let large = step(core, &mut bench, Some(small), "globalThis.big = new Uint8Array(900_000); 0");
            let after = step(core, &mut bench, Some(small), "++n");
            let pages = |key| core.held(key).unwrap().image.pages();
            assert!(pages(after) + 100 < pages(large), "{} and {}", pages(after), pages(large));
            Ok(())
        })
        .unwrap();
    }
}
