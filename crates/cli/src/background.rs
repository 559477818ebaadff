//! The background tasks of a server: traces, their export, storing the engine, collection, runs of dead processes.
//! Invariant: no call waits for a task, and no failure of a task ends the server.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime};

use base::TenantId;
use session::{CollectionOptions, Service};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::failure::Failure;
use crate::otlp::Otlp;
use crate::tenants;

/// The time from the start of the server to the first pass of the collector.
const FIRST_PASS: Duration = Duration::from_secs(10 * 60);
const BETWEEN_PASSES: Duration = Duration::from_secs(6 * 60 * 60);
/// The pause between two portions of a pass, so that calls are not delayed by it.
const COLLECTION_PAUSE: Duration = Duration::from_millis(20);
/// If the wall clock gained more than this on the monotonic clock, somebody set it, or the machine slept.
const JUMP: Duration = Duration::from_secs(60 * 60);
/// The time that an operator has to correct a clock that jumped, before data is removed because of its age.
const AFTER_JUMP: Duration = Duration::from_secs(24 * 60 * 60);
/// The time that writing and exporting the last traces may take.
const FINISH_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which runs of dead processes are looked for.
const TAKEOVER_INTERVAL: Duration = Duration::from_secs(5);
/// Callers that still wait for a run this long before the drain time ends get the state of the run as their answer.
const RELEASE_BEFORE_END: Duration = Duration::from_secs(1);

/// The tasks that still have to write when the server has stopped.
pub struct BackgroundTasks(Vec<JoinHandle<()>>);

/// Starts all background tasks.
///
/// `stop` is cancelled when the server starts to drain, `ended` after the last call. A task that belongs to running work ends at
/// `ended`, one that begins new work ends at `stop`.
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
    let tenants = tenants::all(&config.tenants);
    tokio::spawn(collect(service.clone(), ended.clone()));
    tokio::spawn(store_engine(service.clone(), tenants.clone(), ended.clone()));
    tokio::spawn(resume_scripts(service.clone(), tenants, stop.clone()));
    let drain = Duration::from_secs(config.drain_seconds);
    tokio::spawn(release_waiters(Arc::downgrade(service), drain, stop.clone()));
    Ok(BackgroundTasks(tasks))
}

impl BackgroundTasks {
    /// Waits until the last traces are written and exported. Must be called after `ended` was cancelled.
    pub async fn finish(self) {
        for task in self.0 {
            if tokio::time::timeout(FINISH_TIMEOUT, task).await.is_err() {
                tracing::warn!("the traces of the last calls could not be written in time");
            }
        }
    }
}

/// Stores the engine before the first heap needs it, because writing it to remote storage may take long.
async fn store_engine(service: Arc<Service>, tenants: Vec<TenantId>, ended: CancellationToken) {
    tokio::select! {
        () = ended.cancelled() => {}
        stored = service.store_engine_for(&tenants) => if let Err(error) = stored {
            tracing::warn!(%error, "the JavaScript engine could not be stored; the first run will try again");
        }
    }
}

/// Takes over runs of scripts whose process died: at the start, and whenever another process on this data folder dies.
async fn resume_scripts(service: Arc<Service>, tenants: Vec<TenantId>, stop: CancellationToken) {
    loop {
        match service.resume_js(&tenants).await {
            Ok(0) => {}
            Ok(runs) => tracing::info!(runs, "runs of JavaScript whose process died continue here"),
            Err(error) => tracing::warn!(%error, "cannot look for runs of JavaScript whose process died"),
        }
        tokio::select! {
            () = tokio::time::sleep(TAKEOVER_INTERVAL) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Answers callers that wait for a long run, shortly before the drain time of a stopping server ends.
///
/// Until then they may still get a result, because the server stays while somebody waits. The reference is weak, so that this task,
/// which outlives the stop, does not keep the service alive.
async fn release_waiters(service: Weak<Service>, drain: Duration, stop: CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(drain.saturating_sub(RELEASE_BEFORE_END.min(drain / 2))).await;
    if let Some(service) = service.upgrade() {
        service.release_waiters();
    }
}

/// Removes expired data in passes.
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
        if jump > JUMP {
            tracing::warn!(seconds = jump.as_secs(), "the clock jumped ahead; expired data is kept for another day");
            wait = AFTER_JUMP;
            continue;
        }
        wait = BETWEEN_PASSES;
        let options = CollectionOptions { pause: COLLECTION_PAUSE, ..CollectionOptions::default() };
        tokio::select! {
            () = ended.cancelled() => return,
            collected = service.collect_garbage(options) => match collected {
                Ok(report) => tracing::info!(rows = ?report.rows, blobs = report.blobs, bytes = report.blob_bytes, "expired data was removed"),
                Err(error) => tracing::warn!(%error, "expired data could not be removed; the next pass tries again"),
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

    /// Returns how much further the wall clock moved than the monotonic one. Zero if it was set back.
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
