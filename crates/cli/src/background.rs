//! The background tasks of a server: writing and exporting traces, storing the JavaScript engine, collection, takeover of runs,
//! and later looks for effects whose answers were lost.
//! Invariant: no call waits for a background task, and a failed task does not end the server.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use app::App;
use base::TenantId;
use session::{CollectionOptions, Service};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::failure::Failure;
use crate::otlp::Otlp;
use crate::tenants;

/// The time from the start of the server to the first collection.
const FIRST_PASS: Duration = Duration::from_secs(10 * 60);
/// The time between two collections.
const BETWEEN_PASSES: Duration = Duration::from_secs(6 * 60 * 60);
/// The pause between two portions of a collection, so that the collection does not delay calls.
const COLLECTION_PAUSE: Duration = Duration::from_millis(20);
/// If the wall clock advanced this much more than the monotonic clock, the wall clock was set, or the machine slept.
const CLOCK_JUMP: Duration = Duration::from_secs(60 * 60);
/// The time that collection waits after a jump of the clock, so that an operator can correct a wrong clock before data is removed.
const WAIT_AFTER_JUMP: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest time that a stopping server waits until the last traces are written and exported.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between two searches for the first API key.
const KEY_SEARCH_INTERVAL: Duration = Duration::from_secs(1);
/// The interval between two searches for runs of processes that have died.
const RECOVERY_INTERVAL: Duration = Duration::from_secs(5);
/// The longest and the shortest interval between two searches for effects whose answers were lost.
const SETTLE_INTERVAL: Duration = Duration::from_secs(5);
const SHORTEST_SETTLE_INTERVAL: Duration = Duration::from_millis(250);
/// The time before the end of the drain time at which callers that still wait for a run get the state of the run as their answer.
const RELEASE_BEFORE_END: Duration = Duration::from_secs(1);

/// The tasks that must write the last traces after the server has stopped.
pub struct BackgroundTasks(Vec<JoinHandle<()>>);

/// Starts all background tasks.
///
/// `stop` is cancelled when the server starts to drain, and `ended` after the last call. A task that serves running calls ends at
/// `ended`; a task that starts new work ends at `stop`.
pub fn start(
    service: &Arc<Service>,
    config: &Config,
    stop: &CancellationToken,
    ended: &CancellationToken,
) -> Result<BackgroundTasks, Failure> {
    let mut tasks = Vec::new();
    if let Some(url) = &config.otlp {
        let (otlp, export) = Otlp::new(url, ended.clone())?;
        service.export_calls_to(Arc::new(otlp));
        tasks.push(tokio::spawn(export));
    }
    tasks.push(tokio::spawn(service.clone().write_traces_until(ended.clone())));
    let tenants = tenants::all_tenants(&config.tenants);
    tokio::spawn(collect(service.clone(), ended.clone()));
    tokio::spawn(store_engine(service.clone(), tenants.clone(), ended.clone()));
    tokio::spawn(service.clone().renew_until(ended.clone()));
    tokio::spawn(recover_runs(service.clone(), tenants.clone(), stop.clone()));
    tokio::spawn(settle_receipts(service.clone(), tenants, stop.clone()));
    let drain = Duration::from_secs(config.drain_seconds);
    tokio::spawn(release_waiters(Arc::downgrade(service), drain, stop.clone()));
    Ok(BackgroundTasks(tasks))
}

impl BackgroundTasks {
    /// Waits until the last traces are written and exported. The caller must have cancelled `ended` before.
    pub async fn finish(self) {
        for task in self.0 {
            if tokio::time::timeout(FINISH_TIMEOUT, task).await.is_err() {
                tracing::warn!(
                    "the traces of the last calls were not written within {} seconds and are lost",
                    FINISH_TIMEOUT.as_secs()
                );
            }
        }
    }
}

/// Stores the JavaScript engine at the start, because writing it to remote storage would delay the first run.
async fn store_engine(service: Arc<Service>, tenants: Vec<TenantId>, ended: CancellationToken) {
    tokio::select! {
        () = ended.cancelled() => {}
        stored = service.store_engine_for(&tenants) => if let Err(error) = stored {
            tracing::warn!(%error, "cannot store the JavaScript engine; the first run of JavaScript tries again");
        }
    }
}

