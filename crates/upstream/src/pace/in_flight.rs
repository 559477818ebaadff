//! Bounds the number of calls to one origin at one time.
//! Invariant: there are never more calls than the limit, and never more than the catalog allows. A call keeps its permit from
//! its first try to its last, also while it waits in between. So an origin that asks for a pause gets less load, not more.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base::Origin;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// When there are more semaphores, those of origins without a call are dropped.
const MAX_IDLE_ORIGINS: usize = 1024;

/// The semaphores of the origins.
pub(crate) struct InFlight {
    /// The largest number of calls to any origin.
    limit: usize,
    /// By origin and number of permits, because catalogs of one origin may allow different numbers.
    semaphores: Mutex<HashMap<(Origin, usize), Arc<Semaphore>>>,
}

/// The permission to have one call to an origin under way. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct CallPermit {
    /// From the semaphore of the catalog, if it allows fewer calls than `limit`.
    _of_catalog: Option<OwnedSemaphorePermit>,
    /// From the semaphore with `limit` permits.
    _of_origin: Option<OwnedSemaphorePermit>,
}

impl InFlight {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.min(Semaphore::MAX_PERMITS), semaphores: Mutex::default() }
    }

    /// Waits for a permit, in the order of the calls. `concurrent` is the number of calls that the catalog allows.
    pub(crate) async fn acquire(&self, origin: &Origin, concurrent: Option<u32>) -> CallPermit {
        let catalog_limit = concurrent.and_then(|n| usize::try_from(n).ok()).filter(|n| *n < self.limit);
        // The semaphore with fewer permits comes first. In the other order, calls that wait for it would hold permits that
        // calls of other catalogs could use. `ok` hides no error, since these semaphores are never closed.
        let of_catalog = match catalog_limit {
            Some(permits) => self.semaphore(origin, permits).acquire_owned().await.ok(),
            None => None,
        };
        let of_origin = self.semaphore(origin, self.limit).acquire_owned().await.ok();
        CallPermit { _of_catalog: of_catalog, _of_origin: of_origin }
    }

    fn semaphore(&self, origin: &Origin, permits: usize) -> Arc<Semaphore> {
        let key = (origin.clone(), permits);
        let mut semaphores = self.semaphores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = semaphores.get(&key) {
            return Arc::clone(semaphore);
        }
        if semaphores.len() >= MAX_IDLE_ORIGINS {
            // A call, waiting or under way, holds a second reference. Dropping its semaphore would let others exceed the limit.
            semaphores.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        let semaphore = Arc::new(Semaphore::new(permits));
        semaphores.insert(key, Arc::clone(&semaphore));
        semaphore
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_semaphores_of_idle_origins_are_dropped() {
        let in_flight = InFlight::new(1);
        let origin = |n: usize| Origin::parse(&format!("https://h{n}.example")).unwrap();
        let permit = in_flight.acquire(&origin(0), None).await;
        for n in 1..=MAX_IDLE_ORIGINS {
            in_flight.acquire(&origin(n), None).await;
        }
        assert!(in_flight.semaphores.lock().unwrap().len() <= 2);
        assert_eq!(in_flight.semaphore(&origin(0), 1).available_permits(), 0);
        drop(permit);
        assert_eq!(in_flight.semaphore(&origin(0), 1).available_permits(), 1);
    }
}
