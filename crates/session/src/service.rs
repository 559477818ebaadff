//! The service and what it stands on.
//! Invariant: it holds no session state that is not in the store; what it caches is immutable or can be lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use base::{Digest, ExecuteSessionId, Limits, LogicalSessionId, RunId};
use catalog::{Catalog, Registry};
use ports::{Blobs, Clock, Entropy, Store, Upstream};
use teach::Teaching;
use tokio::sync::Semaphore;

use crate::calls::Traces;
use crate::engine::Js;
use crate::indexed::Indexed;
use crate::live::Lives;
use crate::meter::{Meter, MeteredStore, MeteredUpstream};
use crate::retention::Retention;
use crate::shared::{Shared, lock};
use crate::slots::Slots;
use crate::steadies::{KeptCatalogs, Steadies};
use access::Identity;
use access::Tenants;
use access::{ApiKeys, ConfiguredKey};

/// Every effect the service has.
#[derive(Clone)]
pub struct Ports {
    pub store: Arc<dyn Store>,
    pub blobs: Arc<dyn Blobs>,
    pub upstream: Arc<dyn Upstream>,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
}

pub struct Service {
    pub(crate) ports: Ports,
    /// Replaced as a whole: who took it sees one registry from start to end.
    registry: RwLock<Arc<Registry>>,
    /// The words of what is offered.
    pub(crate) indexed: Indexed,
    pub(crate) limits: Limits,
    pub(crate) teaching: Teaching,
    pub(crate) tenants: Tenants,
    /// Whether the caller decides with which credentials APIs are called, so that sessions are its own.
    pub(crate) delegated: bool,
    /// Finds the identity of an API key.
    pub(crate) api_keys: ApiKeys,
    /// Pinned catalogs that this process never offered.
    pinned: Mutex<HashMap<Digest, Arc<Catalog>>>,
    calls: Shared<LogicalSessionId, Semaphore>,
    turns: Shared<String, Turn>,
    pub(crate) retention: Retention,
    pub(crate) traces: Traces,
    pub(crate) meter: Arc<Meter>,
    /// Opens that change nothing.
    pub(crate) steadies: Steadies,
    pub(crate) kept_catalogs: KeptCatalogs,
    pub(crate) slots: Slots,
    /// Runs under way in this process.
    pub(crate) lives: Lives,
    pub(crate) js: Option<Js>,
}

/// One at a time among the callers of this process.
type Turn = tokio::sync::Mutex<()>;

impl Service {
    pub fn new(ports: Ports, registry: impl Into<Arc<Registry>>, limits: Limits) -> Self {
        let registry = RwLock::new(registry.into());
        let meter = Arc::new(Meter::default());
        let ports = Ports {
            store: Arc::new(MeteredStore { inner: ports.store, meter: meter.clone() }),
            upstream: Arc::new(MeteredUpstream { inner: ports.upstream, meter: meter.clone() }),
            ..ports
        };
        let api_keys = ApiKeys::new(ports.store.clone(), Vec::new());
        Self {
            ports,
            api_keys,
            registry,
            indexed: Indexed::default(),
            limits,
            teaching: Teaching::default(),
            tenants: Tenants::default(),
            delegated: false,
            pinned: Mutex::default(),
            calls: Shared::default(),
            turns: Shared::default(),
            retention: Retention::default(),
            traces: Traces::default(),
            meter,
            steadies: Steadies::default(),
            kept_catalogs: KeptCatalogs::default(),
            slots: Slots::default(),
            lives: Lives::default(),
            js: None,
        }
    }

    /// How it teaches, where that is not the default.
    #[must_use]
    pub fn with_teaching(self, teaching: Teaching) -> Self {
        Self { teaching, ..self }
    }

    /// What tenants may use, where that is not everything.
    #[must_use]
    pub fn with_tenants(self, tenants: Tenants) -> Self {
        Self { tenants, ..self }
    }

    /// For how long things are kept, where that is not the default.
    #[must_use]
    pub fn with_retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Outgoing credentials are the caller's own: `auth_resolution = "delegated"`.
    #[must_use]
    pub fn with_delegated(self, delegated: bool) -> Self {
        Self { delegated, ..self }
    }

    /// Keys that the settings name.
    #[must_use]
    pub fn with_keys(self, keys: Vec<ConfiguredKey>) -> Self {
        let api_keys = ApiKeys::new(self.ports.store.clone(), keys);
        Self { api_keys, ..self }
    }

    /// Finds the identity of an API key; `None` for a key that is unknown or revoked.
    pub async fn identify(&self, key: &str) -> Result<Option<Identity>, crate::Error> {
        Ok(self.api_keys.identify(key).await?)
    }

    /// What is offered at this moment, to whoever may use everything.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From here on new sessions get what `registry` offers; sessions that pinned something else keep it.
    pub fn offer(&self, registry: Arc<Registry>) {
        // Before anyone can ask for it: the next `discover` need not wait for the words of what changed.
        self.indexed.of(&registry);
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = registry;
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn now(&self) -> base::Timestamp {
        self.ports.clock.now()
    }

    /// A name for one incoming request, where the caller brought none.
    pub fn new_request_id(&self) -> String {
        self.new_run_id().to_string()
    }

    /// Whether work can be accepted: the storage answers.
    pub async fn ready(&self) -> Result<(), crate::Error> {
        Ok(self.ports.store.ping().await?)
    }

    /// Whether the storage of blobs answers.
    pub async fn blobs_answer(&self) -> Result<(), crate::Error> {
        self.ports.blobs.list(None, 1).await?;
        Ok(())
    }

    /// A catalog by the digest a session pinned.
    pub(crate) async fn catalog(&self, digest: Digest) -> Result<Arc<Catalog>, crate::Error> {
        if let Some(offered) = self.registry().by_digest(&digest) {
            return Ok(offered.clone());
        }
        if let Some(cached) = lock(&self.pinned).get(&digest) {
            return Ok(cached.clone());
        }
        let bytes = self.ports.blobs.get(&digest).await?;
        let catalog = Arc::new(catalog::from_canonical(&bytes, digest)?);
        lock(&self.pinned).insert(digest, catalog.clone());
        Ok(catalog)
    }

    /// The session's share of calls under way, for as long as one of its runs goes on.
    pub(crate) fn calls_of(&self, session: LogicalSessionId) -> Arc<Semaphore> {
        self.calls.of(&session, || Semaphore::new(self.limits.calls_per_session))
    }

    /// Callers that would change the same thing wait for each other here instead of racing for it in the store. It is only
    /// politeness: other processes take no part in it, and what must hold is held by versions.
    pub(crate) async fn turn(&self, of: &str) -> tokio::sync::OwnedMutexGuard<()> {
        self.turns.of(of, Turn::default).lock_owned().await
    }

    /// The turn, where nobody has it.
    pub(crate) fn free_turn(&self, of: &str) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        self.turns.of(of, Turn::default).try_lock_owned().ok()
    }

    pub(crate) fn new_logical_id(&self) -> LogicalSessionId {
        LogicalSessionId::from_random(self.ports.entropy.bytes())
    }

    pub(crate) fn new_execute_id(&self) -> ExecuteSessionId {
        ExecuteSessionId::from_random(self.ports.entropy.bytes())
    }

    pub(crate) fn new_run_id(&self) -> RunId {
        RunId::from_random(self.ports.entropy.bytes())
    }
}
