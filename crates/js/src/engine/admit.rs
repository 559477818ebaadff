//! Heaps and engines from outside.
//! Invariant: nothing is taken in before all of it was verified; what is refused is named.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::Digest;
use ports::scripts::{Error, Global, Limits, Stop, Surroundings};

use crate::heaps::{Held, Reading, Reads};
use crate::image::{self, Frame, PAGE};

use super::Core;
use super::boot::{Running, StartError};
use super::guest::restore;
use super::step::ended;
use super::workers::Bench;

/// For looking at the globals of a heap.
const LOOK_MS: u64 = 5_000;
const LOOK_BYTES: u64 = 64 << 20;

impl Core {
    pub fn admit(&self, bench: &mut Bench, key: Digest, objects: &[Vec<u8>]) -> Result<(), Error> {
        let mut last: Option<Held> = None;
        for (at, object) in objects.iter().enumerate() {
            let frame = Frame::read(object).map_err(|_| Error::Damaged(asked(key, &objects[at + 1..])))?;
            let running = self.engines.get(&frame.engine);
            let running = running.ok_or(Error::NoEngine { heap: key, engine: frame.engine })?;
            let parent = match (last, frame.parent) {
                (Some(last), _) => Arc::new(last),
                (None, None) => running.base.clone(),
                (None, Some(parent)) => self.held(parent)?,
            };
            let reads = if at + 1 == objects.len() { Reads::Last } else { Reads::OnTheWay };
            last = Some(self.read(bench, &running, &parent, (&frame, reads))?);
        }
        // Only the heap itself is stood on; those before it keep what they have.
        let Some(mut held) = last else { return self.held(key).map(|_| ()) };
        if held.key() != key {
            return Err(Error::Damaged(key));
        }
        held.settle(self.shelf.ledger()).map_err(|error| Error::Engine(error.into()))?;
        self.shelf.put(Arc::new(held));
        Ok(())
    }

    pub fn read(
        &self,
        bench: &mut Bench,
        running: &Running,
        parent: &Arc<Held>,
        (frame, reads): (&Frame<'_>, Reads),
    ) -> Result<Held, Error> {
        let fault = |error: std::io::Error| Error::Engine(error.into());
        let reading = Reading::new(parent, self.shelf.ledger(), frame, reads).map_err(fault)?;
        let is_empty = AtomicBool::new(true);
        let take = |first: u32, pages: &[u8]| {
            let of_stack = running.stack_pages.saturating_sub(first) as usize * PAGE;
            if pages.iter().take(of_stack).any(|byte| *byte != 0) {
                is_empty.store(false, Ordering::Relaxed);
            }
            reading.take(first, pages);
        };
        let image = bench.codec.decode(frame, &parent.image, |at| parent.page(at), &take);
        let image = image.map_err(|error| refused(frame.key, error))?;
        // The stack of a heap is empty. One that is not is no heap of this engine.
        if !is_empty.into_inner() {
            return Err(Error::Damaged(frame.key));
        }
        let mut held = reading.done(image).map_err(fault)?;
        held.descend(parent, 1);
        Ok(held)
    }

    pub fn admit_engine(&self, guest: &[u8]) -> Result<Digest, Error> {
        match self.engines.boot(guest, self.shelf.ledger()) {
            Ok(running) => Ok(running.name),
            Err(StartError::Guest(error)) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "an engine is refused");
                Err(Error::NotAnEngine)
            }
            Err(error) => Err(Error::Engine(error.into())),
        }
    }

    pub fn memory(&self, key: Digest) -> Result<Vec<u8>, Error> {
        let held = self.held(key)?;
        Ok((0..held.image.pages()).flat_map(|at| held.page(at)).copied().collect())
    }

    /// In a guest of its own, which is thrown away: looking needs memory too.
    pub fn globals(&self, key: Digest) -> Result<Vec<Global>, Error> {
        let held = self.held(key)?;
        let running = self.engine_of(&held)?;
        let _ticking = self.engines.ticker.running();
        let memory_bytes = held.image.memory_bytes() * 2 + LOOK_BYTES;
        let limits = Limits { memory_bytes, deadline_ms: LOOK_MS, output_bytes: 0 };
        let mut instance = restore(&running, &held, &limits).map_err(|cut| ended(cut, &limits))?;
        let begun = instance.begin(&limits, [&Stop::default(), &self.closing], &Surroundings::default());
        begun.and_then(|()| instance.globals()).map_err(|cut| ended(cut, &limits))
    }
}

/// The heap that an object was to be, by what comes after it: its own word for it may be what is damaged.
fn asked(key: Digest, after: &[Vec<u8>]) -> Digest {
    let parent = |object: &Vec<u8>| Frame::read(object).ok().and_then(|frame| frame.parent);
    after.first().and_then(parent).unwrap_or(key)
}

pub fn refused(key: Digest, error: image::Error) -> Error {
    match error {
        image::Error::Engine { key, engine } => Error::NoEngine { heap: key, engine },
        image::Error::Damaged { key, .. } => Error::Damaged(key),
        // A fault of ours, not of what was read.
        image::Error::Compress => Error::Engine(error.into()),
        _ => Error::Damaged(key),
    }
}
