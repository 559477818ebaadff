//! The JavaScript engine, this process's knowledge of script runs, and the rows of script runs.
//! Invariant: this module is data only. The `js` module acts on it, and the service owns it.

pub(crate) mod fetch_rule;
mod live_scripts;
pub(crate) mod rows;
mod scheduler;
mod settings;
pub(crate) mod view;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use base::{Digest, ExecutionId, TenantId, Timestamp};
use ports::Scripts;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::sync::{WeakMap, lock};

pub use fetch_rule::FetchRule;
pub(crate) use live_scripts::{LiveScript, LiveScriptGuard, LiveScripts};
pub(crate) use scheduler::StepPermit;
pub use settings::JsSettings;
pub use view::{
    ChangedGlobal, Execution, ExecutionIdCell, ExecutionState, GlobalSummary, HeapDiff, HeapInfo, LogEntry, OutputPage,
    OutputRequest, PendingReview, RunJsRequest, SessionTarget, Tags, UncaughtError,
};

/// The engine and what this process knows about script runs.
pub(crate) struct Js {
    /// The engine.
    pub scripts: Arc<dyn Scripts>,
    pub settings: JsSettings,
    /// The runs that this process drives.
    pub lives: LiveScripts,
    /// Decides which step runs next.
    pub scheduler: scheduler::Scheduler,
    /// Cancelled when the server shuts down. Callers that wait for a run then get an answer.
    pub shutdown: CancellationToken,
    /// Permits for preparing instances for later steps, so that preparations never delay steps.
    pub preparations: Semaphore,
    /// Permits for loading heaps from storage, by tenant. A heap loaded for a step occupies memory until the step
    /// starts.
    pub heap_loads: WeakMap<TenantId, Semaphore>,
    /// Wakes tasks of this process that wait for a change, by name: a session's queue or an approval.
    changes: WeakMap<String, Notify>,
    /// Held while the engine's program is stored, so that concurrent runs store it once.
    pub engine_store_lock: tokio::sync::Mutex<()>,
    /// When each engine's program was last known to be stored.
    pub stored_engines: Mutex<HashMap<(TenantId, Digest), Timestamp>>,
    /// For heaps in storage: how many objects a reader needs, and when the heap was last seen uncondemned.
    pub chain_lengths: Mutex<HashMap<(TenantId, Digest), (u32, Timestamp)>>,
    /// The storage that each tenant's heaps use, as far as known.
    pub heap_use: Mutex<HashMap<TenantId, HeapUse>>,
    /// Why runs make no progress, as far as this process knows. Shown to callers that wait for them.
    stall_reasons: Mutex<HashMap<ExecutionId, String>>,
}

/// The memory limit of all started steps together, if the settings give none.
const DEFAULT_STEP_MEMORY_MB: u64 = 1_024;
/// How many heaps of one tenant are loaded at a time, since each may be large.
pub(crate) const HEAP_LOADS: usize = 8;
/// The storage that a tenant's heaps use, as far as this process knows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeapUse {
    /// The bytes in the tenant's row, as last read.
    pub row: u64,
    /// When the row was last read.
    pub read: Timestamp,
    /// Bytes that this process stored and has not yet added to the row.
    pub unflushed: u64,
}

/// The bound on remembered reasons. Losing them changes no behaviour, only a message.
const STALL_REASONS: usize = 10_000;

impl Js {
    pub fn new(scripts: Arc<dyn Scripts>, settings: JsSettings) -> Self {
        let cores = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        let at_once = if settings.at_once == 0 { cores } else { settings.at_once };
        let at_work =
            if settings.at_work_mb == 0 { DEFAULT_STEP_MEMORY_MB } else { settings.at_work_mb }.saturating_mul(1 << 20);
        Self {
            scripts,
            settings,
            lives: LiveScripts::default(),
            scheduler: scheduler::Scheduler::new(at_once, at_work),
            shutdown: CancellationToken::new(),
            preparations: Semaphore::new(2 * at_once),
            heap_loads: WeakMap::default(),
            changes: WeakMap::default(),
            engine_store_lock: tokio::sync::Mutex::default(),
            stored_engines: Mutex::default(),
            chain_lengths: Mutex::default(),
            heap_use: Mutex::default(),
            stall_reasons: Mutex::default(),
        }
    }

    /// Records why a run makes no progress, or clears the reason.
    pub fn set_stall_reason(&self, id: ExecutionId, why: Option<String>) {
        let mut held = lock(&self.stall_reasons);
        if held.len() >= STALL_REASONS {
            held.clear();
        }
        match why {
            Some(why) => held.insert(id, why),
            None => held.remove(&id),
        };
    }

    /// Why a run makes no progress, if that is known.
    pub fn stall_reason(&self, id: ExecutionId) -> Option<String> {
        lock(&self.stall_reasons).get(&id).cloned()
    }

    /// Returns the notifier for changes of the given name.
    pub fn notifier(&self, what: &str) -> Arc<Notify> {
        self.changes.get_or_create(what, Notify::new)
    }

    /// Wakes the tasks of this process that wait for this name.
    pub fn notify(&self, what: &str) {
        if let Some(known) = self.changes.get(what) {
            known.notify_waiters();
        }
    }
}

/// Returns the name under which the end of an approved run is announced.
pub(crate) fn claim_name(id: &str) -> String {
    format!("claim/{id}")
}
