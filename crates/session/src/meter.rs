//! The metrics of the process: counts and durations of tool calls, requests to APIs and commits.
//! Invariant: labels are bounded: names of tools, codes of outcomes, and no more origins than `ORIGINS`.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use base::{Auth, Origin, Response, TenantId};
use ports::store::{Batch, IndexEntry, IndexRange, Key, MaintenanceRange, Range, Row, Table};
use ports::{Store, Upstream, store, upstream};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

type Labels = Vec<(&'static str, String)>;
type HistogramFamily = Family<Labels, Histogram, fn() -> Histogram>;

/// The number of origins with a label of their own. All others share the label `other`.
const ORIGINS: usize = 100;

/// The metrics of one process.
pub(crate) struct Meter {
    /// Renders all metrics, under their public names.
    pub registry: Registry,
    /// Tool calls by tool and outcome.
    pub calls: Family<Labels, Counter>,
    /// Durations of tool calls, by tool.
    pub call_seconds: HistogramFamily,
    /// Requests to APIs by origin and class of status.
    upstream: Family<Labels, Counter>,
    /// Durations of requests to APIs.
    upstream_seconds: Histogram,
    /// Commits by outcome: ok, a lost race, or a failure.
    commits: Family<Labels, Counter>,
    /// Durations of commits, lost races included.
    commit_seconds: Histogram,
    /// Call records that were dropped because the buffer was full.
    dropped_records: Counter,
    /// The sessions that were called recently. Set when the metrics are rendered.
    pub live_sessions: Gauge<i64, AtomicI64>,
    /// The program runs of this process. Set when the metrics are rendered.
    pub live_runs: Gauge<i64, AtomicI64>,
    /// The origins that have a label of their own.
    origins: Mutex<BTreeSet<String>>,
}

/// Returns a histogram whose buckets reach from a tenth of a millisecond to about 26 seconds.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 4.0, 10))
}

impl Default for Meter {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("tokamak");
        let meter = Self {
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(seconds as fn() -> Histogram),
            upstream: Family::default(),
            upstream_seconds: seconds(),
            commits: Family::default(),
            commit_seconds: seconds(),
            dropped_records: Counter::default(),
            live_sessions: Gauge::default(),
            live_runs: Gauge::default(),
            origins: Mutex::default(),
            registry: Registry::default(),
        };
        registry.register("calls", "Tool calls by tool and outcome", meter.calls.clone());
        registry.register_with_unit("call", "Duration of tool calls", Unit::Seconds, meter.call_seconds.clone());
        registry.register("upstream_calls", "Requests to APIs by origin and status", meter.upstream.clone());
        let upstream_seconds = meter.upstream_seconds.clone();
        registry.register_with_unit("upstream_call", "Duration of requests to APIs", Unit::Seconds, upstream_seconds);
        registry.register("store_commits", "Commits by outcome", meter.commits.clone());
        let commit_seconds = meter.commit_seconds.clone();
        registry.register_with_unit("store_commit", "Duration of commits", Unit::Seconds, commit_seconds);
        registry.register("trace_calls_dropped", "Calls that no trace could take", meter.dropped_records.clone());
        registry.register("sessions_live", "Sessions called in the last 15 minutes", meter.live_sessions.clone());
        registry.register("runs_under_way", "Runs under way", meter.live_runs.clone());
        Self { registry, ..meter }
    }
}

impl Meter {
    /// Counts a call record that was dropped because the buffer was full.
    pub fn trace_dropped(&self) {
        self.dropped_records.inc();
    }

    /// Returns the label of an origin. Catalogs and `fetch` decide which origins are called, so without a bound a
    /// caller could make as many time series as it likes.
    fn origin_label(&self, origin: &str) -> String {
        let mut known = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < ORIGINS && !known.contains(origin) {
            known.insert(origin.to_owned());
        }
        if known.contains(origin) { origin.to_owned() } else { "other".to_owned() }
    }
}

/// A store that counts and times its commits.
pub(crate) struct MeteredStore {
    pub inner: Arc<dyn Store>,
    pub meter: Arc<Meter>,
}

#[async_trait]
impl Store for MeteredStore {
    async fn get(&self, key: &Key) -> Result<Option<Row>, store::Error> {
        self.inner.get(key).await
    }

    async fn scan(&self, range: &Range) -> Result<Vec<(String, Row)>, store::Error> {
        self.inner.scan(range).await
    }

    async fn scan_with(&self, range: &Range, other: Table) -> Result<Vec<(String, Option<Row>)>, store::Error> {
        self.inner.scan_with(range, other).await
    }

    async fn scan_index(&self, range: &IndexRange) -> Result<Vec<IndexEntry>, store::Error> {
        self.inner.scan_index(range).await
    }

    async fn scan_index_of_all_tenants(&self, range: &MaintenanceRange) -> Result<Vec<IndexEntry>, store::Error> {
        self.inner.scan_index_of_all_tenants(range).await
    }

    async fn commit(&self, batch: Batch) -> Result<(), store::Error> {
        let started = Instant::now();
        let committed = self.inner.commit(batch).await;
        self.meter.commit_seconds.observe(started.elapsed().as_secs_f64());
        let outcome = match &committed {
            Ok(()) => "ok",
            Err(store::Error::Conflict(_)) => "conflict",
            Err(_) => "failed",
        };
        self.meter.commits.get_or_create(&vec![("outcome", outcome.to_owned())]).inc();
        committed
    }

    async fn tenants(&self) -> Result<Vec<TenantId>, store::Error> {
        self.inner.tenants().await
    }

    async fn ping(&self) -> Result<(), store::Error> {
        self.inner.ping().await
    }
}

/// An upstream that counts and times its requests.
pub(crate) struct MeteredUpstream {
    pub inner: Arc<dyn Upstream>,
    pub meter: Arc<Meter>,
}

#[async_trait]
impl Upstream for MeteredUpstream {
    async fn send_checked(
        &self,
        call: upstream::Call,
        check: &dyn upstream::DepartureCheck,
    ) -> Result<Response, upstream::Error> {
        let origin = self.meter.origin_label(&call.request.origin.to_string());
        let started = Instant::now();
        let answered = self.inner.send_checked(call, check).await;
        self.meter.upstream_seconds.observe(started.elapsed().as_secs_f64());
        let status = match &answered {
            Ok(response) => format!("{}xx", response.status / 100),
            Err(_) => "none".to_owned(),
        };
        self.meter.upstream.get_or_create(&vec![("origin", origin), ("status", status)]).inc();
        answered
    }

    async fn missing_secrets(&self, tenant: &TenantId, origin: &Origin, auth: &Auth) -> Vec<String> {
        self.inner.missing_secrets(tenant, origin, auth).await
    }
}
