//! What one served demo API remembers: the data that writes change, and what tests ask it about.
//! Invariants: everything a write reads or changes is behind the one lock of `Data`, so a write happens whole and once;
//! no lock is held across an await; `reset` leaves nothing behind of what was asked before.

pub mod effects;
pub mod replays;
pub mod requests;
pub mod tokens;

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use serde::Serialize;

use crate::date::{DAY, LAST_DAY, instant};
use crate::faults::Board;
use crate::store::Store;
use crate::world::World;
use effects::Effects;
use replays::Replays;
use requests::Requests;
use tokens::Tokens;

/// What each handler is given.
pub type Shared = axum::extract::State<Arc<App>>;

pub struct App {
    seed: u64,
    data: RwLock<Data>,
    pub faults: Board,
    pub requests: Requests,
    pub tokens: Tokens,
}

pub struct Data {
    pub world: World,
    pub store: Store,
    pub uploads: Vec<Upload>,
    pub effects: Effects,
    pub replays: Replays,
    /// By clientMutationId: the mutation with its input, and the id of the order it changed.
    pub mutations: BTreeMap<String, (String, String)>,
    /// Comment ids and ticket numbers given since the start: what was deleted does not free its number.
    pub retired: Vec<Retired>,
}

/// A ticket that was deleted, with the ids of its last comment.
pub struct Retired {
    pub project: String,
    pub number: u64,
    pub last_comment: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct Upload {
    pub id: u64,
    pub name: String,
    #[serde(rename = "type")]
    pub content_type: String,
    pub size: usize,
    pub sha256: String,
    pub note: Option<String>,
}

impl App {
    pub fn seeded(seed: u64) -> App {
        App {
            seed,
            data: RwLock::new(Data::seeded(seed)),
            faults: Board::default(),
            requests: Requests::default(),
            tokens: Tokens::default(),
        }
    }

    pub fn read(&self) -> RwLockReadGuard<'_, Data> {
        self.data.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, Data> {
        self.data.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn reset(&self) {
        *self.write() = Data::seeded(self.seed);
        self.faults.clear();
        self.requests.clear();
        self.tokens.clear();
    }
}

impl Data {
    fn seeded(seed: u64) -> Data {
        Data {
            world: World::seeded(seed),
            store: Store::seeded(seed),
            uploads: Vec::new(),
            effects: Effects::default(),
            replays: Replays::default(),
            mutations: BTreeMap::new(),
            retired: Vec::new(),
        }
    }

    /// When the effect under way happens. There is no clock: the day after the seeded world ends, a second per effect.
    pub fn instant(&self) -> String {
        instant((LAST_DAY + 1) * DAY + self.effects.next())
    }

    pub fn next_number(&self, project: &str) -> u64 {
        let present = self.world.tickets.iter().filter(|one| one.project == project).map(|one| one.number);
        let retired = self.retired.iter().filter(|one| one.project == project).map(|one| one.number);
        present.chain(retired).max().unwrap_or(0) + 1
    }

    pub fn next_comment(&self) -> u64 {
        let present = self.world.comments.iter().map(|one| one.id);
        present.chain(self.retired.iter().map(|one| one.last_comment)).max().unwrap_or(0) + 1
    }
}
