//! The type `InFlight`: limits the number of concurrent calls to one origin.
//! Invariants:
//! - The number of concurrent calls never exceeds the limit of the process or the limit of the catalog.
//! - A call keeps its permit from its first try to its last try, including the waits in between. So an origin that asks
//!   calls to wait gets fewer calls.
//! - Tenants that wait for permits of one origin get them in turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use base::{Origin, TenantId};

use super::fair_semaphore::{FairPermit, FairSemaphore};

/// If this number of semaphores exists, a new one first removes the semaphores of origins without a call.
const MAX_IDLE_ORIGINS: usize = 1024;

/// The semaphores that limit the concurrent calls to each origin.
pub(crate) struct InFlight {
    /// The largest number of concurrent calls to one origin.
    limit: usize,
    /// The semaphores by origin and number of permits. The number is part of the key, because catalogs of one origin
    /// may allow different numbers of calls.
    semaphores: Mutex<HashMap<(Origin, usize), Arc<FairSemaphore>>>,
}

/// The permission to have one call to an origin under way. It is returned when the value is dropped.
#[derive(Debug)]
pub(crate) struct CallPermit {
    /// The permit of the catalog's semaphore, if the catalog allows fewer calls than `limit`.
    _of_catalog: Option<FairPermit>,
    /// The permit of the origin's semaphore, which has `limit` permits.
    _of_origin: FairPermit,
}

impl InFlight {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, semaphores: Mutex::default() }
    }

    /// Waits for a permit. `concurrent` is the number of concurrent calls that the catalog allows.
    pub(crate) async fn acquire(&self, tenant: &TenantId, origin: &Origin, concurrent: Option<u32>) -> CallPermit {
        let catalog_limit = concurrent.and_then(|n| usize::try_from(n).ok()).filter(|n| *n < self.limit);
        // The permit of the catalog is acquired first. In the other order, calls that wait for their catalog would
        // occupy permits that calls of other catalogs could use.
        let of_catalog = match catalog_limit {
            Some(permits) => Some(self.semaphore(origin, permits).acquire(tenant).await),
            None => None,
        };
        let of_origin = self.semaphore(origin, self.limit).acquire(tenant).await;
        CallPermit { _of_catalog: of_catalog, _of_origin: of_origin }
    }

    fn semaphore(&self, origin: &Origin, permits: usize) -> Arc<FairSemaphore> {
        let key = (origin.clone(), permits);
        let mut semaphores = self.semaphores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(semaphore) = semaphores.get(&key) {
            return Arc::clone(semaphore);
        }
        if semaphores.len() >= MAX_IDLE_ORIGINS {
            // A call that waits or is under way has a second reference to its semaphore. Such a semaphore is kept,
            // because a new one would allow too many calls.
            semaphores.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
        }
        let semaphore = Arc::new(FairSemaphore::new(permits));
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
        let permit = in_flight.acquire(&TenantId::local(), &origin(0), None).await;
        for n in 1..=MAX_IDLE_ORIGINS {
            in_flight.acquire(&TenantId::local(), &origin(n), None).await;
        }
        assert!(in_flight.semaphores.lock().unwrap().len() <= 2);
        assert_eq!(in_flight.semaphore(&origin(0), 1).free_permits(), 0);
        drop(permit);
        assert_eq!(in_flight.semaphore(&origin(0), 1).free_permits(), 1);
    }
}
