//! What a server does beside answering: it writes traces, sends them on, stores its engine, and removes what is kept no longer.
//! Invariant: none of it keeps a call waiting, and no failure of it ends the server.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use base::TenantId;
use session::{CollectionOptions, Service};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::failure::Failure;
use crate::otlp::Otlp;
use crate::tenants;

/// After the start, and between two passes.
const FIRST_PASS: Duration = Duration::from_secs(10 * 60);
const BETWEEN_PASSES: Duration = Duration::from_secs(6 * 60 * 60);
/// Between two portions of a pass.
const PAUSE: Duration = Duration::from_millis(20);
/// A wall clock that ran ahead of the steady one by more than this was set, or the machine slept.
const JUMP: Duration = Duration::from_secs(60 * 60);
/// For so long a clock that jumped may be put right before anything goes because of its age.
const AFTER_JUMP: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the last calls may take to be written and sent on.
const AT_MOST: Duration = Duration::from_secs(5);

pub struct Beside(Vec<JoinHandle<()>>);

/// Until `stop`, which comes after the last call.
pub fn start(service: &Arc<Service>, config: &Config, stop: &CancellationToken) -> Result<Beside, Failure> {
    let mut tasks = Vec::new();
    if let Some(url) = &config.otlp {
        let (otlp, sending) = Otlp::new(url, stop.clone())?;
        service.export_calls_to(Arc::new(otlp));
        tasks.push(tokio::spawn(sending));
    }
    // Its last calls are handed on before the one that sends them looks for the last time.
    tasks.push(tokio::spawn(service.clone().write_traces_until(stop.clone())));
    tokio::spawn(collect(service.clone(), stop.clone()));
    tokio::spawn(keep_engine(service.clone(), tenants::all(&config.tenants), stop.clone()));
    Ok(Beside(tasks))
}

impl Beside {
    pub async fn finish(self) {
        for task in self.0 {
            if tokio::time::timeout(AT_MOST, task).await.is_err() {
                tracing::warn!("the last calls could not be written in time");
            }
        }
    }
}

/// Before the first heap needs it: storage may be far.
async fn keep_engine(service: Arc<Service>, tenants: Vec<TenantId>, stop: CancellationToken) {
    tokio::select! {
        () = stop.cancelled() => {}
        kept = service.store_engine_for(&tenants) => if let Err(error) = kept {
            tracing::warn!(%error, "the JavaScript engine could not be stored; the first run will try again");
        }
    }
}

async fn collect(service: Arc<Service>, stop: CancellationToken) {
    let mut wait = FIRST_PASS;
    let mut clock = Clock { wall: SystemTime::now(), steady: Instant::now() };
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        let now = Clock { wall: SystemTime::now(), steady: Instant::now() };
        let ahead = now.ahead_since(&clock);
        clock = now;
        if ahead > JUMP {
            tracing::warn!(
                seconds = ahead.as_secs(),
                "the clock jumped ahead; for a day nothing is removed for its age"
            );
            wait = AFTER_JUMP;
            continue;
        }
        wait = BETWEEN_PASSES;
        tokio::select! {
            () = stop.cancelled() => return,
            collected = service.collect_garbage(CollectionOptions { pause: PAUSE, ..CollectionOptions::default() }) => match collected {
                Ok(collected) => tracing::info!(rows = ?collected.rows, blobs = collected.blobs, bytes = collected.blob_bytes, "what is kept no longer went"),
                Err(error) => tracing::warn!(%error, "what is kept no longer could not be removed"),
            }
        }
    }
}

/// A moment on both clocks: the one that can be set, and the one that only goes on.
#[derive(Clone, Copy)]
struct Clock {
    wall: SystemTime,
    steady: Instant,
}

impl Clock {
    /// How much further the wall clock came than the steady one; nothing where it was set back.
    fn ahead_since(&self, before: &Clock) -> Duration {
        let wall = self.wall.duration_since(before.wall).unwrap_or_default();
        wall.saturating_sub(self.steady.saturating_duration_since(before.steady))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_ahead_is_told_from_time_that_passed() {
        let (start, hour) = (Clock { wall: SystemTime::now(), steady: Instant::now() }, Duration::from_secs(3600));
        let later = |wall: Duration, steady| Clock { wall: start.wall + wall, steady: start.steady + steady };
        assert_eq!(later(hour * 6, hour * 6).ahead_since(&start), Duration::ZERO, "time passed");
        assert_eq!(later(hour * 9606, hour * 6).ahead_since(&start), hour * 9600, "set ahead");
        let back = Clock { wall: start.wall - hour, steady: start.steady + hour };
        assert_eq!(back.ahead_since(&start), Duration::ZERO, "set back: nothing is older than it is");
    }
}
