//! Runs one step: gives the input to a guest on the heap, runs the script as far as possible, and returns the next heap
//! and the outcome.
//! Invariant: a step never changes the heap that it started from, even if it fails. A guest that returned an error is
//! dropped.

use std::collections::HashSet;
use std::sync::Arc;

use base::Digest;
use ports::scripts::{Error, Heap, Input, Limits, Outcome, Step, Stepped};

use crate::heaps::{LiveGuest, LoadedHeap, max_overlay_pages};
use crate::image::PAGE_BYTES;
use crate::machine::{Guest, GuestCall, GuestError, ScriptProgress};

use super::boot::BootedEngine;
use super::errors::guest_error;
use super::workers::WorkerState;
use super::{Core, chain, guests, store_every_job};

impl Core {
    pub fn step(&self, worker: &mut WorkerState, step: Step) -> Result<Stepped, Error> {
        let live = step.heap.as_ref().and_then(|key| self.heaps.take_guest(key));
        let (mut heap, live_guest) = match live {
            Some(live) => (live.heap, Some(live.guest)),
            None => {
                let base = || Ok(self.own_engine.base.clone());
                (step.heap.map_or_else(base, |key| self.loaded_heap(key))?, None)
            }
        };
        let engine = self.engine_of(&heap)?;
        let _tick_guard = self.engines.ticker.keep_ticking();
        let to_port_error = |error| guest_error(error, &step.limits);
        let mut guest = match live_guest {
            Some(guest) => guest,
            None => guests::guest_for(self, worker, &engine, &heap, &step.limits).map_err(to_port_error)?,
        };
        guest.begin_step(&step.limits, [&step.stop, &self.closing], &step.surroundings).map_err(to_port_error)?;
        guest.set_turns(step.turns.clone());
        let start = heap.clone();
        let input = AppliedInput::apply(&mut guest, &step.input).map_err(|failure| failure.into_error(&step.limits))?;
        if self.store_every_job {
            store_every_job::run_all_jobs(self, worker, &engine, &step, &mut heap, &mut guest)?;
        }
        let outcome = input.advance(&mut guest).map_err(|failure| failure.into_error(&step.limits))?;
        // The live guest stays in the cache after this step, so the scheduler's handle of this step is removed from it.
        guest.set_turns(None);
        let console = guest.take_console();
        let mut captured = chain::capture(self, worker, &engine, &heap, &mut guest)?;
        if self.store_every_job {
            captured = chain::capture_against(self, worker, &start, &engine.base, captured.heap)?;
        }
        let next = captured.heap;
        let stored = Heap {
            key: next.key(),
            parent: next.object_parent_key(),
            engine: engine.name,
            object: captured.object,
            memory_bytes: next.image.memory_bytes(),
            links: next.links,
        };
        self.heaps.put(next.clone());
        next.record_writes(matches!(step.input, Input::Settle { .. }), &worker.dirty_pages);
        // Each step compares every page that its guest ever wrote. A guest that has written more pages than an overlay
        // may have is dropped, because a new guest costs less than these comparisons.
        if worker.dirty_pages.len() <= max_overlay_pages(next.image.pages()) {
            let charge = self.heaps.pool().charge(worker.dirty_pages.len() * PAGE_BYTES);
            worker.retired_guests.extend(self.heaps.put_guest(LiveGuest::new(guest, next, charge)));
        } else {
            worker.retired_guests.push(guest);
        }
        Ok(Stepped { heap: stored, outcome, console: console.text, console_dropped: console.dropped_bytes })
    }

    pub fn loaded_heap(&self, key: Digest) -> Result<Arc<LoadedHeap>, Error> {
        self.heaps.get(&key).ok_or(Error::Absent(key))
    }

    pub fn engine_of(&self, heap: &LoadedHeap) -> Result<Arc<BootedEngine>, Error> {
        let engine = heap.image.engine();
        self.engines.get(&engine).ok_or(Error::NoEngine { heap: heap.key(), engine })
    }
}

/// The reason for which the guest did not accept an input or produced no valid outcome.
enum StepFailure {
    Guest(GuestError),
    /// The input settles the call with this id, which is not pending.
    NoCall(u64),
}

impl StepFailure {
    fn into_error(self, limits: &Limits) -> Error {
        match self {
            Self::Guest(error) => guest_error(error, limits),
            Self::NoCall(id) => Error::NoCall(id),
        }
    }
}

impl From<GuestError> for StepFailure {
    fn from(error: GuestError) -> Self {
        Self::Guest(error)
    }
}

