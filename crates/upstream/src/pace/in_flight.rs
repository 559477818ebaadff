//! How many calls an origin has at once.
//! Invariant: never more than the limit, nor than a catalog says. A call keeps its place from its first try to its last, waits in between
//! included, so an origin that asks for patience gets less load and not more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base::Origin;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Above this many origins, those without a call are forgotten.
const REMEMBERED: usize = 1024;

pub(crate) struct InFlight {
    limit: usize,
    /// By origin and number of places: a catalog may ask for fewer than there are.
    origins: Mutex<HashMap<(Origin, usize), Arc<Semaphore>>>,
}

/// Kept from a call's first try to its last.
#[derive(Debug)]
pub(crate) struct Place {
    _fewer: Option<OwnedSemaphorePermit>,
    _own: Option<OwnedSemaphorePermit>,
}

impl InFlight {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.min(Semaphore::MAX_PERMITS), origins: Mutex::default() }
    }

    /// Waits for a place, first come first served. A permit cannot be missing: no one closes the semaphore.
    pub(crate) async fn enter(&self, origin: &Origin, concurrent: Option<u32>) -> Place {
        let fewer = concurrent.and_then(|n| usize::try_from(n).ok()).filter(|n| *n < self.limit);
        let _fewer = match fewer {
            Some(places) => self.of(origin, places).acquire_owned().await.ok(),
            None => None,
        };
        Place { _fewer, _own: self.of(origin, self.limit).acquire_owned().await.ok() }
    }

    fn of(&self, origin: &Origin, places: usize) -> Arc<Semaphore> {
        let key = (origin.clone(), places);
        let mut origins = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = origins.get(&key) {
            return Arc::clone(found);
        }
        if origins.len() >= REMEMBERED {
            // A call, waiting or under way, holds a second reference.
            origins.retain(|_, places| Arc::strong_count(places) > 1);
        }
        let places = Arc::new(Semaphore::new(places));
        origins.insert(key, Arc::clone(&places));
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
        let held = in_flight.enter(&origin(0), None).await;
        for n in 1..=REMEMBERED {
            in_flight.enter(&origin(n), None).await;
        }
        assert!(in_flight.origins.lock().unwrap().len() <= 2);
        assert_eq!(in_flight.of(&origin(0), 1).available_permits(), 0);
        drop(held);
        assert_eq!(in_flight.of(&origin(0), 1).available_permits(), 1);
    }
}
