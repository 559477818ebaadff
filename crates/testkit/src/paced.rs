//! A clock that follows tokio's paused time, and processes that a test starts and kills.
//! Invariant: the time never goes back, even if several processes share it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use base::{InstanceId, Timestamp};
use tokio::time::Instant;

use crate::lock;

/// The time that all processes of one test share: the latest moment that any of their clocks returned.
#[derive(Debug, Clone)]
pub struct SharedTime(Arc<Mutex<Timestamp>>);

impl SharedTime {
    /// Returns a shared time that starts at `start`.
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

/// The clock of one process. In a runtime whose time is paused, a sleep takes no time and moves the clock.
#[derive(Debug)]
pub struct PacedClock {
    shared: SharedTime,
    /// The moment of the first reading, by tokio's clock and by the shared time. It is not set before the first reading, because a clock
    /// may be made outside of the runtime.
    first_reading: OnceLock<(Instant, Timestamp)>,
}

impl PacedClock {
    pub fn new(shared: &SharedTime) -> Self {
        Self { shared: shared.clone(), first_reading: OnceLock::new() }
    }
}

#[async_trait]
impl ports::Clock for PacedClock {
    fn now(&self) -> Timestamp {
        let (instant, time) = *self.first_reading.get_or_init(|| (Instant::now(), self.shared.now()));
        let own_time = time.plus_ms(i64::try_from(instant.elapsed().as_millis()).unwrap_or(i64::MAX));
        let mut shared = lock(&self.shared.0);
        *shared = (*shared).max(own_time);
        *shared
    }

    async fn sleep(&self, duration: Duration) {
        // The first reading sets the start, so that the sleep counts. The second reading moves the shared time.
        self.now();
        tokio::time::sleep(duration).await;
        self.now();
    }
}

/// The processes of a test that are alive.
#[derive(Debug, Clone, Default)]
pub struct Processes(Arc<Mutex<HashSet<InstanceId>>>);

impl Processes {
    pub fn kill(&self, instance: InstanceId) {
        lock(&self.0).remove(&instance);
    }

    /// Adds a process to those that are alive, and returns its port `Presence`.
    pub fn start(&self, instance: InstanceId) -> MemoryPresence {
        lock(&self.0).insert(instance);
        MemoryPresence { me: instance, processes: self.clone() }
    }
}

/// The port `Presence` of one process.
#[derive(Debug)]
pub struct MemoryPresence {
    me: InstanceId,
    processes: Processes,
}

impl ports::Presence for MemoryPresence {
    fn this_process(&self) -> InstanceId {
        self.me
    }

    fn liveness(&self, instance: InstanceId) -> ports::Liveness {
        match lock(&self.processes.0).contains(&instance) {
            true => ports::Liveness::Alive,
            false => ports::Liveness::Dead,
        }
    }
}