/// Requires API keys as soon as the store has one. A server that started before the first key was made would otherwise answer every
/// caller without a key until its next start.
pub async fn require_keys_after_the_first(app: Arc<App>, stop: CancellationToken) {
    loop {
        match app.service().has_stored_keys().await {
            Ok(false) => {}
            Ok(true) => {
                app.require_keys();
                tracing::info!("an API key was made, so every request needs a key from now on");
                return;
            }
            Err(error) => tracing::warn!(%error, "cannot look for API keys; the search is repeated"),
        }
        tokio::select! {
            () = tokio::time::sleep(KEY_SEARCH_INTERVAL) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Continues the runs of dead and frozen processes, programs and scripts: at the start, and whenever another process on this data
/// folder dies.
async fn recover_runs(service: Arc<Service>, tenants: Vec<TenantId>, stop: CancellationToken) {
    loop {
        let (programs, scripts) = tokio::join!(service.recover_programs(&tenants), service.resume_js(&tenants));
        for (kind, recovered) in [("programs", programs), ("scripts", scripts)] {
            match recovered {
                Ok(0) => {}
                Ok(runs) => tracing::info!(runs, kind, "this process continues the runs of a process that died"),
                Err(error) => {
                    tracing::warn!(%error, kind, "cannot search for runs of processes that died; the search is repeated");
                }
            }
        }
        tokio::select! {
            () = tokio::time::sleep(RECOVERY_INTERVAL) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Looks again for effects whose answers were lost, of this process and of others, until their receipts are closed.
async fn settle_receipts(service: Arc<Service>, tenants: Vec<TenantId>, stop: CancellationToken) {
    loop {
        let next = match service.settle_receipts(&tenants).await {
            Ok(settled) => {
                if settled.closed > 0 {
                    tracing::info!(receipts = settled.closed, "effects whose answers were lost have settled");
                }
                settled.next.unwrap_or(SETTLE_INTERVAL)
            }
            Err(error) => {
                tracing::warn!(%error, "cannot look again for effects whose answers were lost; the search is repeated");
                SETTLE_INTERVAL
            }
        };
        tokio::select! {
            () = tokio::time::sleep(next.clamp(SHORTEST_SETTLE_INTERVAL, SETTLE_INTERVAL)) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Answers the callers that wait for a long run, shortly before the drain time of a stopping server ends.
///
/// Before that moment a caller may still get the result, because the server drains while callers wait. The reference is weak, because
/// this task sleeps during the drain and must not keep the service alive.
async fn release_waiters(service: Weak<Service>, drain: Duration, stop: CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(drain.saturating_sub(RELEASE_BEFORE_END.min(drain / 2))).await;
    if let Some(service) = service.upgrade() {
        service.release_waiters();
    }
}

/// Removes expired data at regular intervals, until `ended` is cancelled.
async fn collect(service: Arc<Service>, ended: CancellationToken) {
    let mut wait = FIRST_PASS;
    let mut last = ClockReading::now();
    loop {
        tokio::select! {
            () = ended.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        let now = ClockReading::now();
        let jump = now.jump_since(&last);
        last = now;
        if jump > CLOCK_JUMP {
            tracing::warn!(
                seconds = jump.as_secs(),
                "the system clock jumped ahead; correct the clock if it is wrong: expired data is removed in a day"
            );
            wait = WAIT_AFTER_JUMP;
            continue;
        }
        wait = BETWEEN_PASSES;
        let options = CollectionOptions { pause: COLLECTION_PAUSE, ..CollectionOptions::default() };
        tokio::select! {
            () = ended.cancelled() => return,
            collected = service.collect_garbage(options) => match collected {
                Ok(report) => tracing::info!(rows = ?report.rows, blobs = report.blobs, bytes = report.blob_bytes, "removed expired data"),
                Err(error) => tracing::warn!(%error, "cannot remove expired data; the next collection tries again"),
            }
        }
    }
}

/// One moment on the wall clock, which can be set, and on the monotonic clock, which cannot.
#[derive(Clone, Copy)]
struct ClockReading {
    wall: SystemTime,
    monotonic: Instant,
}

impl ClockReading {
    fn now() -> Self {
        Self { wall: SystemTime::now(), monotonic: Instant::now() }
    }

    /// Returns how much more the wall clock advanced than the monotonic clock. Returns zero if the wall clock was set back.
    fn jump_since(&self, before: &ClockReading) -> Duration {
        let wall = self.wall.duration_since(before.wall).unwrap_or_default();
        wall.saturating_sub(self.monotonic.saturating_duration_since(before.monotonic))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_ahead_differs_from_time_that_passed() {
        let start = ClockReading::now();
        let hour = Duration::from_secs(3600);
        let later = |wall: Duration, monotonic| ClockReading {
            wall: start.wall + wall,
            monotonic: start.monotonic + monotonic,
        };
        assert_eq!(later(hour * 6, hour * 6).jump_since(&start), Duration::ZERO, "time passed");
        assert_eq!(later(hour * 9606, hour * 6).jump_since(&start), hour * 9600, "the clock was set ahead");
        let back = ClockReading { wall: start.wall - hour, monotonic: start.monotonic + hour };
        assert_eq!(back.jump_since(&start), Duration::ZERO, "the clock was set back");
    }
}
