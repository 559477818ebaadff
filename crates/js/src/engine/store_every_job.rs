//! Runs a step so that the heap is stored and loaded again after each job of the script. Tests use this to show that a
//! script cannot notice where it was parked.
//! Invariant: the result equals the result of an uninterrupted step.

use std::sync::Arc;
use std::time::Instant;

use ports::scripts::{Error, Limits, Step};

use crate::heaps::{LoadAs, LoadedHeap};
use crate::image::ParsedObject;
use crate::machine::{Guest, GuestError};

use super::boot::BootedEngine;
use super::errors::{guest_error, internal_error, object_error};
use super::guests::new_guest;
use super::workers::WorkerState;
use super::{Core, chain};

/// Runs all jobs of the step. Afterwards `heap` is the last heap that was stored, and `guest` is a new guest that ran
/// one job on this heap.
pub fn run_all_jobs(
    core: &Core,
    worker: &mut WorkerState,
    engine: &BootedEngine,
    step: &Step,
    heap: &mut Arc<LoadedHeap>,
    guest: &mut Guest,
) -> Result<(), Error> {
    let started = Instant::now();
    let to_port_error = |error: GuestError| guest_error(error, &step.limits);
    loop {
        let console = guest.take_console();
        *heap = store_and_load(core, worker, engine, heap, guest)?;
        let spent_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        // The deadline of each new guest counts from its start, so the time that the step has already used is
        // subtracted.
        let remaining = Limits { deadline_ms: step.limits.deadline_ms.saturating_sub(spent_ms), ..step.limits };
        *guest = new_guest(engine, heap, &remaining).map_err(to_port_error)?;
        guest.begin_step(&remaining, [&step.stop, &core.closing], &step.surroundings).map_err(to_port_error)?;
        guest.resume_console(console);
        if !guest.run_one_job().map_err(to_port_error)? {
            return Ok(());
        }
    }
}

/// Captures the guest's heap as an object and returns the heap that is loaded from this object.
fn store_and_load(
    core: &Core,
    worker: &mut WorkerState,
    engine: &BootedEngine,
    last: &Arc<LoadedHeap>,
    guest: &mut Guest,
) -> Result<Arc<LoadedHeap>, Error> {
    let captured = chain::capture(core, worker, engine, last, guest)?;
    let key = captured.heap.key();
    let parent = captured.heap.object_parent().unwrap_or(&engine.base).clone();
    let object = ParsedObject::parse_as(key, &captured.object).map_err(|error| object_error(key, error))?;
    let mut loaded = core.load(worker, engine, &parent, &object, LoadAs::Target)?;
    loaded.bound_overlay(core.heaps.pool()).map_err(internal_error)?;
    Ok(Arc::new(loaded))
}
