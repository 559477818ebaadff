//! The state of one served tracker: the world that writes change, the answers that are replayed, and the count of effects.
//! Invariants: everything that a write reads or changes is behind one lock, so a write happens whole and once; no lock is held
//! across an await.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::calendar::{DAY, LAST_DAY, instant};
use crate::replays::{Replays, WriteCall};
use crate::world::World;

/// The extractor by which a handler gets the tracker.
pub type TrackerState = axum::extract::State<Arc<Tracker>>;

/// Is called with each write that changed something and with its number, which counts from 1.
type EffectHook = Box<dyn Fn(&WriteCall, u64) + Send + Sync>;

/// One served tracker.
pub struct Tracker {
    /// The seed of the world, to which `reset` returns.
    seed: u64,
    data: RwLock<TrackerData>,
    /// A test API counts effects with it. The product has none.
    on_effect: Option<EffectHook>,
}

/// Everything that a write reads or changes.
pub struct TrackerData {
    /// The projects, people, tickets and comments as they are now.
    pub world: World,
    /// The answers of the idempotency keys that were used.
    pub(crate) replays: Replays,
    /// The tickets that were deleted, because a deletion frees neither a ticket number nor a comment id.
    pub(crate) deleted: Vec<DeletedTicket>,
    /// The number of writes that changed something.
    effects: u64,
}

/// The numbers that a deleted ticket keeps in use.
pub(crate) struct DeletedTicket {
    pub project: String,
    pub number: u64,
    /// The highest comment id that was in use at the deletion, of any ticket.
    pub last_comment: u64,
}

impl Tracker {
    /// Returns a tracker with the world of `seed`.
    pub fn seeded(seed: u64) -> Tracker {
        Tracker { seed, data: RwLock::new(TrackerData::seeded(seed)), on_effect: None }
    }

    /// Calls `hook` with each write that changed something, under the lock of the change, so that the hook's own list and the
    /// data never disagree.
    pub fn on_effect(self, hook: impl Fn(&WriteCall, u64) + Send + Sync + 'static) -> Tracker {
        Tracker { on_effect: Some(Box::new(hook)), ..self }
    }

    pub fn read(&self) -> RwLockReadGuard<'_, TrackerData> {
        self.data.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, TrackerData> {
        self.data.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a write that changed something. `data` must be this tracker's, under the lock of the change.
    pub fn count_effect(&self, data: &mut TrackerData, call: &WriteCall) {
        data.effects += 1;
        if let Some(hook) = &self.on_effect {
            hook(call, data.effects);
        }
    }

    /// Puts the seeded data back and calls `also_reset` under the same lock.
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

    /// Returns the moment of the effect under way. There is no clock: the first effect happens on the day after the seeded world
    /// ends, and each later one a second after the one before.
    pub fn instant(&self) -> String {
        instant((LAST_DAY + 1) * DAY + self.effects + 1)
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
