//! A clock that goes with tokio's, and processes that live and die on request.
//! Invariant: time never goes back, also not between processes that share it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use base::{InstanceId, Timestamp};
use tokio::time::Instant;

use crate::lock;

/// The latest moment that any process has seen.
#[derive(Debug, Clone)]
pub struct SharedTime(Arc<Mutex<Timestamp>>);

impl SharedTime {
    pub fn at(start: Timestamp) -> Self {
        Self(Arc::new(Mutex::new(start)))
    }

    pub fn now(&self) -> Timestamp {
        *lock(&self.0)
    }

    pub fn advance(&self, by: Duration) {
        let mut now = lock(&self.0);
        *now = now.plus_ms(i64::try_from(by.as_millis()).unwrap_or(i64::MAX));
    }
}

/// In a runtime whose time is paused, sleeping takes no time and moves the clock.
#[derive(Debug)]
pub struct PacedClock {
    shared: SharedTime,
    began: OnceLock<(Instant, Timestamp)>,
}

impl PacedClock {
    pub fn new(shared: &SharedTime) -> Self {
        Self { shared: shared.clone(), began: OnceLock::new() }
    }
}

#[async_trait]
impl ports::Clock for PacedClock {
    fn now(&self) -> Timestamp {
        let (began, start) = *self.began.get_or_init(|| (Instant::now(), self.shared.now()));
        let here = start.plus_ms(i64::try_from(began.elapsed().as_millis()).unwrap_or(i64::MAX));
        let mut shared = lock(&self.shared.0);
        *shared = (*shared).max(here);
        *shared
    }

    async fn sleep(&self, duration: Duration) {
        self.now();
        tokio::time::sleep(duration).await;
        self.now();
    }
}

/// Which processes of a test are alive.
#[derive(Debug, Clone, Default)]
pub struct Processes(Arc<Mutex<HashSet<InstanceId>>>);

impl Processes {
    pub fn kill(&self, instance: InstanceId) {
        lock(&self.0).remove(&instance);
    }

    pub fn start(&self, instance: InstanceId) -> MemoryPresence {
        lock(&self.0).insert(instance);
        MemoryPresence { me: instance, processes: self.clone() }
    }
}

#[derive(Debug)]
pub struct MemoryPresence {
    me: InstanceId,
    processes: Processes,
}

impl ports::Presence for MemoryPresence {
    fn this_process(&self) -> InstanceId {
        self.me
    }

    fn is_alive(&self, instance: InstanceId) -> bool {
        lock(&self.processes.0).contains(&instance)
    }
}
