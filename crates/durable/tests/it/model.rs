//! Explores every order of steps of two processes, a store and an API around one run with two effects: crashes, freezes, lost
//! answers, a cancellation and takeovers at every step.
//! Invariant: the model follows the rules in `crates/durable/README.md`, and uses the product's own `Lease`. Each rule that is
//! switched off must lead to a state that breaks a promise, so the test can fail.

use std::collections::{HashSet, VecDeque};

use base::InstanceId;
use durable::Lease;

const EFFECTS: usize = 2;
const PROCESSES: usize = 2;

/// A rule that a run of the model leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// A receipt is opened without a check of the lease.
    NoLeaseCheck,
    /// The request leaves before its receipt is opened.
    ReceiptAfterSend,
    /// The claim is written without the version that was read.
    ClaimWithoutExpectation,
    /// No process looks for runs of dead processes.
    NoRecovery,
    /// The receipts of the earlier owner are read before the takeover.
    ReceiptsBeforeTakeover,
    /// The end of a run is stored without a check of the lease.
    EndWithoutCheck,
}

/// The state of a receipt in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Receipt {
    Missing,
    Open,
    Unknown,
    Done,
}

/// The row of the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct LeaseRow {
    lease: Lease,
    version: u8,
    cancelled: bool,
}

/// The next step of a process for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Idle,
    /// The process read the claim as unused.
    ReadClaim,
    /// The process read the lease of a dead or frozen owner, and with the mistake also the receipts.
    ReadLease(LeaseRow, [Receipt; EFFECTS]),
    /// The process owns the run and looks for a receipt of this effect.
    Look(usize),
    /// The request waits for its place at the origin.
    Wait(usize),
    /// The receipt is stored, and the request is about to leave.
    Opened(usize),
    /// The request left.
    Sent(usize),
    /// The request left before its receipt was opened, by mistake.
    SentUnopened(usize),
    /// The run is over in this process; its end must be stored.
    Ending,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Process {
    id: u8,
    is_alive: bool,
    is_frozen: bool,
    phase: Phase,
    /// The version of the lease that the process knows.
    version: u8,
    lease: Option<Lease>,
    /// The receipts that the process goes by after a takeover.
    known: Option<[Receipt; EFFECTS]>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    processes: [Process; PROCESSES],
    /// The number of process ids given so far. A restarted process has a new id.
    ids: u8,
    claimed: bool,
    lease: Option<LeaseRow>,
    receipts: [Receipt; EFFECTS],
    arrived: [u8; EFFECTS],
    /// The effects of which a stored answer says that they were not begun: the run ended or was cancelled without their receipts.
    not_begun: [bool; EFFECTS],
    /// How often an end was stored.
    ends: u8,
    crashes: u8,
    freezes: u8,
    cancels: u8,
    losses: u8,
}

impl Process {
    fn started(id: u8) -> Self {
        Self { id, is_alive: true, is_frozen: false, phase: Phase::Idle, version: 0, lease: None, known: None }
    }
}

fn instance(id: u8) -> InstanceId {
    InstanceId::from_random([id; 16])
}

impl World {
    fn first() -> Self {
        Self {
            processes: [Process::started(1), Process::started(2)],
            ids: 2,
            claimed: false,
            lease: None,
            receipts: [Receipt::Missing; EFFECTS],
            arrived: [0; EFFECTS],
            not_begun: [false; EFFECTS],
            ends: 0,
            crashes: 2,
            freezes: 1,
            cancels: 1,
            losses: 1,
        }
    }

    /// Returns whether others may take the runs of this owner over: it has ended, or is frozen for a whole lease.
    fn is_free(&self, owner: InstanceId) -> bool {
        let alive = self.processes.iter().find(|process| process.is_alive && instance(process.id) == owner);
        alive.is_none_or(|process| process.is_frozen)
    }

    /// Returns the worlds after one more step, whichever it is.
    fn next(&self, mistake: Mistake) -> Vec<World> {
        let mut worlds = Vec::new();
        for index in 0..PROCESSES {
            self.faults(index, &mut worlds);
            let process = self.processes[index];
            if process.is_alive && !process.is_frozen {
                self.steps(index, mistake, &mut worlds);
            }
        }
        if self.cancels > 0
            && let Some(row) = self.lease
            && !row.cancelled
        {
            let mut world = self.clone();
            world.cancels -= 1;
            world.lease = Some(LeaseRow { cancelled: true, version: row.version + 1, ..row });
            world.promise_not_begun();
            worlds.push(world);
        }
        worlds
    }

