//! The service, its ports and its caches.
//! Invariant: all session state is in the store; caches hold immutable data or data that can be lost.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use access::{ApiKeys, ConfiguredKey, Identity, Tenants};
use base::{Digest, ExecuteSessionId, InstanceId, Limits, LogicalSessionId, RunId, TenantId};
use catalog::{Catalog, Registry};
use durable::{Owners, UnknownPeers};
use ports::{Blobs, Clock, Entropy, Presence, Store, Upstream};
use teach::Teaching;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::caches::{
    DiscoveryIndexCache, LastProbe, SlotCache, StoredCatalogTimes, UnchangedOpenCache, WatchedSettlements,
};
use crate::call_record::Traces;
use crate::engine::Js;
use crate::live_runs::{DetachedRuns, LiveRuns};
use crate::meter::{Meter, MeteredStore, MeteredUpstream};
use crate::retention::Retention;
use crate::sync::{WeakMap, lock};

/// All effects of the service.
#[derive(Clone)]
pub struct Ports {
    /// The rows, which are the only mutable data.
    pub store: Arc<dyn Store>,
    /// Catalogs, large artifacts, plans and heaps, by digest.
    pub blobs: Arc<dyn Blobs>,
    /// The APIs that catalogs describe.
    pub upstream: Arc<dyn Upstream>,
    /// The only source of time, so that tests can set it.
    pub clock: Arc<dyn Clock>,
    /// The only source of random ids.
    pub entropy: Arc<dyn Entropy>,
}

