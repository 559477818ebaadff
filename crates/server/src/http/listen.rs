//! Connections: accepted up to a number, read within a time, drained when the server stops.
//! Invariant: a peer that sends nothing, or a byte now and then, loses its connection; it never holds a place for ever.

use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::under_way::UnderWay;

/// For the head of a request, from its first byte or from the end of the one before it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
const CONNECTIONS: usize = 2_048;
/// After a failed accept (no file descriptors left, say) others get the time to close theirs.
const PAUSE: Duration = Duration::from_millis(100);

/// When and how the server ends.
pub struct Stop {
    /// No new work from here on.
    pub stop: CancellationToken,
    /// Cancelled when the last call has been answered, or the time for it is over: what still waits is ended.
    pub over: CancellationToken,
    pub drain: Duration,
    pub under_way: UnderWay,
}

/// Serves until told to stop, then lets calls under way finish for at most `drain`.
pub async fn serve(listener: TcpListener, router: Router, ending: &Stop) {
    let places = std::sync::Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = ending.stop.cancelled() => break,
        };
        let Some((stream, place)) = accepted else { continue };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            if let Err(error) = watched.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
    drop(listener);
    let finished = async {
        let streams_end = async {
            ending.under_way.none_left().await;
            ending.over.cancel();
        };
        // Connections close after the answer they owe; streams that owe none close when the last call is answered.
        tokio::join!(graceful.shutdown(), streams_end);
    };
    if tokio::time::timeout(ending.drain, finished).await.is_err() {
        tracing::warn!(drain = ?ending.drain, "requests were still running when the time to finish was over");
        ending.over.cancel();
    }
}

type Place = tokio::sync::OwnedSemaphorePermit;

async fn accept(listener: &TcpListener, places: &std::sync::Arc<tokio::sync::Semaphore>) -> Option<(TcpStream, Place)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Without this, small answers wait for the peer's delayed acknowledgement: a call took 44 ms instead of 2.
            let _ = stream.set_nodelay(true);
            Some((stream, place))
        }
        Err(error) => {
            tracing::warn!(%error, "could not accept a connection");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}
