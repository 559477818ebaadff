//! How many calls an origin has at once.
//! Invariant: never more than the limit. A call keeps its place from its first try to its last, waits in between
//! included, so an origin that asks for patience gets less load and not more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base::Origin;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Above this many origins, those without a call are forgotten.
const REMEMBERED: usize = 1024;

pub(crate) struct InFlight {
    limit: usize,
    origins: Mutex<HashMap<Origin, Arc<Semaphore>>>,
}

impl InFlight {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.min(Semaphore::MAX_PERMITS), origins: Mutex::default() }
    }

    /// Waits for a place, first come first served. `None` cannot happen: no one closes the semaphore.
    pub(crate) async fn enter(&self, origin: &Origin) -> Option<OwnedSemaphorePermit> {
        self.of(origin).acquire_owned().await.ok()
    }

    fn of(&self, origin: &Origin) -> Arc<Semaphore> {
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = origins.get(origin) {
            return Arc::clone(found);
        }
        if origins.len() >= REMEMBERED {
            // A call, waiting or under way, holds a second reference.
            origins.retain(|_, places| Arc::strong_count(places) > 1);
        }
        let places = Arc::new(Semaphore::new(self.limit));
        origins.insert(origin.clone(), Arc::clone(&places));
        places
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn idle_origins_are_forgotten_and_busy_ones_are_not() {
        let in_flight = InFlight::new(1);
        let origin = |n: usize| Origin::parse(&format!("https://h{n}.example")).unwrap();
        let held = in_flight.enter(&origin(0)).await;
        for n in 1..=REMEMBERED {
            in_flight.enter(&origin(n)).await;
        }
        assert!(in_flight.origins.lock().unwrap().len() <= 2);
        assert_eq!(in_flight.of(&origin(0)).available_permits(), 0);
        drop(held);
        assert_eq!(in_flight.of(&origin(0)).available_permits(), 1);
    }
}
