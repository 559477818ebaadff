//! The counters of the work: calls of tools, requests to APIs, commits.
//! Invariant: labels are bounded: names of tools, codes of outcomes, and no more origins than `ORIGINS`.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicI64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use base::{Auth, Response, TenantId};
use ports::store::{Batch, Key, Range, Row, Table};
use ports::{Store, Upstream, store, upstream};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

type Labels = Vec<(&'static str, String)>;
type Timed = Family<Labels, Histogram, fn() -> Histogram>;

/// Origins with a label of their own; the others are one.
const ORIGINS: usize = 100;

pub(crate) struct Meter {
    pub registry: Registry,
    pub calls: Family<Labels, Counter>,
    pub call_seconds: Timed,
    upstream: Family<Labels, Counter>,
    upstream_seconds: Histogram,
    commits: Family<Labels, Counter>,
    commit_seconds: Histogram,
    dropped: Counter,
    pub sessions: Gauge<i64, AtomicI64>,
    pub runs: Gauge<i64, AtomicI64>,
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
            dropped: Counter::default(),
            sessions: Gauge::default(),
            runs: Gauge::default(),
            origins: Mutex::default(),
            registry: Registry::default(),
        };
        registry.register("calls", "Tool calls by tool and outcome", meter.calls.clone());
        registry.register_with_unit("call", "Duration of tool calls", Unit::Seconds, meter.call_seconds.clone());
        registry.register("upstream_calls", "Requests to APIs by origin and status", meter.upstream.clone());
        let upstream = meter.upstream_seconds.clone();
        registry.register_with_unit("upstream_call", "Duration of requests to APIs", Unit::Seconds, upstream);
        registry.register("store_commits", "Commits by outcome", meter.commits.clone());
        let commit = meter.commit_seconds.clone();
        registry.register_with_unit("store_commit", "Duration of commits", Unit::Seconds, commit);
        registry.register("trace_calls_dropped", "Calls that no trace could take", meter.dropped.clone());
        registry.register("sessions_live", "Sessions called in the last 15 minutes", meter.sessions.clone());
        registry.register("runs_under_way", "Runs under way", meter.runs.clone());
        Self { registry, ..meter }
    }
}

impl Meter {
    pub fn trace_dropped(&self) {
        self.dropped.inc();
    }

    fn origin(&self, origin: &str) -> String {
        let mut known = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < ORIGINS && !known.contains(origin) {
            known.insert(origin.to_owned());
        }
        if known.contains(origin) { origin.to_owned() } else { "other".to_owned() }
    }
}

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

pub(crate) struct MeteredUpstream {
    pub inner: Arc<dyn Upstream>,
    pub meter: Arc<Meter>,
}

#[async_trait]
impl Upstream for MeteredUpstream {
    async fn send(&self, call: upstream::Call) -> Result<Response, upstream::Error> {
        let origin = self.meter.origin(&call.request.origin.to_string());
        let started = Instant::now();
        let answered = self.inner.send(call).await;
        self.meter.upstream_seconds.observe(started.elapsed().as_secs_f64());
        let status = match &answered {
            Ok(response) => format!("{}xx", response.status / 100),
            Err(_) => "none".to_owned(),
        };
        self.meter.upstream.get_or_create(&vec![("origin", origin), ("status", status)]).inc();
        answered
    }

    async fn missing_secrets(&self, tenant: &TenantId, auth: &Auth) -> Vec<String> {
        self.inner.missing_secrets(tenant, auth).await
    }
}
