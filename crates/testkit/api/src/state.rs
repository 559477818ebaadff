//! The state of one served test API: the tracker, what the test API serves beside it, and what tests ask about.
//! Invariants: a write that reads or changes more than one part holds the tracker's lock first, so that an effect, its count and
//! its data never disagree; no lock is held across an await; `reset` leaves nothing of earlier requests, except that an OAuth token
//! is never given out twice.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use demo::{Person, Tracker};
use serde::Serialize;

use crate::effects::EffectLog;
use crate::faults::FaultRules;
use crate::requests::RequestLog;
use crate::store::Store;
use crate::tokens::Tokens;

/// The extractor by which a handler gets the state.
pub type ApiState = axum::extract::State<Arc<TestApi>>;

pub struct TestApi {
    seed: u64,
    /// The tracker, which reports its effects to `effects`.
    pub tracker: Arc<Tracker>,
    pub effects: Arc<EffectLog>,
    /// The customers of the store: the people of the tracker, which no route changes.
    pub people: Arc<Vec<Person>>,
    /// The store as it is now. A GraphQL query reads the version that it found at its start.
    pub store: RwLock<Arc<Store>>,
    /// The mutations that came with a `clientMutationId`, by that id.
    pub mutations: Mutex<BTreeMap<String, AppliedMutation>>,
    /// The files that were uploaded, by their order.
    pub uploads: Mutex<Vec<Upload>>,
    pub faults: FaultRules,
    pub requests: RequestLog,
    pub tokens: Tokens,
}

/// A mutation that was applied, for a second one with the same `clientMutationId`.
pub struct AppliedMutation {
    /// The mutation's name and input as text: two mutations are the same if this is.
    pub fingerprint: String,
    pub order_id: String,
}

/// An upload as the API shows it.
#[derive(Debug, Clone, Serialize)]
pub struct Upload {
    /// Counts from 1.
    pub id: u64,
    /// The file's name.
    pub name: String,
    #[serde(rename = "type")]
    pub content_type: String,
    /// The file's size in bytes.
    pub size: usize,
    pub sha256: String,
    pub note: Option<String>,
}

impl TestApi {
    /// Returns the state with the data of a seed.
    pub fn seeded(seed: u64) -> TestApi {
        let effects = Arc::new(EffectLog::default());
        let log = effects.clone();
        let tracker = Tracker::seeded(seed).on_effect(move |call, number| log.record(call, number));
        let people: Vec<Person> = tracker.read().world.people.clone();
        TestApi {
            seed,
            tracker: Arc::new(tracker),
            effects,
            store: RwLock::new(Arc::new(Store::seeded(seed, &people))),
            people: Arc::new(people),
            mutations: Mutex::default(),
            uploads: Mutex::default(),
            faults: FaultRules::default(),
            requests: RequestLog::default(),
            tokens: Tokens::default(),
        }
    }

    /// Returns the store as it is now. Later changes make a new store and leave this one as it is.
    pub fn current_store(&self) -> Arc<Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts everything back as it was at the start.
    pub fn reset(&self) {
        self.tracker.reset(|| {
            *self.store.write().unwrap_or_else(PoisonError::into_inner) =
                Arc::new(Store::seeded(self.seed, &self.people));
            self.mutations.lock().unwrap_or_else(PoisonError::into_inner).clear();
            self.uploads.lock().unwrap_or_else(PoisonError::into_inner).clear();
            self.effects.clear();
        });
        self.faults.clear();
        self.requests.clear();
        self.tokens.clear();
    }
}