/// Every use case of the server.
pub struct Service {
    /// The effects. Store and upstream are wrapped by the meters, so no commit or request can bypass a count.
    pub(crate) ports: Ports,
    /// Replaced as a whole, so that a call uses one registry from start to end.
    registry: RwLock<Arc<Registry>>,
    /// The search index of the registry.
    pub(crate) discovery_index: DiscoveryIndexCache,
    /// The bounds on requests, programs and runs.
    pub(crate) limits: Limits,
    /// The form of taught tables, and the threshold at which writes are taught.
    pub(crate) teaching: Teaching,
    /// The restrictions of tenants, which every view of a catalog or registry obeys.
    pub(crate) tenants: Tenants,
    /// Whether callers bring their own API credentials. Execute sessions are then not shared between principals.
    pub(crate) delegated: bool,
    /// Finds the identity of an API key.
    pub(crate) api_keys: ApiKeys,
    /// Parsed catalogs that sessions pinned and the registry does not have. An entry never becomes wrong, because a
    /// digest names one content for ever.
    pinned_catalogs: Mutex<HashMap<Digest, Arc<Catalog>>>,
    /// Permits for concurrent calls to APIs, by session. All runs of a session share them.
    call_permits: WeakMap<LogicalSessionId, Semaphore>,
    /// The turns that callers of this process take, by name.
    turns: WeakMap<String, Turn>,
    /// For how long each kind of data is kept.
    pub(crate) retention: Retention,
    /// Call records that are not written yet.
    pub(crate) traces: Traces,
    /// The counters behind `/metrics`.
    pub(crate) meter: Arc<Meter>,
    /// Answers for opens that change nothing.
    pub(crate) unchanged_opens: UnchangedOpenCache,
    /// Saves putting a catalog as a blob again for every session that pins it.
    pub(crate) stored_catalogs: StoredCatalogTimes,
    /// The slots of principals, which every call reads.
    pub(crate) slot_cache: SlotCache,
    /// The program runs of this process.
    pub(crate) live_runs: LiveRuns,
    /// This process as an owner of runs, and what it knows of other owners.
    pub(crate) owners: Owners,
    /// The runs that no caller waits for, which are bounded.
    pub(crate) detached_runs: Arc<DetachedRuns>,
    /// The effects with a lost answer that this process looks for later.
    pub(crate) watched_settlements: WatchedSettlements,
    /// The last check of whether the storage takes writes.
    pub(crate) last_probe: LastProbe,
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
        let api_keys = ApiKeys::new(ports.store.clone(), Vec::new(), BTreeSet::new());
        let alone = UnknownPeers { me: InstanceId::from_random(ports.entropy.bytes()) };
        let owners = Owners::new(Arc::new(alone), ports.store.clone());
        Self {
            ports,
            owners,
            api_keys,
            registry,
            discovery_index: DiscoveryIndexCache::default(),
            limits,
            teaching: Teaching::default(),
            tenants: Tenants::default(),
            delegated: false,
            pinned_catalogs: Mutex::default(),
            call_permits: WeakMap::default(),
            turns: WeakMap::default(),
            retention: Retention::default(),
            traces: Traces::default(),
            meter,
            unchanged_opens: UnchangedOpenCache::default(),
            stored_catalogs: StoredCatalogTimes::default(),
            slot_cache: SlotCache::default(),
            live_runs: LiveRuns::default(),
            detached_runs: Arc::default(),
            watched_settlements: WatchedSettlements::default(),
            last_probe: LastProbe::default(),
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

    /// Tells the service which other processes on its store live. Without this it takes a run over only after its owner was silent
    /// for a whole lease.
    #[must_use]
    pub fn with_presence(self, presence: Arc<dyn Presence>) -> Self {
        let owners = Owners::new(presence, self.ports.store.clone());
        Self { owners, ..self }
    }

    /// Lets callers bring their own API credentials: `auth_resolution = "delegated"`.
    #[must_use]
    pub fn with_delegated(self, delegated: bool) -> Self {
        Self { delegated, ..self }
    }

    /// Adds the API keys from the settings, and accepts stored keys of `tenants`, which are the tenants that the settings name.
    #[must_use]
    pub fn with_keys(self, keys: Vec<ConfiguredKey>, tenants: BTreeSet<TenantId>) -> Self {
        let api_keys = ApiKeys::new(self.ports.store.clone(), keys, tenants);
        Self { api_keys, ..self }
    }

    /// Returns the identity of an API key. `None` for a key that is unknown or revoked.
    pub async fn identify(&self, key: &str) -> Result<Option<Identity>, crate::Error> {
        Ok(self.api_keys.identify(key).await?)
    }

    /// Returns whether any tenant has a stored API key, a revoked one included.
    pub async fn has_stored_keys(&self) -> Result<bool, crate::Error> {
        Ok(access::keys::any(self.ports.store.as_ref()).await?)
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

    /// Shows other processes that this one lives, while it owns runs, until `stop`. Signs off at the end.
    pub async fn renew_until(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(durable::RENEWAL) => {}
                () = stop.cancelled() => break,
            }
            let scripts = self.js.as_ref().map_or(0, |js| js.lives.total());
            if self.live_runs.count() + scripts > 0
                && let Err(error) = self.owners.renew().await
            {
                tracing::warn!(%error, "the lease of this process could not be renewed; other processes may take its runs over");
            }
        }
        if let Err(error) = self.owners.sign_off().await {
            tracing::warn!(%error, "this process could not sign off");
        }
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

    /// Checks that the blob storage answers.
    pub async fn check_blobs(&self) -> Result<(), crate::Error> {
        self.ports.blobs.list(None, 1).await?;
        Ok(())
    }

    /// Returns a catalog by the digest that a session pinned.
    pub(crate) async fn catalog(&self, digest: Digest) -> Result<Arc<Catalog>, crate::Error> {
        // Most sessions pin what is offered now, so the registry is asked first and nothing is parsed twice.
        if let Some(offered) = self.registry().by_digest(&digest) {
            return Ok(offered.clone());
        }
        if let Some(cached) = lock(&self.pinned_catalogs).get(&digest) {
            return Ok(cached.clone());
        }
        // The lock is not held while the blob is read. Two callers may then parse the same catalog, which is harmless
        // because both results are equal.
        let bytes = self.ports.blobs.get(&digest).await?;
        let catalog = Arc::new(catalog::from_canonical(&bytes, digest)?);
        lock(&self.pinned_catalogs).insert(digest, catalog.clone());
        Ok(catalog)
    }

    /// Returns the permits for concurrent calls of a session, shared by its runs.
    pub(crate) fn call_permits_of(&self, session: LogicalSessionId) -> Arc<Semaphore> {
        self.call_permits.get_or_create(&session, || Semaphore::new(self.limits.calls_per_session))
    }

    /// Serialises callers of this process that would change the same rows, which saves retries. Other processes do
    /// not take part, so correctness rests on row versions alone.
    pub(crate) async fn turn(&self, name: &str) -> tokio::sync::OwnedMutexGuard<()> {
        self.turns.get_or_create(name, Turn::default).lock_owned().await
    }

    /// Returns the turn, if it is free.
    pub(crate) fn try_turn(&self, name: &str) -> Option<tokio::sync::OwnedMutexGuard<()>> {
        self.turns.get_or_create(name, Turn::default).try_lock_owned().ok()
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
