//! A service on in-memory ports that tests can control.

use std::sync::Arc;

use base::Limits;
use catalog::Registry;
use session::{OpenedSession, Ports, Service, TaughtTable};
use testkit::memory::{CountingEntropy, ManualClock, MemoryBlobs, MemoryStore};
use testkit::upstream::ScriptedUpstream;

pub struct MemoryService {
    pub service: Arc<Service>,
    pub store: Arc<MemoryStore>,
    pub blobs: Arc<MemoryBlobs>,
    pub clock: Arc<ManualClock>,
    pub upstream: Arc<ScriptedUpstream>,
}

impl MemoryService {
    pub fn of(registry: Arc<Registry>, limits: Limits) -> Self {
        let (store, blobs) = (Arc::new(MemoryStore::new()), Arc::new(MemoryBlobs::new()));
        let (clock, upstream) = (Arc::new(ManualClock::default()), Arc::new(ScriptedUpstream::new()));
        let ports = Ports {
            store: store.clone(),
            blobs: blobs.clone(),
            upstream: upstream.clone(),
            clock: clock.clone(),
            entropy: Arc::new(CountingEntropy::new()),
        };
        let service = Arc::new(Service::new(ports, registry, limits));
        Self { service, store, blobs, clock, upstream }
    }
}

/// The table of an open, or an empty text if nothing was taught.
pub fn table(opened: &OpenedSession) -> &str {
    match &opened.taught {
        TaughtTable::Text(text) => text,
        TaughtTable::Unchanged { .. } => "",
    }
}
