//! JavaScript in sessions: runs as continuations, heaps by key, the log and the tags of what they left.
//!
//! Invariants:
//! - A run is accepted durably before it starts; a continuation is stored before a call that it owes is made.
//! - A final state never changes: every end is one compare-and-set transaction with heap, head, log entry and tags.
//! - A heap key is read through a row of the caller's tenant, also when the engine has the heap in memory.

mod error;
mod fair;
mod heaps;
mod lineage;
mod output;
mod rows;
mod run;
mod settings;
mod tags;
mod view;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use base::{Digest, TenantId};
use ports::{Presence, Scripts};
use tokio::sync::Notify;

pub use error::JsError;
pub use lineage::{Fork, Forked, Lineage, Node};
pub(crate) use run::claim_name;
pub use settings::JsSettings;
pub use view::{
    Changed, Entry, Execution, HeapDiff, HeapInfo, InSession, Named, OutputPage, OutputRequest, Review, RunJs, State,
    Tags, Uncaught,
};

use crate::error::Error;
use crate::service::Service;

/// The engine, and what this process knows of runs under way.
pub(crate) struct Js {
    pub scripts: Arc<dyn Scripts>,
    pub presence: Arc<dyn Presence>,
    pub settings: JsSettings,
    pub lives: run::Lives,
    pub fair: fair::Fair,
    /// Told when something changed that someone may wait for: a session's queue, or a run's claim.
    changes: Mutex<HashMap<String, Weak<Notify>>>,
    /// Engines whose programs are known to be stored.
    guests: Mutex<HashSet<(TenantId, Digest)>>,
    /// How many objects a reader of a heap needs, as far as known.
    links: Mutex<HashMap<(TenantId, Digest), u32>>,
}

impl Js {
    fn new(scripts: Arc<dyn Scripts>, presence: Arc<dyn Presence>, settings: JsSettings) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let at_once = if settings.at_once == 0 { cores } else { settings.at_once };
        Self {
            scripts,
            presence,
            settings,
            lives: run::Lives::default(),
            fair: fair::Fair::new(at_once),
            changes: Mutex::default(),
            guests: Mutex::default(),
            links: Mutex::default(),
        }
    }

    /// What tells of changes to this.
    pub fn changes_of(&self, what: &str) -> Arc<Notify> {
        let mut changes = lock(&self.changes);
        if let Some(known) = changes.get(what).and_then(Weak::upgrade) {
            return known;
        }
        changes.retain(|_, weak| weak.strong_count() > 0);
        let fresh = Arc::new(Notify::new());
        changes.insert(what.to_owned(), Arc::downgrade(&fresh));
        fresh
    }

    /// Wakes whoever in this process waits for it.
    pub fn changed(&self, what: &str) {
        if let Some(known) = lock(&self.changes).get(what).and_then(Weak::upgrade) {
            known.notify_waiters();
        }
    }
}

impl Service {
    /// With an engine for JavaScript.
    #[must_use]
    pub fn with_js(mut self, scripts: Arc<dyn Scripts>, presence: Arc<dyn Presence>, settings: JsSettings) -> Self {
        self.js = Some(Js::new(scripts, presence, settings));
        self
    }

    pub(crate) fn js(&self) -> Result<&Js, Error> {
        Ok(self.js.as_ref().ok_or(JsError::NoScripts)?)
    }
}

/// A panic while holding one of these locks leaves a cache or a list, never half a fact.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
