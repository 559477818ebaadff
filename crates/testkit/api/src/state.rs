//! The state of one served test API: the tracker, the store, uploads, tokens, fault rules, and the logs of effects and requests.
//! Invariants: a write that uses several parts takes the lock of the tracker first, so that an effect, its count and its data always
//! agree. No lock is held across an await. `reset` removes every trace of earlier requests, but an OAuth token is never issued twice.

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
    /// The customers of the store, who are the people of the tracker. No route changes them.
    pub people: Arc<Vec<Person>>,
    /// The current version of the store. A GraphQL query reads the version that was current when the query started.
    pub store: RwLock<Arc<Store>>,
    /// The applied mutations that had a `clientMutationId`, by this id.
    pub mutations: Mutex<BTreeMap<String, AppliedMutation>>,
    /// The uploaded files, in the order of the uploads.
    pub uploads: Mutex<Vec<Upload>>,
    pub faults: FaultRules,
    pub requests: RequestLog,
    pub tokens: Tokens,
}

/// An applied mutation. It is compared with a later mutation that has the same `clientMutationId`.
pub struct AppliedMutation {
    /// The name and the input of the mutation as text. Two mutations with the same text are equal.
    pub fingerprint: String,
    pub order_id: String,
}

/// An uploaded file as the API shows it, without its bytes.
#[derive(Debug, Clone, Serialize)]
pub struct Upload {
    /// The number of the upload, which counts from 1.
    pub id: u64,
    /// The name of the file.
    pub name: String,
    #[serde(rename = "type")]
    pub content_type: String,
    /// The size of the file in bytes.
    pub size: usize,
    pub sha256: String,
    pub note: Option<String>,
}

impl TestApi {
    /// Returns new state with the data that is generated from a seed.
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

    /// Returns the current version of the store. Later changes make a new version and do not change this one.
    pub fn current_store(&self) -> Arc<Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Restores the state of the start.
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
