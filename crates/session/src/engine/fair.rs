//! Whose step is next: so many at once, tenants in turn.
//! Invariant: a place that was given back goes to a waiting tenant that has waited longest since its last turn, whatever
//! number of steps another one has asked for.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use base::TenantId;
use tokio::sync::oneshot;

use crate::shared::lock;

pub(crate) struct Fair {
    state: Arc<Mutex<Waiting>>,
}

struct Waiting {
    free: usize,
    /// Tenants that wait, in the order of their turns.
    turns: VecDeque<TenantId>,
    asked: BTreeMap<TenantId, VecDeque<oneshot::Sender<Place>>>,
}

/// Leave to run one step; given back when it is dropped.
pub(crate) struct Place(Option<Arc<Mutex<Waiting>>>);

impl Fair {
    pub fn new(at_once: usize) -> Self {
        let waiting = Waiting { free: at_once, turns: VecDeque::new(), asked: BTreeMap::new() };
        Self { state: Arc::new(Mutex::new(waiting)) }
    }

    pub async fn place(&self, tenant: &TenantId) -> Place {
        let turn = {
            let mut state = lock(&self.state);
            if state.free > 0 {
                state.free -= 1;
                return Place(Some(self.state.clone()));
            }
            let (give, turn) = oneshot::channel();
            if !state.asked.contains_key(tenant) {
                state.turns.push_back(tenant.clone());
            }
            state.asked.entry(tenant.clone()).or_default().push_back(give);
            turn
        };
        // Whoever is in the list is given a place before the list is dropped.
        turn.await.unwrap_or(Place(None))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(state) = self.0.take() else { return };
        loop {
            let Some(give) = lock(&state).next_or_free() else { return };
            match give.send(Place(Some(state.clone()))) {
                Ok(()) => return,
                // It went away while it waited: the place is still ours to give.
                Err(mut back) => back.0 = None,
            }
        }
    }
}

impl Waiting {
    /// Whose turn it is; where nobody waits, the place is free.
    fn next_or_free(&mut self) -> Option<oneshot::Sender<Place>> {
        let next = self.next();
        if next.is_none() {
            self.free += 1;
        }
        next
    }

    fn next(&mut self) -> Option<oneshot::Sender<Place>> {
        let tenant = self.turns.pop_front()?;
        let asked = self.asked.get_mut(&tenant)?;
        let give = asked.pop_front();
        if asked.is_empty() {
            self.asked.remove(&tenant);
        } else {
            self.turns.push_back(tenant);
        }
        give
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tenants_take_turns_and_who_left_is_passed_over() {
        let fair = Arc::new(Fair::new(1));
        let order = Arc::new(Mutex::new(Vec::new()));
        let first = fair.place(&TenantId::local()).await;
        let mut tasks = Vec::new();
        for name in ["many", "many", "many", "gone", "one"] {
            let (fair, order) = (fair.clone(), order.clone());
            let tenant = TenantId::parse(name).unwrap();
            tasks.push(tokio::spawn(async move {
                let _place = fair.place(&tenant).await;
                lock(&order).push(name);
                tokio::task::yield_now().await;
            }));
            tokio::task::yield_now().await;
        }
        tasks.remove(3).abort();
        tokio::task::yield_now().await;
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*lock(&order), ["many", "one", "many", "many"]);
        assert_eq!(lock(&fair.state).free, 1);
    }
}
