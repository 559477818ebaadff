//! One step: a guest on a heap, its input, and the heap that comes of it.
//! Invariant: whatever goes wrong, the heap that was stood on is as it was, and a guest that was cut off is gone.

use std::collections::HashSet;
use std::sync::Arc;

use base::Digest;
use ports::scripts::{Error, Heap, Input, Limits, Outcome, Step, Stepped};

use crate::heaps::{Held, Live, over_most};
use crate::image::PAGE;
use crate::machine::{Cut, Instance, Owed, Standing};

use super::boot::Running;
use super::workers::Bench;
use super::{Core, chain, guest, turns};

impl Core {
    pub fn step(&self, bench: &mut Bench, step: Step) -> Result<Stepped, Error> {
        let live = step.heap.as_ref().and_then(|key| self.shelf.take_live(key));
        let (mut held, instance) = match live {
            Some(live) => (live.held, Some(live.instance)),
            None => (step.heap.map_or_else(|| Ok(self.ours.base.clone()), |key| self.held(key))?, None),
        };
        let running = self.engine_of(&held)?;
        let _ticking = self.engines.ticker.running();
        let cut = |cut| ended(cut, &step.limits);
        let mut instance = match instance {
            Some(instance) => instance,
            None => guest::standing_on(self, bench, (&running, &held), &step.limits).map_err(cut)?,
        };
        instance.begin(&step.limits, [&step.stop, &self.closing], &step.surroundings).map_err(cut)?;
        instance.share(step.turns.clone());
        let start = held.clone();
        let before = Before::put(&mut instance, &step.input).map_err(|fault| fault.error(&step.limits))?;
        if self.restless {
            turns::one_by_one(self, bench, (&running, &step), &mut held, &mut instance)?;
        }
        let outcome = before.advance(&mut instance).map_err(|fault| fault.error(&step.limits))?;
        // A guest that is kept keeps nobody's place.
        instance.share(None);
        let console = instance.console();
        let (mut next, mut object) = chain::commit(self, bench, &running, &held, &mut instance)?;
        if self.restless {
            (next, object) = chain::against(self, bench, (&start, &running.base), next)?;
        }
        let heap = Heap {
            key: next.key(),
            parent: next.parent_key(),
            engine: running.name,
            object,
            memory_bytes: next.image.memory_bytes(),
            links: next.links,
        };
        self.shelf.put(next.clone());
        // Every page that a guest has written is looked through in every step: one that has written more than a heap may have
        // over its ground is not kept, mapping the heap anew costs less.
        next.was_written(matches!(step.input, Input::Settle { .. }), &bench.dirty);
        if bench.dirty.len() <= over_most(next.image.pages()) {
            let counted = self.shelf.ledger().take(bench.dirty.len() * PAGE);
            bench.gone.extend(self.shelf.put_live(Live::new(instance, next, counted)));
        } else {
            bench.gone.push(instance);
        }
        Ok(Stepped { heap, outcome, console: console.text, console_dropped: console.dropped })
    }

    pub fn held(&self, key: Digest) -> Result<Arc<Held>, Error> {
        self.shelf.get(&key).ok_or(Error::Absent(key))
    }

    pub fn engine_of(&self, held: &Held) -> Result<Arc<Running>, Error> {
        let engine = held.image.engine();
        self.engines.get(&engine).ok_or(Error::NoEngine { heap: held.key(), engine })
    }
}

pub fn ended(cut: Cut, limits: &Limits) -> Error {
    match cut {
        Cut::Memory => Error::Memory(limits.memory_bytes),
        Cut::Deadline => Error::Deadline(limits.deadline_ms),
        Cut::Stopped => Error::Stopped,
        cut @ (Cut::Lied(_) | Cut::Trap(_)) => Error::Engine(cut.into()),
    }
}

enum Fault {
    Cut(Cut),
    NoCall(u64),
}

