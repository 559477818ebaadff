//! What a server does beside answering: it writes traces, sends them on, and removes what is kept no longer.
//! Invariant: none of it keeps a call waiting, and no failure of it ends the server.

use std::sync::Arc;
use std::time::Duration;

use session::{Pass, Service};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::failure::Failure;
use crate::otlp::Otlp;

/// After the start, and between two passes.
const FIRST_PASS: Duration = Duration::from_secs(10 * 60);
const BETWEEN_PASSES: Duration = Duration::from_secs(6 * 60 * 60);
/// Between two portions of a pass.
const PAUSE: Duration = Duration::from_millis(20);
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
    tasks.push(tokio::spawn(service.clone().keep_traces(stop.clone())));
    tokio::spawn(collect(service.clone(), stop.clone()));
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

async fn collect(service: Arc<Service>, stop: CancellationToken) {
    let mut wait = FIRST_PASS;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        wait = BETWEEN_PASSES;
        tokio::select! {
            () = stop.cancelled() => return,
            collected = service.collect_garbage(Pass { pause: PAUSE, ..Pass::default() }) => match collected {
                Ok(collected) => tracing::info!(rows = ?collected.rows, blobs = collected.blobs, bytes = collected.blob_bytes, "what is kept no longer went"),
                Err(error) => tracing::warn!(%error, "what is kept no longer could not be removed"),
            }
        }
    }
}
