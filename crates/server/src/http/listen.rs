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

/// For the head of a request, from its first byte or from the end of the one before it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
const CONNECTIONS: usize = 2_048;
/// After a failed accept (no file descriptors left, say) others get the time to close theirs.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop`, then lets running requests finish for at most `drain`.
pub async fn serve(listener: TcpListener, router: Router, drain: Duration, stop: CancellationToken) {
    let places = std::sync::Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            () = stop.cancelled() => break,
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
    if tokio::time::timeout(drain, graceful.shutdown()).await.is_err() {
        tracing::warn!(?drain, "requests were still running when the time to finish was over");
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