impl Fault {
    fn error(self, limits: &Limits) -> Error {
        match self {
            Self::Cut(cut) => ended(cut, limits),
            Self::NoCall(id) => Error::NoCall(id),
        }
    }
}

impl From<Cut> for Fault {
    fn from(cut: Cut) -> Self {
        Self::Cut(cut)
    }
}

/// What a guest was owed before it got its input, and what of that the input settled.
struct Before {
    owing: Owing,
    settled: HashSet<u64>,
}

impl Before {
    fn put(instance: &mut Instance, input: &Input) -> Result<Self, Fault> {
        let owing = Owing { calls: instance.owed()?, last_id: instance.last_id()? };
        let mut settled = HashSet::new();
        match input {
            Input::Evaluate { code } => instance.evaluate(code)?,
            Input::Settle { answers } => {
                for (id, answer) in answers {
                    let known = owing.calls.iter().any(|call| call.id == *id);
                    if !known || !settled.insert(*id) || !instance.settle(*id, answer)? {
                        return Err(Fault::NoCall(*id));
                    }
                }
            }
        }
        Ok(Self { owing, settled })
    }

    /// Runs what can be run, and believes what fits to what was before.
    fn advance(&self, instance: &mut Instance) -> Result<Outcome, Fault> {
        let standing = instance.advance()?;
        let after = Owing { calls: instance.owed()?, last_id: instance.last_id()? };
        after.follows(&self.owing, &self.settled)?;
        Ok(match standing {
            Standing::Waiting if after.calls.is_empty() => return Err(Cut::Lied("it waits for nothing").into()),
            Standing::Waiting => {
                Outcome::Waiting { owed: after.calls.iter().map(Owed::call).collect::<Result<_, _>>()? }
            }
            _ if !after.calls.is_empty() => return Err(Cut::Lied("it has ended and waits").into()),
            Standing::Done(completion) => Outcome::Completed(completion),
            Standing::Threw(thrown) => Outcome::Threw(thrown),
        })
    }
}

/// What a guest says it is owed.
struct Owing {
    calls: Vec<Owed>,
    last_id: u64,
}

impl Owing {
    /// An image is code that we did not write: one that gives an old id to a new call would get the answer, or the consent,
    /// that another call got.
    fn follows(&self, before: &Self, settled: &HashSet<u64>) -> Result<(), Cut> {
        let rising = self.calls.is_sorted_by(|one, next| one.id < next.id);
        let within = self.calls.iter().all(|call| call.id <= self.last_id) && self.last_id >= before.last_id;
        let old = self.calls.iter().filter(|call| call.id <= before.last_id);
        let mut kept = old.map(|call| before.calls.contains(call) && !settled.contains(&call.id));
        if rising && within && kept.all(|kept| kept) { Ok(()) } else { Err(Cut::Lied("a call id that is not its own")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owing(last_id: u64, ids: &[u64]) -> Owing {
        Owing { calls: ids.iter().map(|id| Owed::sample(*id, "program")).collect(), last_id }
    }

    #[test]
    fn an_id_belongs_to_one_call_for_ever() {
        let none = HashSet::new();
        let before = owing(3, &[2, 3]);
        for honest in [owing(3, &[2, 3]), owing(3, &[3]), owing(3, &[]), owing(5, &[2, 4, 5]), owing(9, &[9])] {
            assert!(honest.follows(&before, &none).is_ok(), "{:?}", honest.calls);
        }
        let lies =
            [owing(3, &[1]), owing(3, &[3, 2]), owing(3, &[2, 2]), owing(4, &[5]), owing(2, &[2]), owing(4, &[1, 4])];
        for lie in lies {
            assert!(lie.follows(&before, &none).is_err(), "{:?}", lie.calls);
        }
        assert!(owing(3, &[2, 3]).follows(&before, &HashSet::from([3])).is_err(), "settled and owed again");
        let other = Owing { calls: vec![Owed::sample(2, "another program")], last_id: 3 };
        assert!(other.follows(&before, &none).is_err(), "an old id for another call");
    }
}
