//! The service, its ports and its caches.
//! Invariant: all session state is in the store; caches hold immutable data or data that can be lost.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use access::{ApiKeys, ConfiguredKey, Identity, Tenants};
use base::{Digest, ExecuteSessionId, Limits, LogicalSessionId, RunId};
use catalog::{Catalog, Registry};
use ports::{Blobs, Clock, Entropy, Store, Upstream};
use teach::Teaching;
use tokio::sync::Semaphore;

use crate::caches::{DiscoveryIndexCache, SlotCache, StoredCatalogTimes, UnchangedOpenCache};
use crate::call_record::Traces;
use crate::engine::Js;
use crate::live_runs::LiveRuns;
use crate::meter::{Meter, MeteredStore, MeteredUpstream};
use crate::retention::Retention;
use crate::sync::{WeakMap, lock};

/// All effects of the service.
#[derive(Clone)]
pub struct Ports {
    pub store: Arc<dyn Store>,
    pub blobs: Arc<dyn Blobs>,
    pub upstream: Arc<dyn Upstream>,
    pub clock: Arc<dyn Clock>,
    pub entropy: Arc<dyn Entropy>,
}

/// Every use case of the server.
pub struct Service {
    pub(crate) ports: Ports,
    /// Replaced as a whole, so that a call uses one registry from start to end.
    registry: RwLock<Arc<Registry>>,
    /// The search index of the registry.
    pub(crate) discovery_index: DiscoveryIndexCache,
    pub(crate) limits: Limits,
    pub(crate) teaching: Teaching,
    pub(crate) tenants: Tenants,
    /// Whether callers bring their own API credentials. Execute sessions are then not shared between principals.
    pub(crate) delegated: bool,
    /// Finds the identity of an API key.
    pub(crate) api_keys: ApiKeys,
    /// Pinned catalogs that are not in the registry. They are immutable.
    pinned: Mutex<HashMap<Digest, Arc<Catalog>>>,
    /// Permits for concurrent calls, by session.
    calls: WeakMap<LogicalSessionId, Semaphore>,
    /// The turns that callers of this process take, by name.
    turns: WeakMap<String, Turn>,
    pub(crate) retention: Retention,
    pub(crate) traces: Traces,
    pub(crate) meter: Arc<Meter>,
    /// Answers for opens that change nothing.
    pub(crate) unchanged_opens: UnchangedOpenCache,
    pub(crate) stored_catalogs: StoredCatalogTimes,
    pub(crate) slot_cache: SlotCache,
    /// The program runs of this process.
    pub(crate) lives: LiveRuns,
    /// The JavaScript engine, if the server has one.
    pub(crate) js: Option<Js>,
}

/// A lock that callers of this process take in turn.
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
            discovery_index: DiscoveryIndexCache::default(),
            limits,
            teaching: Teaching::default(),
            tenants: Tenants::default(),
            delegated: false,
            pinned: Mutex::default(),
            calls: WeakMap::default(),
            turns: WeakMap::default(),
            retention: Retention::default(),
            traces: Traces::default(),
            meter,
            unchanged_opens: UnchangedOpenCache::default(),
            stored_catalogs: StoredCatalogTimes::default(),
            slot_cache: SlotCache::default(),
            lives: LiveRuns::default(),
            js: None,
        }
    }

    /// Replaces the default teaching.
    #[must_use]
    pub fn with_teaching(self, teaching: Teaching) -> Self {
        Self { teaching, ..self }
    }

    /// Restricts what tenants may use. By default they may use everything.
    #[must_use]
    pub fn with_tenants(self, tenants: Tenants) -> Self {
        Self { tenants, ..self }
    }

    /// Replaces the default retention periods.
    #[must_use]
    pub fn with_retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Lets callers bring their own API credentials: `auth_resolution = "delegated"`.
    #[must_use]
    pub fn with_delegated(self, delegated: bool) -> Self {
        Self { delegated, ..self }
    }

    /// Adds API keys from the settings.
    #[must_use]
    pub fn with_keys(self, keys: Vec<ConfiguredKey>) -> Self {
        let api_keys = ApiKeys::new(self.ports.store.clone(), keys);
        Self { api_keys, ..self }
    }

    /// Returns the identity of an API key. `None` for a key that is unknown or revoked.
    pub async fn identify(&self, key: &str) -> Result<Option<Identity>, crate::Error> {
        Ok(self.api_keys.identify(key).await?)
    }

    /// Returns the current registry, without the restrictions of any tenant.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the registry. Sessions keep the catalogs that they pinned.
    pub fn offer(&self, registry: Arc<Registry>) {
        // Indexed before the registry becomes visible, so that the next `discover` does not have to wait.
        self.discovery_index.index_of(&registry);
        *self.registry.write().unwrap_or_else(PoisonError::into_inner) = registry;
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    pub fn now(&self) -> base::Timestamp {
        self.ports.clock.now()
    }

    /// Returns an id for a request whose caller sent none.
    pub fn new_request_id(&self) -> String {
        self.new_run_id().to_string()
    }

    /// Checks that the storage answers, so that work can be accepted.
    pub async fn ready(&self) -> Result<(), crate::Error> {
        Ok(self.ports.store.ping().await?)
    }

    /// Checks that the blob storage answers.
    pub async fn blobs_answer(&self) -> Result<(), crate::Error> {
        self.ports.blobs.list(None, 1).await?;
        Ok(())
    }

    /// Returns a catalog by the digest that a session pinned.
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

    /// Returns the permits for concurrent calls of a session, shared by its runs.
    pub(crate) fn calls_of(&self, session: LogicalSessionId) -> Arc<Semaphore> {
        self.calls.get_or_create(&session, || Semaphore::new(self.limits.calls_per_session))
    }

    /// Serialises callers of this process that would change the same rows, which saves retries. Other processes do
    /// not take part, so correctness rests on row versions alone.
    pub(crate) async fn turn(&self, of: &str) -> tokio::sync::OwnedMutexGuard<()> {
        self.turns.get_or_create(of, Turn::default).lock_owned().await
    }

    /// Returns the turn, if it is free.
    pub(crate) fn try_turn(&self, of: &str) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        self.turns.get_or_create(of, Turn::default).try_lock_owned().ok()
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