/// An input that the guest has received.
struct AppliedInput {
    /// The pending calls before the input.
    before: GuestCalls,
    /// The ids of the calls that the input settled.
    settled: HashSet<u64>,
}

impl AppliedInput {
    fn apply(guest: &mut Guest, input: &Input) -> Result<Self, StepFailure> {
        let before = GuestCalls { calls: guest.pending_calls()?, last_id: guest.last_call_id()? };
        let mut settled = HashSet::new();
        match input {
            Input::Evaluate { code } => guest.evaluate(code)?,
            Input::Settle { answers } => {
                for (id, answer) in answers {
                    let is_pending = before.calls.iter().any(|call| call.id == *id);
                    if !is_pending || !settled.insert(*id) || !guest.settle(*id, answer)? {
                        return Err(StepFailure::NoCall(*id));
                    }
                }
            }
        }
        Ok(Self { before, settled })
    }

    /// Runs the script until it waits or ends, and checks that its pending calls can follow from the calls before the
    /// input.
    fn advance(&self, guest: &mut Guest) -> Result<Outcome, StepFailure> {
        let progress = guest.advance()?;
        let after = GuestCalls { calls: guest.pending_calls()?, last_id: guest.last_call_id()? };
        after.check_follows(&self.before, &self.settled)?;
        Ok(match progress {
            ScriptProgress::Waiting if after.calls.is_empty() => {
                return Err(GuestError::Invalid("the script waits, but the guest reports no pending call").into());
            }
            ScriptProgress::Waiting => {
                Outcome::Waiting { owed: after.calls.iter().map(GuestCall::to_host_call).collect::<Result<_, _>>()? }
            }
            _ if !after.calls.is_empty() => {
                return Err(GuestError::Invalid("the script has ended, but the guest reports pending calls").into());
            }
            ScriptProgress::Completed(completion) => Outcome::Completed(completion),
            ScriptProgress::Threw(thrown) => Outcome::Threw(thrown),
        })
    }
}

/// The pending calls that a guest reports. The guest is not trusted, so they are a claim.
struct GuestCalls {
    calls: Vec<GuestCall>,
    /// The highest id that the guest has given to a call.
    last_id: u64,
}

impl GuestCalls {
    /// Checks that these calls can follow from the calls `before`: ids rise, new calls have new ids, and an old id
    /// still belongs to the same call and was not settled. An imported heap can contain hostile code. If that code
    /// could assign an old id to another call, the other call would receive the answer or the approval of the old call.
    fn check_follows(&self, before: &Self, settled: &HashSet<u64>) -> Result<(), GuestError> {
        let rising = self.calls.is_sorted_by(|call, next| call.id < next.id);
        let bounded = self.calls.iter().all(|call| call.id <= self.last_id) && self.last_id >= before.last_id;
        let mut old_calls = self.calls.iter().filter(|call| call.id <= before.last_id);
        let unchanged = old_calls.all(|call| before.calls.contains(call) && !settled.contains(&call.id));
        if rising && bounded && unchanged {
            Ok(())
        } else {
            Err(GuestError::Invalid("the guest reports a call with the id of another call"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(last_id: u64, ids: &[u64]) -> GuestCalls {
        GuestCalls { calls: ids.iter().map(|id| GuestCall::sample(*id, "program")).collect(), last_id }
    }

    #[test]
    fn an_id_belongs_to_one_call_forever() {
        let none = HashSet::new();
        let before = pending(3, &[2, 3]);
        let honest_claims =
            [pending(3, &[2, 3]), pending(3, &[3]), pending(3, &[]), pending(5, &[2, 4, 5]), pending(9, &[9])];
        for claim in honest_claims {
            assert!(claim.check_follows(&before, &none).is_ok(), "{:?}", claim.calls);
        }
        let false_claims = [
            pending(3, &[1]),
            pending(3, &[3, 2]),
            pending(3, &[2, 2]),
            pending(4, &[5]),
            pending(2, &[2]),
            pending(4, &[1, 4]),
        ];
        for claim in false_claims {
            assert!(claim.check_follows(&before, &none).is_err(), "{:?}", claim.calls);
        }
        assert!(pending(3, &[2, 3]).check_follows(&before, &HashSet::from([3])).is_err(), "settled and pending again");
        let other_call = GuestCalls { calls: vec![GuestCall::sample(2, "another program")], last_id: 3 };
        assert!(other_call.check_follows(&before, &none).is_err(), "an old id for another call");
    }
}