    fn faults(&self, index: usize, worlds: &mut Vec<World>) {
        let process = self.processes[index];
        let mut with = |change: &dyn Fn(&mut World)| {
            let mut world = self.clone();
            change(&mut world);
            worlds.push(world);
        };
        if !process.is_alive {
            with(&|world| {
                world.ids += 1;
                world.processes[index] = Process::started(world.ids);
            });
            return;
        }
        if self.crashes > 0 {
            with(&|world| {
                world.crashes -= 1;
                world.processes[index] = Process::started(process.id);
                world.processes[index].is_alive = false;
            });
        }
        if process.is_frozen {
            with(&|world| world.processes[index].is_frozen = false);
        } else if self.freezes > 0 {
            with(&|world| {
                world.freezes -= 1;
                world.processes[index].is_frozen = true;
            });
        }
    }

    fn steps(&self, index: usize, mistake: Mistake, worlds: &mut Vec<World>) {
        let process = self.processes[index];
        let mut with = |change: &dyn Fn(&mut World, &mut Process)| {
            let (mut world, mut process) = (self.clone(), process);
            change(&mut world, &mut process);
            world.processes[index] = process;
            worlds.push(world);
        };
        match process.phase {
            Phase::Idle => {
                if !self.claimed {
                    with(&|_, process| process.phase = Phase::ReadClaim);
                }
                if let Some(row) = self.lease
                    && mistake != Mistake::NoRecovery
                    && self.is_free(row.lease.owner)
                {
                    with(&|world, process| process.phase = Phase::ReadLease(row, world.receipts));
                }
            }
            Phase::ReadClaim => with(&|world, process| {
                process.phase = Phase::Idle;
                if !world.claimed || mistake == Mistake::ClaimWithoutExpectation {
                    let lease = Lease::first(instance(process.id));
                    world.claimed = true;
                    world.lease = Some(LeaseRow { lease, version: 1, cancelled: false });
                    (process.lease, process.version, process.phase) = (Some(lease), 1, Phase::Look(0));
                    process.known = Some([Receipt::Missing; EFFECTS]);
                }
            }),
            Phase::ReadLease(seen, receipts) => with(&|world, process| {
                process.phase = Phase::Idle;
                if world.lease == Some(seen) {
                    let lease = seen.lease.taken_over_by(instance(process.id));
                    let row = LeaseRow { lease, version: seen.version + 1, ..seen };
                    world.lease = Some(row);
                    (process.lease, process.version, process.phase) = (Some(lease), row.version, Phase::Look(0));
                    let is_early = mistake == Mistake::ReceiptsBeforeTakeover;
                    process.known = is_early.then_some(receipts);
                }
            }),
            Phase::Look(effect) if effect == EFFECTS => with(&|_, process| process.phase = Phase::Ending),
            Phase::Look(effect) => with(&|world, process| {
                let receipt = process.known.map_or(world.receipts[effect], |known| known[effect]);
                process.phase = match receipt {
                    Receipt::Missing if mistake == Mistake::ReceiptAfterSend => {
                        world.arrived[effect] += 1;
                        Phase::SentUnopened(effect)
                    }
                    Receipt::Missing => Phase::Wait(effect),
                    Receipt::Done => Phase::Look(effect + 1),
                    // The API does not recognise repetitions, so the run stops at the first effect that is not certain.
                    Receipt::Open | Receipt::Unknown => {
                        world.receipts[effect] = world.receipts[effect].max(Receipt::Unknown);
                        Phase::Ending
                    }
                };
            }),
            Phase::Wait(effect) => with(&|world, process| {
                process.phase = match world.check(process, mistake) {
                    Check::Mine => {
                        world.receipts[effect] = world.receipts[effect].max(Receipt::Open);
                        Phase::Opened(effect)
                    }
                    Check::Cancelled => Phase::Ending,
                    Check::Lost => Phase::Idle,
                };
            }),
            Phase::Opened(effect) => with(&|world, process| {
                world.arrived[effect] += 1;
                process.phase = Phase::Sent(effect);
            }),
            Phase::SentUnopened(effect) => with(&|world, process| {
                world.receipts[effect] = world.receipts[effect].max(Receipt::Open);
                process.phase = Phase::Sent(effect);
            }),
            Phase::Sent(effect) => {
                with(&|world, process| {
                    world.receipts[effect] = Receipt::Done;
                    process.phase = Phase::Look(effect + 1);
                });
                if self.losses > 0 {
                    with(&|world, process| {
                        world.losses -= 1;
                        world.receipts[effect] = world.receipts[effect].max(Receipt::Unknown);
                        process.phase = Phase::Ending;
                    });
                }
            }
            Phase::Ending => with(&|world, process| {
                process.phase = Phase::Idle;
                let is_mine = world.check(process, mistake) != Check::Lost;
                if is_mine || mistake == Mistake::EndWithoutCheck {
                    world.lease = None;
                    world.ends += 1;
                    world.promise_not_begun();
                }
                process.lease = None;
            }),
        }
    }

