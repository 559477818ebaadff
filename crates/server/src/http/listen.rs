//! Accepts connections up to a limit, reads request heads within a time limit, and drains connections when the server stops.
//! Invariant: a client that sends nothing, or a byte now and then, loses its connection and its place.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::open_calls::OpenCalls;

/// The time for the head of a request, counted from the end of the request before it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// The number of connections at once. Each takes a file descriptor and buffers.
const MAX_CONNECTIONS: usize = 2_048;
/// The pause after a failed accept. If the process has no file descriptor left, other connections get time to close.
const ACCEPT_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// How the server stops.
pub struct Shutdown {
    /// Cancelled at the start of the shutdown. No connection is accepted after it.
    pub stop: CancellationToken,
    /// Cancelled when the last call was answered, or the time for that is over. It ends the streams that wait for events.
    pub streams_end: CancellationToken,
    /// The time for open calls to finish.
    pub drain: Duration,
    /// The calls that are waited for.
    pub open_calls: OpenCalls,
}

/// Serves until the shutdown starts, then waits for open calls for at most `drain`.
pub async fn serve(listener: TcpListener, router: Router, shutdown: &Shutdown) {
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &permits) => accepted,
            () = shutdown.stop.cancelled() => break,
        };
        let Some((stream, permit)) = accepted else { continue };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        let watched = graceful.watch(connection);
        // The task holds the permit until its connection ends.
        tokio::spawn(async move {
            if let Err(error) = watched.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(permit);
        });
    }
    // Closed before the drain, so that a successor can listen on the same address.
    drop(listener);
    let finished = async {
        let calls_end = async {
            shutdown.open_calls.wait_for_none().await;
            shutdown.streams_end.cancel();
        };
        // A connection closes after its open answers. Streams have no last answer of their own, so they are ended when the last
        // call is answered.
        tokio::join!(graceful.shutdown(), calls_end);
    };
    if tokio::time::timeout(shutdown.drain, finished).await.is_err() {
        tracing::warn!(drain = ?shutdown.drain, "requests were still running at the end of the drain time");
        shutdown.streams_end.cancel();
    }
}

/// One of the places for connections. Dropping it frees the place.
type ConnectionPermit = tokio::sync::OwnedSemaphorePermit;

/// Accepts one connection within the limit. `None` after a failure, which was logged.
async fn accept(listener: &TcpListener, permits: &Arc<Semaphore>) -> Option<(TcpStream, ConnectionPermit)> {
    // Taken before the connection is accepted, so that connections beyond the limit wait in the system's queue and cost this
    // process nothing.
    let permit = permits.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Without this option, a small answer waits for the client's delayed acknowledgement: a call took 44 ms instead of 2.
            let _ = stream.set_nodelay(true);
            Some((stream, permit))
        }
        Err(error) => {
            tracing::warn!(%error, "could not accept a connection");
            tokio::time::sleep(ACCEPT_RETRY_PAUSE).await;
            None
        }
    }
}
