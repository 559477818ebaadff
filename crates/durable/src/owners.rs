//! Which owners of runs live, have died, or are frozen.
//! Invariant: nothing is taken over because a process could not be looked at. A takeover needs certain death, or a whole lease
//! without a renewal, measured by this process's own monotonic clock.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::{InstanceId, TenantId};
use ports::store::{self, Batch, Expect, Key, Table};
use ports::{Liveness, Presence, Store};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::lease::Lease;

/// How long an owner may be silent before others take its runs over. Four renewals may be lost to a slow store.
pub const LEASE: Duration = Duration::from_secs(20);
/// How often an owner of runs renews.
pub const RENEWAL: Duration = Duration::from_secs(5);

/// How long the renewals of an owner are not read again. Far less than a renewal, so that no renewal is missed.
const READ_VALID: Duration = Duration::from_secs(1);

/// The bound on leases that are observed at a time. An observation that was dropped starts again, which only delays a takeover.
const MAX_OBSERVED: usize = 100_000;

/// The relation of this process to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// This process owns the run.
    Mine,
    /// The owner is certainly dead, or has not renewed for a whole lease. The run may be taken over.
    Free,
    /// The owner lives, or nothing is known about it.
    Held,
}

/// This process as an owner of runs, and its view of the other owners.
pub struct Owners {
    presence: Arc<dyn Presence>,
    store: Arc<dyn Store>,
    /// The number of this process's renewals, which its row shows to others.
    renewals: AtomicU64,
    /// For each lease of a living owner: the renewal that was seen, and since when. The lease is part of the key, because a new
    /// lease of an owner that had nothing to renew before must get its whole time.
    observed: Mutex<HashMap<(String, Lease), Observation>>,
    /// The renewals of other owners, as read within [`READ_VALID`]. A pass of the recovery asks for each of their runs.
    read: Mutex<HashMap<InstanceId, (Instant, Option<u64>)>>,
}

/// The last renewal that was seen of the owner of one lease.
#[derive(Clone, Copy)]
struct Observation {
    renewals: Option<u64>,
    since: Instant,
}

/// The port `Presence` of a process that cannot look at other processes. Their runs are taken over only after a silent lease.
#[derive(Debug, Clone, Copy)]
pub struct UnknownPeers {
    pub me: InstanceId,
}

impl Presence for UnknownPeers {
    fn this_process(&self) -> InstanceId {
        self.me
    }

    fn liveness(&self, instance: InstanceId) -> Liveness {
        if instance == self.me { Liveness::Alive } else { Liveness::NotKnown }
    }
}

/// The row of a process that owns runs.
#[derive(Debug, Serialize, Deserialize)]
struct OwnerRow {
    renewals: u64,
}

impl Owners {
    pub fn new(presence: Arc<dyn Presence>, store: Arc<dyn Store>) -> Self {
        Self { presence, store, renewals: AtomicU64::new(0), observed: Mutex::default(), read: Mutex::default() }
    }

    /// Returns the id of this process.
    pub fn me(&self) -> InstanceId {
        self.presence.this_process()
    }

    /// Returns whether a run may be taken over. `run` names the run among all runs of the store. A run of a frozen process is free
    /// only after this was asked for a whole lease, so the caller asks every few seconds.
    pub async fn standing(&self, run: &str, lease: Lease) -> Result<Standing, store::Error> {
        if lease.owner == self.me() {
            return Ok(Standing::Mine);
        }
        match self.presence.liveness(lease.owner) {
            Liveness::Dead => {
                self.observed().remove(&(run.to_owned(), lease));
                Ok(Standing::Free)
            }
            Liveness::Alive | Liveness::NotKnown => self.observe(run, lease).await,
        }
    }

    /// Returns whether a process is certainly dead, so that nothing of it can leave any more. A frozen process is not dead.
    pub fn is_dead(&self, owner: InstanceId) -> bool {
        owner != self.me() && self.presence.liveness(owner) == Liveness::Dead
    }

    /// Compares the owner's renewals with what was seen before.
    async fn observe(&self, run: &str, lease: Lease) -> Result<Standing, store::Error> {
        let renewals = self.renewals_of(lease.owner).await?;
        let now = Instant::now();
        let mut observed = self.observed();
        if observed.len() >= MAX_OBSERVED {
            observed.clear();
        }
        let seen = observed.entry((run.to_owned(), lease)).or_insert(Observation { renewals, since: now });
        if seen.renewals != renewals {
            *seen = Observation { renewals, since: now };
        }
        if now.duration_since(seen.since) < LEASE {
            return Ok(Standing::Held);
        }
        observed.remove(&(run.to_owned(), lease));
        Ok(Standing::Free)
    }