    /// Compares the row of the lease with what the process knows. A cancellation is learned, and the run then ends.
    fn check(&self, process: &mut Process, mistake: Mistake) -> Check {
        if mistake == Mistake::NoLeaseCheck {
            return Check::Mine;
        }
        match self.lease {
            Some(row) if Some(row.lease) == process.lease => {
                process.version = row.version;
                if row.cancelled { Check::Cancelled } else { Check::Mine }
            }
            _ => Check::Lost,
        }
    }

    fn promise_not_begun(&mut self) {
        for effect in 0..EFFECTS {
            self.not_begun[effect] |= self.receipts[effect] == Receipt::Missing;
        }
    }

    /// Returns the promise that this world breaks.
    fn broken_promise(&self) -> Option<&'static str> {
        for effect in 0..EFFECTS {
            if self.arrived[effect] > 1 {
                return Some("an effect arrived twice");
            }
            if self.arrived[effect] > 0 && self.receipts[effect] == Receipt::Missing {
                return Some("a request arrived without a receipt");
            }
            if self.arrived[effect] > 0 && self.not_begun[effect] {
                return Some("an effect arrived that was called not begun");
            }
            if self.arrived[effect] == 0 && self.receipts[effect] == Receipt::Done {
                return Some("an effect is called done that did not arrive");
            }
        }
        (self.ends > 1).then_some("a run ended twice")
    }

    /// Returns whether the run is lost: nothing but further faults and restarts can happen, and it has not ended.
    fn is_stuck(&self, next: &[World]) -> bool {
        let waits = self.processes.iter().all(|process| process.is_alive && !process.is_frozen);
        let only_faults = next
            .iter()
            .all(|world| world.crashes < self.crashes || world.freezes < self.freezes || world.cancels < self.cancels);
        waits && only_faults && self.claimed && self.ends == 0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    Mine,
    Cancelled,
    Lost,
}

/// Visits all worlds. Returns their number, or the promise that one of them breaks.
fn explore(mistake: Mistake) -> Result<usize, &'static str> {
    let first = World::first();
    let mut seen = HashSet::from([first.clone()]);
    let mut open = VecDeque::from([first]);
    while let Some(world) = open.pop_front() {
        if let Some(promise) = world.broken_promise() {
            return Err(promise);
        }
        let next = world.next(mistake);
        if world.is_stuck(&next) {
            return Err("a run was lost");
        }
        for world in next {
            if seen.insert(world.clone()) {
                open.push_back(world);
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn no_order_of_steps_breaks_a_promise() {
    let worlds = explore(Mistake::None).unwrap();
    assert!(worlds > 10_000, "only {worlds} worlds were explored");
}

#[test]
fn each_rule_is_needed() {
    let broken = [
        (Mistake::NoLeaseCheck, "an effect arrived that was called not begun"),
        (Mistake::ReceiptAfterSend, "a request arrived without a receipt"),
        (Mistake::ClaimWithoutExpectation, "an effect arrived that was called not begun"),
        (Mistake::NoRecovery, "a run was lost"),
        (Mistake::ReceiptsBeforeTakeover, "an effect arrived twice"),
        (Mistake::EndWithoutCheck, "a run ended twice"),
    ];
    for (mistake, promise) in broken {
        assert_eq!(explore(mistake), Err(promise), "{mistake:?}");
    }
}
