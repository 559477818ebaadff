//! The state of one served tracker: its data (`World`), the answers of calls with idempotency keys, and the count of effects.
//! Invariants: one lock protects all data that a write reads or changes, so a write happens completely and once. No lock is held across
//! an await.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::calendar::{LAST_DAY, SECONDS_PER_DAY, instant};
use crate::replays::{Replays, WriteCall};
use crate::world::World;

/// The extractor by which a handler gets the tracker.
pub type TrackerState = axum::extract::State<Arc<Tracker>>;

/// A function that is called for each write that changed data, with the write and its number, which counts from 1.
type EffectHook = Box<dyn Fn(&WriteCall, u64) + Send + Sync>;

/// The data of one served issue tracker.
pub struct Tracker {
    /// The number from which the data is generated, at the start and at each `reset`.
    seed: u64,
    data: RwLock<TrackerData>,
    /// The function by which the test API records effects. `None` in the `tokamak` binary.
    on_effect: Option<EffectHook>,
}

/// All data that a write reads or changes.
pub struct TrackerData {
    /// The current projects, people, tickets and comments.
    pub world: World,
    /// The answers of calls with idempotency keys.
    pub(crate) replays: Replays,
    /// The numbers of deleted tickets, because ticket numbers and comment ids are never used again.
    pub(crate) deleted: Vec<DeletedTicket>,
    /// The number of writes that changed data.
    effects: u64,
}

/// The numbers of a deleted ticket that must not be used again.
pub(crate) struct DeletedTicket {
    pub project: String,
    pub number: u64,
    /// The highest comment id of all tickets at the time of the deletion.
    pub last_comment: u64,
}

impl Tracker {
    /// Returns a tracker with the data that is generated from `seed`.
    pub fn seeded(seed: u64) -> Tracker {
        Tracker { seed, data: RwLock::new(TrackerData::seeded(seed)), on_effect: None }
    }

    /// Sets the function that is called for each write that changed data. It is called under the lock of the change, so that a list that
    /// it makes always agrees with the data.
    pub fn on_effect(self, hook: impl Fn(&WriteCall, u64) + Send + Sync + 'static) -> Tracker {
        Tracker { on_effect: Some(Box::new(hook)), ..self }
    }

    pub fn read(&self) -> RwLockReadGuard<'_, TrackerData> {
        self.data.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, TrackerData> {
        self.data.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a write that changed data. `data` must be the locked data of this tracker.
    pub fn count_effect(&self, data: &mut TrackerData, call: &WriteCall) {
        data.effects += 1;
        if let Some(hook) = &self.on_effect {
            hook(call, data.effects);
        }
    }

    /// Restores the generated data, and calls `also_reset` under the same lock.
    pub fn reset(&self, also_reset: impl FnOnce()) {
        let mut data = self.write();
        *data = TrackerData::seeded(self.seed);
        also_reset();
    }
}

impl TrackerData {
    fn seeded(seed: u64) -> TrackerData {
        TrackerData { world: World::seeded(seed), replays: Replays::default(), deleted: Vec::new(), effects: 0 }
    }

    /// Returns the moment of the effect that is being applied. No clock is read: the first effect is on the day after `LAST_DAY`, and each
    /// later effect is a second after the previous one.
    pub fn instant(&self) -> String {
        instant((LAST_DAY + 1) * SECONDS_PER_DAY + self.effects + 1)
    }

    /// Returns the number of the next ticket of a project.
    pub(crate) fn next_ticket_number(&self, project: &str) -> u64 {
        let present = self.world.tickets.iter().filter(|ticket| ticket.project == project).map(|ticket| ticket.number);
        let deleted = self.deleted.iter().filter(|ticket| ticket.project == project).map(|ticket| ticket.number);
        present.chain(deleted).max().unwrap_or(0) + 1
    }

    pub(crate) fn next_comment_id(&self) -> u64 {
        let present = self.world.comments.iter().map(|comment| comment.id);
        present.chain(self.deleted.iter().map(|ticket| ticket.last_comment)).max().unwrap_or(0) + 1
    }
}
