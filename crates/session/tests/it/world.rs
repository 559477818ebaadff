//! A service on in-memory ports, with a hand on each of them.

use std::sync::Arc;

use base::Limits;
use catalog::Registry;
use session::{Opened, Ports, Service, Taught};
use testkit::memory::{CountingEntropy, ManualClock, MemoryBlobs, MemoryStore};
use testkit::upstream::ScriptedUpstream;

pub struct World {
    pub service: Arc<Service>,
    pub store: Arc<MemoryStore>,
    pub blobs: Arc<MemoryBlobs>,
    pub clock: Arc<ManualClock>,
    pub upstream: Arc<ScriptedUpstream>,
}

impl World {
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

/// What was taught; nothing where nothing is new.
pub fn table(opened: &Opened) -> &str {
    match &opened.taught {
        Taught::Table(text) => text,
        Taught::Unchanged { .. } => "",
    }
}
