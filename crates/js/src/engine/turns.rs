//! A step job by job, the heap stored and brought back from its object after each one.
//! Invariant: what comes of it is what an unbroken step gives; all that differs is the time it takes.

use std::sync::Arc;
use std::time::Instant;

use ports::scripts::{Error, Limits, Step};

use crate::heaps::{Held, Reads};
use crate::image::Frame;
use crate::machine::{Cut, Instance};

use super::admit::refused;
use super::boot::Running;
use super::guest::restore;
use super::step::ended;
use super::workers::Bench;
use super::{Core, chain};

/// After this `held` is the last heap that was stored, and `instance` a new guest on it.
pub fn one_by_one(
    core: &Core,
    bench: &mut Bench,
    (running, step): (&Running, &Step),
    held: &mut Arc<Held>,
    instance: &mut Instance,
) -> Result<(), Error> {
    let started = Instant::now();
    let cut = |cut: Cut| ended(cut, &step.limits);
    loop {
        let console = instance.console();
        *held = stored(core, bench, running, (held, instance))?;
        let spent = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let left = Limits { deadline_ms: step.limits.deadline_ms.saturating_sub(spent), ..step.limits };
        *instance = restore(running, held, &left).map_err(cut)?;
        instance.begin(&left, [&step.stop, &core.closing], &step.surroundings).map_err(cut)?;
        instance.resume_console(console);
        if !instance.turn().map_err(cut)? {
            return Ok(());
        }
    }
}

/// The heap as its object says, not as it was in memory.
fn stored(
    core: &Core,
    bench: &mut Bench,
    running: &Running,
    (held, instance): (&Arc<Held>, &mut Instance),
) -> Result<Arc<Held>, Error> {
    let (next, object) = chain::commit(core, bench, running, held, instance)?;
    let parent = next.parent().unwrap_or(&running.base).clone();
    let frame = Frame::read_as(next.key(), &object).map_err(|error| refused(next.key(), error))?;
    let mut read = core.read(bench, running, &parent, (&frame, Reads::Last))?;
    read.settle(core.shelf.ledger()).map_err(|error| Error::Engine(error.into()))?;
    Ok(Arc::new(read))
}