    /// Writes that this process lives. Called every [`RENEWAL`] while it owns runs.
    pub async fn renew(&self) -> Result<(), store::Error> {
        let renewals = self.renewals.fetch_add(1, Ordering::Relaxed) + 1;
        // OwnerRow is plain data, on which serde_json cannot fail.
        let value = serde_json::to_vec(&OwnerRow { renewals }).unwrap_or_default();
        // No version is required, because only this process writes its row.
        self.store.commit(Batch::default().put(owner_key(self.me()), value, Expect::Any)).await
    }

    /// Removes the row of this process, at its orderly end.
    pub async fn sign_off(&self) -> Result<(), store::Error> {
        if self.renewals.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.store.commit(Batch::default().delete(owner_key(self.me()), Expect::Any)).await
    }

    /// Returns the number of renewals in an owner's row. A row that is missing or unreadable counts as a silent owner.
    async fn renewals_of(&self, owner: InstanceId) -> Result<Option<u64>, store::Error> {
        let known = lock(&self.read).get(&owner).copied();
        if let Some((at, renewals)) = known
            && at.elapsed() < READ_VALID
        {
            return Ok(renewals);
        }
        let row = self.store.get(&owner_key(owner)).await?;
        let renewals = row.and_then(|row| serde_json::from_slice::<OwnerRow>(&row.value).ok()).map(|row| row.renewals);
        let mut read = lock(&self.read);
        read.retain(|_, (at, _)| at.elapsed() < READ_VALID);
        read.insert(owner, (Instant::now(), renewals));
        Ok(renewals)
    }

    fn observed(&self) -> MutexGuard<'_, HashMap<(String, Lease), Observation>> {
        lock(&self.observed)
    }
}

/// Locks a map. A poisoned lock is ignored, because each change of these maps is a single call.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Owners belong to no tenant. Their rows are stored under the local tenant, which always exists.
fn owner_key(owner: InstanceId) -> Key {
    Key::new(&TenantId::local(), Table::Owner, owner.to_string())
}

#[cfg(test)]
mod tests {
    use testkit::memory::MemoryStore;
    use testkit::paced::Processes;

    use super::*;

    struct Two {
        processes: Processes,
        one: Owners,
        two: Owners,
    }

    fn two_owners() -> Two {
        let (processes, store) = (Processes::default(), Arc::new(MemoryStore::new()));
        let owners = |n: u8| Owners::new(Arc::new(processes.start(InstanceId::from_random([n; 16]))), store.clone());
        Two { one: owners(1), two: owners(2), processes }
    }

    #[tokio::test]
    async fn a_run_of_a_dead_process_is_free_at_once() {
        let Two { processes, one, two } = two_owners();
        let lease = Lease::first(one.me());
        assert_eq!(one.standing("r", lease).await.unwrap(), Standing::Mine);
        assert_eq!(two.standing("r", lease).await.unwrap(), Standing::Held);
        processes.kill(one.me());
        assert_eq!(two.standing("r", lease).await.unwrap(), Standing::Free);
    }

    #[tokio::test(start_paused = true)]
    async fn a_run_of_a_frozen_process_is_free_after_a_whole_lease_without_renewal() {
        let Two { one, two, .. } = two_owners();
        let lease = Lease::first(one.me());
        one.renew().await.unwrap();
        for _ in 0..3 {
            assert_eq!(two.standing("r", lease).await.unwrap(), Standing::Held);
            tokio::time::advance(LEASE - RENEWAL).await;
            one.renew().await.unwrap();
        }
        assert_eq!(two.standing("r", lease).await.unwrap(), Standing::Held);
        tokio::time::advance(LEASE).await;
        assert_eq!(two.standing("r", lease).await.unwrap(), Standing::Free);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_lease_of_an_owner_that_was_silent_gets_its_whole_time() {
        let Two { one, two, .. } = two_owners();
        assert_eq!(two.standing("first", Lease::first(one.me())).await.unwrap(), Standing::Held);
        tokio::time::advance(LEASE).await;
        assert_eq!(two.standing("second", Lease::first(one.me())).await.unwrap(), Standing::Held);
        let later = Lease { owner: one.me(), epoch: 4 };
        assert_eq!(two.standing("first", later).await.unwrap(), Standing::Held, "another epoch is another lease");
    }
}
