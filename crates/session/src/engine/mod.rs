//! The JavaScript engine, what this process knows of runs on it, and the rows that runs leave.
//! Invariant: nothing here acts; it is what `js` acts on, and the service holds.

mod fair;
pub(crate) mod fetch_rule;
mod live;
pub(crate) mod rows;
mod settings;
pub(crate) mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use base::{Digest, ExecutionId, TenantId, Timestamp};
use ports::{Presence, Scripts};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::shared::{Shared, lock};

pub(crate) use fair::Place;
pub use fetch_rule::FetchRule;
pub(crate) use live::{Listed, Live, Lives};
pub use settings::JsSettings;
pub use view::{
    Became, Changed, Entry, Execution, HeapDiff, HeapInfo, InSession, Named, OutputPage, OutputRequest, Review, RunJs,
    State, Tags, Uncaught,
};

/// The engine, and what this process knows of runs under way.
pub(crate) struct Js {
    pub scripts: Arc<dyn Scripts>,
    pub presence: Arc<dyn Presence>,
    pub settings: JsSettings,
    pub lives: Lives,
    pub fair: fair::Fair,
    /// Whoever waits for a run waits no longer: the server ends.
    pub ends: CancellationToken,
    /// For what is done for steps to come.
    pub making_ready: Semaphore,
    /// For heaps of a tenant that are read from storage, until their step has begun.
    pub bringing: Shared<TenantId, Semaphore>,
    /// Told when something changed that someone may wait for: a session's queue, or a run's claim.
    changes: Shared<String, Notify>,
    /// Held by who stores an engine's program.
    pub keeping: tokio::sync::Mutex<()>,
    /// Engines whose programs were known to be stored at this moment.
    pub guests: Mutex<HashMap<(TenantId, Digest), Timestamp>>,
    /// How many objects a reader of a heap needs, as far as known, and when it was there and nobody's garbage.
    pub links: Mutex<HashMap<(TenantId, Digest), (u32, Timestamp)>>,
    /// What heaps take, as far as known.
    pub heap_use: Mutex<HashMap<TenantId, HeapUse>>,
    /// Why runs that have not ended do not go on, as this process met it.
    held: Mutex<HashMap<ExecutionId, String>>,
}

/// Of steps that have begun, where nobody has said it.
const AT_WORK_MB: u64 = 1_024;
/// So many heaps of a tenant are read at a time; each may be large.
pub(crate) const BRINGING: usize = 8;
/// What this process knows of what a tenant's heaps take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeapUse {
    pub row: u64,
    pub read: Timestamp,
    /// Stored here, and not in the row.
    pub own: u64,
}

/// A bound on what is remembered; it is only told.
const HELD: usize = 10_000;

impl Js {
    pub fn new(scripts: Arc<dyn Scripts>, presence: Arc<dyn Presence>, settings: JsSettings) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let at_once = if settings.at_once == 0 { cores } else { settings.at_once };
        let at_work = if settings.at_work_mb == 0 { AT_WORK_MB } else { settings.at_work_mb }.saturating_mul(1 << 20);
        Self {
            scripts,
            presence,
            settings,
            lives: Lives::default(),
            fair: fair::Fair::new(at_once, at_work),
            ends: CancellationToken::new(),
            making_ready: Semaphore::new(2 * at_once),
            bringing: Shared::default(),
            changes: Shared::default(),
            keeping: tokio::sync::Mutex::default(),
            guests: Mutex::default(),
            links: Mutex::default(),
            heap_use: Mutex::default(),
            held: Mutex::default(),
        }
    }

    /// Remembers what stopped a run that is tried again, or that nothing does any more.
    pub fn hold(&self, id: ExecutionId, why: Option<String>) {
        let mut held = lock(&self.held);
        if held.len() >= HELD {
            held.clear();
        }
        match why {
            Some(why) => held.insert(id, why),
            None => held.remove(&id),
        };
    }

    pub fn held(&self, id: ExecutionId) -> Option<String> {
        lock(&self.held).get(&id).cloned()
    }

    /// What tells of changes to this.
    pub fn changes_of(&self, what: &str) -> Arc<Notify> {
        self.changes.of(what, Notify::new)
    }

    /// Wakes whoever in this process waits for it.
    pub fn changed(&self, what: &str) {
        if let Some(known) = self.changes.known(what) {
            known.notify_waiters();
        }
    }
}

/// What tells of a claim's end.
pub(crate) fn claim_name(id: &str) -> String {
    format!("claim/{id}")
}
