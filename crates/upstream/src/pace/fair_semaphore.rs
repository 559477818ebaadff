//! The type `FairSemaphore`: a number of permits for which the tenants wait in turn.
//! Invariants:
//! - A released permit goes to the tenant that has waited longest since its last turn, whatever the number of its
//!   waiting calls. Calls of one tenant get permits in the order in which they asked.
//! - A waiter that is dropped keeps neither a place in a queue nor a permit.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::TenantId;
use tokio::sync::oneshot;

/// The permits of one origin, and the calls that wait for them.
pub(crate) struct FairSemaphore {
    state: Mutex<State>,
}

struct State {
    /// The number of permits that no call has. It is zero while a call waits.
    free: usize,
    /// The tenants with waiting calls, in the order of their turns.
    turns: VecDeque<TenantId>,
    /// The waiting calls of each tenant in `turns`. No queue is empty.
    waiting: HashMap<TenantId, VecDeque<Waiter>>,
    /// The number of the next waiter.
    next_number: u64,
}

struct Waiter {
    number: u64,
    permit: oneshot::Sender<FairPermit>,
}

/// One permit. It is returned when the value is dropped.
#[derive(Debug)]
pub(crate) struct FairPermit {
    /// The semaphore to which the permit returns. `None` if the permit was passed back already.
    semaphore: Option<Arc<FairSemaphore>>,
}

impl FairSemaphore {
    pub(crate) fn new(permits: usize) -> Self {
        let state = State { free: permits, turns: VecDeque::new(), waiting: HashMap::new(), next_number: 0 };
        Self { state: Mutex::new(state) }
    }

    /// Waits for a permit.
    pub(crate) async fn acquire(self: &Arc<Self>, tenant: &TenantId) -> FairPermit {
        let (sender, receiver) = oneshot::channel();
        let number = {
            let mut state = self.lock();
            if state.free > 0 {
                state.free -= 1;
                return FairPermit { semaphore: Some(Arc::clone(self)) };
            }
            state.push(tenant, sender)
        };
        let mut place = QueuePlace { semaphore: self, tenant, number, is_queued: true };
        let received = receiver.await;
        place.is_queued = false;
        // The sender of a waiter is dropped only together with the waiter, so there is always a permit. A permit of no
        // semaphore is better than a panic.
        received.unwrap_or(FairPermit { semaphore: None })
    }

    /// Passes a permit to the next waiter, or makes it free.
    fn release(self: &Arc<Self>) {
        loop {
            let Some(waiter) = self.lock().next_waiter() else { return };
            // The permit is sent without the lock, because a permit that is dropped takes the lock.
            match waiter.permit.send(FairPermit { semaphore: Some(Arc::clone(self)) }) {
                Ok(()) => return,
                // The waiter was dropped at this moment. Its permit goes to the next one.
                Err(mut unused) => unused.semaphore = None,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn free_permits(&self) -> usize {
        self.lock().free
    }
}

impl State {
    fn push(&mut self, tenant: &TenantId, permit: oneshot::Sender<FairPermit>) -> u64 {
        let number = self.next_number;
        self.next_number += 1;
        let queue = self.waiting.entry(tenant.clone()).or_default();
        if queue.is_empty() {
            self.turns.push_back(tenant.clone());
        }
        queue.push_back(Waiter { number, permit });
        number
    }

    /// Removes and returns the next waiter. Without a waiter the permit becomes free.
    fn next_waiter(&mut self) -> Option<Waiter> {
        let Some(tenant) = self.turns.pop_front() else {
            self.free += 1;
            return None;
        };
        let queue = self.waiting.get_mut(&tenant)?;
        let waiter = queue.pop_front();
        if queue.is_empty() {
            self.waiting.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        waiter
    }

    fn remove(&mut self, tenant: &TenantId, number: u64) {
        let Some(queue) = self.waiting.get_mut(tenant) else { return };
        queue.retain(|waiter| waiter.number != number);
        if queue.is_empty() {
            self.waiting.remove(tenant);
            self.turns.retain(|other| other != tenant);
        }
    }
}

/// The place of a call in the queue of its tenant. Dropping it removes the call from the queue.
struct QueuePlace<'a> {
    semaphore: &'a FairSemaphore,
    tenant: &'a TenantId,
    number: u64,
    /// Whether the call is still in the queue. A call that got its permit was removed by `next_waiter`.
    is_queued: bool,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        if self.is_queued {
            self.semaphore.lock().remove(self.tenant, self.number);
        }
    }
}

impl Drop for FairPermit {
    fn drop(&mut self) {
        if let Some(semaphore) = self.semaphore.take() {
            semaphore.release();
        }
    }
}

// `Debug` is written by hand, because a permit contains its semaphore and the waiters have no `Debug`.
impl std::fmt::Debug for FairSemaphore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FairSemaphore")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn tenant(name: &str) -> TenantId {
        TenantId::parse(name).unwrap()
    }

    /// Starts a call that holds its permit for a second and records its name when it has the permit.
    fn slow_call(semaphore: &Arc<FairSemaphore>, name: &'static str, order: &Arc<Mutex<Vec<&'static str>>>) {
        let (semaphore, order) = (Arc::clone(semaphore), Arc::clone(order));
        tokio::spawn(async move {
            let _permit = semaphore.acquire(&tenant(name)).await;
            order.lock().unwrap().push(name);
            tokio::time::sleep(Duration::from_secs(1)).await;
        });
    }

    #[tokio::test(start_paused = true)]
    async fn one_tenant_with_600_slow_calls_delays_another_by_one_turn() {
        let semaphore = Arc::new(FairSemaphore::new(8));
        let order = Arc::default();
        for _ in 0..600 {
            slow_call(&semaphore, "greedy", &order);
        }
        tokio::task::yield_now().await;
        for _ in 0..3 {
            slow_call(&semaphore, "modest", &order);
        }
        tokio::time::sleep(Duration::from_secs(200)).await;
        let order = order.lock().unwrap().clone();
        assert_eq!(order.len(), 603);
        let modest: Vec<_> =
            order.iter().enumerate().filter(|(_, name)| **name == "modest").map(|(at, _)| at).collect();
        // Eight calls were under way. From then on, every second permit is for the other tenant.
        assert_eq!(modest, [9, 11, 13]);
    }

    #[tokio::test(start_paused = true)]
    async fn tenants_take_turns_and_calls_of_one_tenant_stay_in_order() {
        let semaphore = Arc::new(FairSemaphore::new(1));
        let order = Arc::default();
        for name in ["a", "a", "a", "b", "c", "c", "a"] {
            slow_call(&semaphore, name, &order);
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(*order.lock().unwrap(), ["a", "a", "b", "c", "a", "c", "a"]);
        assert_eq!(semaphore.free_permits(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_dropped_waiter_keeps_no_place_and_no_permit() {
        let semaphore = Arc::new(FairSemaphore::new(1));
        let first = semaphore.acquire(&tenant("a")).await;
        for name in ["a", "b", "b"] {
            let name = tenant(name);
            let waiting = semaphore.acquire(&name);
            assert!(tokio::time::timeout(Duration::from_secs(1), waiting).await.is_err());
        }
        {
            let state = semaphore.lock();
            assert!(state.turns.is_empty() && state.waiting.is_empty());
        }
        // A waiter that received its permit and is dropped before it runs returns the permit.
        let name = tenant("b");
        let mut waiting = Box::pin(semaphore.acquire(&name));
        assert!(std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx).is_pending())).await);
        drop(first);
        drop(waiting);
        assert_eq!(semaphore.free_permits(), 1);
    }
}
